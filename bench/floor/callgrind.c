/* Tells callgrind, from within the program that it runs, between which two points to count instructions. */
#include <valgrind/callgrind.h>

void counting_from_here(void) {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
}

/* Writes what was counted into a file of its own, under this name. */
void counting_to_here(const char *name) {
    CALLGRIND_DUMP_STATS_AT(name);
    CALLGRIND_STOP_INSTRUMENTATION;
}
