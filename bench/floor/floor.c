/* The floor of a replicated commit: what the machine allows, with nothing of a protocol in the way.
 *
 * Three processes: a leader and two followers on loopback TCP. For each commit the leader ships the bytes to both followers, writes
 * and fdatasyncs its own zero-filled file, and waits until one follower - a majority with itself - says that it has done the same.
 * Blocking calls, no threads, no checksums. Prints one JSON object.
 *
 * usage: floor DIRECTORY COMMITS BYTES_PER_COMMIT
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FOLLOWERS = 2, WARM_UP = 50 };

static void die(const char *what) {
    fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void all_of(ssize_t (*step)(int, void *, size_t), int fd, char *data, size_t size) {
    while (size > 0) {
        ssize_t done = step(fd, data, size);
        if (done <= 0) {
            if (done < 0 && errno == EINTR) continue;
            die("a peer went away");
        }
        data += done;
        size -= (size_t)done;
    }
}

static ssize_t send_some(int fd, void *data, size_t size) { return send(fd, data, size, MSG_NOSIGNAL); }
static ssize_t read_some(int fd, void *data, size_t size) { return read(fd, data, size); }

/* Real zeros, synced: writes later change neither size nor extents, so fdatasync has only data to write. */
static int open_zeroed(const char *directory, int number, size_t size) {
    char path[4096];
    snprintf(path, sizeof path, "%s/floor-%d.log", directory, number);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0) die(path);
    char *zeros = calloc(1, 1 << 20);
    for (size_t at = 0; at < size; at += 1 << 20)
        if (pwrite(fd, zeros, 1 << 20, (off_t)at) != 1 << 20) die("zero-fill");
    free(zeros);
    if (fsync(fd) != 0) die("fsync");
    unlink(path);
    return fd;
}

static void write_synced(int fd, const char *data, size_t size, off_t at) {
    if (pwrite(fd, data, size, at) != (ssize_t)size) die("pwrite");
    if (fdatasync(fd) != 0) die("fdatasync");
}

/* Where each process says what processor time its commits took; shared by all three. */
static int64_t *spent_ns;

static void follow(const char *directory, int number, int port, long commits, size_t size, size_t file_size) {
    int log = open_zeroed(directory, number, file_size);
    int peer = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(peer, (struct sockaddr *)&address, sizeof address) != 0) die("connect");
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    char *data = malloc(size), done = 1;
    int64_t before = 0;
    for (long n = 0; n < commits; n++) {
        if (n == WARM_UP) before = cpu_ns();
        all_of(read_some, peer, data, size);
        write_synced(log, data, size, (off_t)((size_t)n * size));
        all_of(send_some, peer, &done, 1);
    }
    spent_ns[number] = cpu_ns() - before;
    exit(0);
}

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: floor DIRECTORY COMMITS BYTES_PER_COMMIT\n");
        return 2;
    }
    long commits = atol(argv[2]) + WARM_UP;
    spent_ns = mmap(NULL, sizeof *spent_ns * (FOLLOWERS + 1), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (spent_ns == MAP_FAILED) die("shared memory");
    size_t size = (size_t)atol(argv[3]), file_size = ((size_t)commits * size + (2 << 20)) & ~(size_t)((1 << 20) - 1);
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, FOLLOWERS) != 0) die("listen");
    getsockname(listener, (struct sockaddr *)&address, &length);
    for (int n = 0; n < FOLLOWERS; n++)
        if (fork() == 0) follow(argv[1], n + 1, ntohs(address.sin_port), commits, size, file_size);
    int log = open_zeroed(argv[1], 0, file_size);
    struct pollfd peers[FOLLOWERS];
    long acked[FOLLOWERS] = {0};
    for (int n = 0; n < FOLLOWERS; n++) {
        peers[n] = (struct pollfd){.fd = accept(listener, NULL, NULL), .events = POLLIN};
        if (peers[n].fd < 0) die("accept");
        setsockopt(peers[n].fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    char *data = malloc(size), acks[64];
    memset(data, 'x', size);
    int64_t *took = malloc(sizeof *took * (size_t)commits), began = 0, before = 0;
    for (long n = 0; n < commits; n++) {
        int64_t start = now_ns();
        if (n == WARM_UP) {
            began = start;
            before = cpu_ns();
        }
        for (int p = 0; p < FOLLOWERS; p++) all_of(send_some, peers[p].fd, data, size);
        write_synced(log, data, size, (off_t)((size_t)n * size));
        while (acked[0] <= n && acked[1] <= n) {
            if (poll(peers, FOLLOWERS, -1) < 0) die("poll");
            for (int p = 0; p < FOLLOWERS; p++)
                if (peers[p].revents) {
                    ssize_t got = read(peers[p].fd, acks, sizeof acks);
                    if (got <= 0) die("a follower went away");
                    acked[p] += got;
                }
        }
        took[n] = now_ns() - start;
    }
    double seconds = (double)(now_ns() - began) / 1e9;
    spent_ns[0] = cpu_ns() - before;
    for (int p = 0; p < FOLLOWERS; p++) /* the slower follower ends in its own time */
        while (acked[p] < commits) {
            ssize_t got = read(peers[p].fd, acks, sizeof acks);
            if (got <= 0) die("a follower went away");
            acked[p] += got;
        }
    for (int p = 0; p < FOLLOWERS; p++) close(peers[p].fd);
    while (wait(NULL) > 0) {
    }
    long counted = commits - WARM_UP;
    int64_t *sorted = took + WARM_UP, spent = 0;
    for (int p = 0; p <= FOLLOWERS; p++) spent += spent_ns[p];
    qsort(sorted, (size_t)counted, sizeof *sorted, ascending);
    printf("{\"commits\": %ld, \"bytes_per_commit\": %zu, \"commits_per_s\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f, "
           "\"seconds\": %.6f, \"cpu_us\": %.1f, \"percentiles_us\": {",
           counted, size, (double)counted / seconds, (double)sorted[counted / 2] / 1e3, (double)sorted[counted * 99 / 100] / 1e3, seconds,
           (double)spent / 1e3);
    static const double ranks[] = {1, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 100};
    for (size_t n = 0; n < sizeof ranks / sizeof *ranks; n++) {
        long at = (long)((double)counted * ranks[n] / 100);
        printf("%s\"%g\": %.1f", n ? ", " : "", ranks[n], (double)sorted[at < counted ? at : counted - 1] / 1e3);
    }
    printf("}}\n");
    return 0;
}
