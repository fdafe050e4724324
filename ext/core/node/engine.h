// The native shell around the lane: one lock, one thread for sockets, one for syncs, and whoever appends. No GIL anywhere.
//
// | state | whose | who | under |
// |---|---|---|---|
// | lane, log | ReplicaLane | everybody | the lane lock (LaneLock) |
// | channels | ConnectionTable | everybody | the lane lock |
// | pending appends, barriers | AppendQueue | everybody | the lane lock |
// | Produces and heartbeats served here | ProduceAnswers, ClientFastPath | everybody | the lane lock |
// | mailboxes, events | Section, NewsQueue | everybody | the lane lock |
// | what the other threads are to do | SyncQueue, SocketsWakeup, PythonWatch | everybody | the lane lock |
// | splitters, strangers that are ready | Channel, SocketsThread | the sockets' thread | nobody else touches them |
// | descriptors being closed | ConnectionTable | the sockets' thread | the lane lock |
// | a sync under way | FlusherThread | whoever took the job: the flusher, or on a follower the sockets' thread | its files, shared |
//
// A part knows those above it in the list of fields, and nothing of those below. A call of the engine is one critical section
// (see section.h), made without the GIL, but where it says otherwise; the parts' own functions are called inside of one.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "../api.h"
#include "append_queue.h"
#include "beats.h"
#include "client_fast_path.h"
#include "connection_table.h"
#include "flusher_thread.h"
#include "lane_outputs.h"
#include "limits.h"
#include "news.h"
#include "produce_answers.h"
#include "python_watch.h"
#include "replica_lane.h"
#include "section.h"
#include "sockets_thread.h"
#include "sockets_wakeup.h"
#include "sync_queue.h"
#include "system.h"

namespace fastquorum::node {

// Numbers that may be looked at between two calls; true of one moment.
struct Standing {
    lane::Mode mode;
    bool is_frozen;
    Offset end_offset;
    Offset flushed_end;
    bool is_flushing;
};

// Of tests, in all engines of this process: have a place act (see hooks.h), or break a rule (see mutation.h; 0: none). False: there
// is none of that name, or this build has none.
FASTQUORUM_API bool arm_point(const char *name, int action, int amount, std::int64_t only_hit) noexcept;
FASTQUORUM_API bool plant_mutation(int mutation) noexcept;

class FASTQUORUM_API Engine final {
   public:
    Engine(lane::Identity identity, std::int64_t batch_bytes_max, Limits limits);
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;

    // 0, or the errno of what the system refuses.
    int start();
    // End both threads, the sync under way first; descriptors of connections are closed. Idempotent.
    void end_threads();

    bool is_in_own_process() const noexcept { return process_ == System::process(); }
    int news_descriptor() const noexcept { return news_.descriptor(); }

    // Whoever forks holds the lock meanwhile, so that the child finds everything whole.
    void before_fork() { lock_.mutex().lock(); }
    void after_fork() noexcept { lock_.mutex().unlock(); }
    // After fork, in the child: the threads are not there, and the lock stays held. Only descriptors are let go of;
    // nothing here may be destroyed in the child.
    void abandon_in_child() noexcept;

    // --- without the lock: any thread, with the GIL or without -------------------------------------------------------

    Offset high_watermark() const noexcept { return appends_.high_watermark(); }
    Micros appended_us() const noexcept { return appends_.appended_us(); }
    bool has_failed() const noexcept { return lane_.has_failed(); }
    Micros flush_began_us() const noexcept { return syncs_.began_us(); }
    void watch_flush_again(Micros from_us) noexcept { syncs_.watch_again(from_us); }
    // Python took no news for so long that the lead was given up; true once.
    bool take_given_up() noexcept { return python_watch_.take_given_up(); }
    bool are_observers_awaited() const noexcept { return lane_.are_observers_awaited(); }

    // --- the log's owner ---------------------------------------------------------------------------------------------

    void lend(Loan loan);
    // What the lane has made of it. storage.Log owns it again.
    Loan take_back();
    // As it is now; the lane goes on.
    Loan look();
    Standing standing();
    // Batches in memory, copied; false if they are not there.
    bool read_recent(Offset offset, std::int64_t bytes_max, std::vector<std::uint8_t> *copy);
    // Zeros in front of the writer up to `end`; where they end now.
    std::int64_t prepare(std::int64_t end);
    // Of storage.Log, while the log is its own: have these files synced.
    void submit(std::int64_t token, std::vector<FileRef> files);
    // A sync whose end came as an event, and is the lane's to count.
    void synced(std::int64_t token, int error, Micros at_us);
    // Why the log cut the lane off.
    Failure failure(int *error, Offset *offset);
    bool was_cut_off();
    // A disk that does not answer, for tests.
    void hold_syncs(bool hold);
    // Room at the log's end, which it had not; of 0 bytes: none is wanted. The lane is frozen until it was looked for.
    Room room_wanted();
    void room_sought();

    // --- raft's side -------------------------------------------------------------------------------------------------

    bool may_lead(const lane::LeaderSession &session);
    void open_leader(const lane::LeaderSession &session, Micros at_us);
    bool may_follow(const lane::FollowerSession &session);
    void open_follower(const lane::FollowerSession &session, Micros at_us);
    void attach_leader(Connection connection, int api_version, Micros at_us);
    void detach(Connection connection);
    void admit(const lane::Admission &fetch, Micros at_us);
    // Frozen from here on; what was handed up or unparked meanwhile is in the news.
    lane::State freeze();
    void resume(Micros at_us);
    // The session ends. What their lane has sent and a socket has not taken yet must not leave later (rule 3): such a connection
    // is given up.
    lane::State close();
    lane::State state();
    // A frame that waited for raft/, on a lane that goes on. False: room first, and then again.
    bool offer(Connection connection, Span frame, Micros at_us);
    void latch();
    void stop();
    void advance(Offset high_watermark);

    // All of what the quorum lives by, and then a slice of strangers' events; if there are more, there are news again.
    News take_news();
    // Frames that were taken are dealt with: their connections' next ones need not wait behind them.
    void frames_done(const std::vector<DoneFrame> &frames);
    // Have Python look.
    void rouse_python();

    // --- callers' side: see AppendQueue ------------------------------------------------------------------------------

    // With the GIL held: only if nobody else is in a critical section, and the append makes no system call. False: not now.
    bool append_gathering(const Slice *values, std::int64_t count, std::int64_t size_bytes, Waiter &waiter, bool is_pushed_later,
                          Offset *offset);
    Offset append(const Slice *values, std::int64_t count, std::int64_t size_bytes, Waiter &waiter, bool has_waited, bool is_pushed_later);
    // Append values in one critical section, each by itself and with a waiter of its own, then write and send them: for each its
    // offset, or why it was refused.
    void append_all(const Slice *values, std::int64_t count, Waiter *waiters, bool have_waited, Offset *offsets);
    Offset append_encoded(std::uint8_t *batch, std::int64_t size, std::int64_t count, std::int64_t timestamp_ms, Waiter &waiter,
                          bool has_waited, bool admits_new);
    Offset await_commit(Offset base_offset, Offset end_offset, Waiter &waiter);
    // Write and send what was appended to be pushed later.
    void push();
    // Have the sockets' thread do so, soon.
    void push_soon();
    // One of those that were told to wait does so now, where `release_appends` will find it.
    void hold_appends();
    // None of those that were told to wait does so any more.
    void release_appends();
    void refuse_appends(bool refuse);
    std::int64_t begin_barrier(Waiter &waiter);
    void fail_pending(std::int64_t code);
    void set_barrier_failure(std::int64_t code);
    // Answers the high watermark of the moment.
    Offset watch_commit();
    // Records and bytes that wait for their commit.
    void waiting(std::int64_t *records, std::int64_t *bytes);

    // --- clients' connections: see ClientFastPath --------------------------------------------------------------------

    void serve_produce(ProduceService service);
    void serve_beats(std::shared_ptr<SteadyBeats> beats, Micros confirmed_us_max);
    bool is_confirmed(Micros within_us);
    bool await_observers(const std::vector<std::int32_t> &ids, Offset offset);
    // Python has dealt with so many frames of this connection, and owes it nothing.
    void settled(Connection connection, std::int64_t frames);

    // --- what it takes: see trace.h ----------------------------------------------------------------------------------

    // In the order of `Measure`.
    std::vector<Histogram> stage_histograms();
    // Record the latest `capacity` groups from now on.
    void trace_start(std::size_t capacity);
    void trace_stop();
    // What is recorded; how many groups more were, and have been overwritten. The lock is held for a part of it at a time.
    std::int64_t trace_read(std::vector<Group> *groups, std::vector<AnnouncedRange> *ranges);

    // --- connections: see ConnectionTable ----------------------------------------------------------------------------

    std::int64_t connection_count();
    int add(Connection number, int descriptor, bool is_accepted, Micros at_us);
    bool knows(Connection connection);
    // Nothing is sent on it any more, though Python has not closed it yet.
    bool is_broken(Connection connection);
    bool is_accepted(Connection connection);
    bool needs_drain(Connection connection);
    bool is_crowded();
    void favour(Connection connection);
    void send_frame(Connection connection, Span frame);
    void close_connection(Connection connection);
    void break_off(Connection connection);
    void close_all(Micros at_us);
    std::vector<Connection> overdue(Micros at_us, Micros partial_us_max, Micros idle_us_max, Micros connect_us_max);
    Connection oldest_silent(Micros at_us, Micros silent_us_min);

   private:
    // It is the same as long as the engine is.
    const AnnouncementsRef &announcements() noexcept { return lane_.trace().announcements(); }

    const pid_t process_ = System::process();  // a forked child is another one, and has no threads
    const Limits limits_;               // what the node is held to
    NewsQueue news_;                    // what Python is to be told
    LaneOutputs outputs_;               // carries out what the lane says; the one part that reaches parts below it, as the lane calls it
    ReplicaLane lane_;                  // the lane, the end of the log, and whether anything may be sent
    SyncQueue syncs_;                   // what is to be synced
    SocketsWakeup wakeup_;              // what the sockets' thread is to look for
    LaneLock lock_;                     // the lane lock
    ConnectionTable connections_;       // all connections, and what is kept for them
    ProduceAnswers produces_;           // Produces that wait for their commit here
    PythonWatch python_watch_;          // whether Python still takes its news
    AppendQueue appends_;               // appends and barriers, and who waits for them
    ClientFastPath fast_path_;          // clients' requests that need no Python
    FlusherThread flusher_;             // does the syncs
    SocketsThread sockets_;             // does what comes from sockets, and the lane's deadlines
};

}  // namespace fastquorum::node
