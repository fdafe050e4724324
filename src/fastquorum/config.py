"""The numbers a replica runs by. Plain values; reading them from files and the environment is node/io's business.

Names and defaults are Kafka's (`QuorumConfig`), in microseconds and bytes. Source: KIP-595 "Configurations".
"""

from dataclasses import dataclass

from fastquorum.types import Micros

MS: int = 1_000
SECOND: int = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumConfig:
    """Timeouts and bounds of one replica."""

    election_timeout_us: Micros = 1_000 * MS
    """An election waits this long plus a random part below the same again."""
    fetch_timeout_us: Micros = 2_000 * MS
    """A follower that hears nothing from its leader for this long stands for election."""
    election_backoff_us_max: Micros = 1_000 * MS
    """Longest wait that EndQuorumEpoch's order of candidates may impose."""
    request_timeout_us: Micros = 2_000 * MS
    retry_backoff_us: Micros = 20 * MS
    fetch_wait_us_max: Micros = 500 * MS
    """How long a leader may park a follower's Fetch."""
    fetch_bytes_max: int = 1024 * 1024
    fetch_snapshot_bytes_max: int = 1024 * 1024
    """Most of a snapshot that one FetchSnapshot asks for, or is answered with."""
    observer_expiry_us: Micros = 300 * SECOND
    batch_bytes_max: int = 8 * 1024 * 1024
    segment_bytes: int = 1024 * 1024 * 1024
    preallocate_bytes: int = 16 * 1024 * 1024
    """Segments are zero-filled ahead of use, this far."""
    mark_interval_us: Micros = 1_000 * MS
    """The durable mark is renewed at most this often."""
    frame_bytes_max: int = 100 * 1024 * 1024
    connections_max: int = 1024
    connection_idle_us_max: Micros = 600 * SECOND
    partial_frame_us_max: Micros = 10 * SECOND
    """A frame that has begun must be whole within this time, and an answer read."""
    append_queue_records_max: int = 65_536
    append_queue_bytes_max: int = 64 * 1024 * 1024
    """Appends not yet committed; beyond either bound appends are refused with Overloaded."""
    idle_us_max: Micros = 500 * MS
    """The leader of a metadata log that appends nothing for this long appends a no-op; 0: never."""
    snapshot_log_bytes: int = 20 * 1024 * 1024
    """So much of the log since the last snapshot of it makes the next one."""
    snapshot_interval_us: Micros = 3_600 * SECOND
    """So much time does, if anything was committed since; 0: never."""
    retention_bytes: int = 100 * 1024 * 1024
    """Bytes of log and snapshots together above which records that a later snapshot covers are removed; 0: never."""
    retention_us: Micros = 7 * 24 * 3_600 * SECOND
    """Age above which records that a later snapshot covers are removed; 0: never."""
    disk_stall_us_max: Micros = 10 * SECOND
    """A leader resigns if a sync takes longer than this, or if Python takes nothing from the native threads for as
    long."""

    busy_poll_us: Micros = 0
    """How long the thread of the native sockets polls for events before it sleeps; 0: it sleeps at once."""

    @property
    def fetch_answer_us_max(self) -> Micros:
        """How long a follower waits for the answer to a Fetch: as for any other, but longer than it may be parked."""
        return max(self.request_timeout_us, self.fetch_wait_us_max * 3 // 2)

    @property
    def check_quorum_us(self) -> Micros:
        """A leader that no majority fetches from for this long resigns: 1.5 x the fetch timeout (KAFKA-15489)."""
        return self.fetch_timeout_us * 3 // 2
