"""What there is to tell of a demo in the end: on the screen, or as JSON."""

from typing import NamedTuple


class DemoOutcome(NamedTuple):
    """All there is to tell of a quorum's demo. The fields are the keys of --format json."""

    records: int
    acknowledged: int
    lost: int
    duplicated: int
    elections: int
    kills: int
    settled: int
    """Appends that had no answer at first, and were looked up before anything was sent again."""
    commit_p50_us: int
    commit_p99_us: int
    commits_per_s: float
    replicas_identical: bool
    topics: int
    partitions: int
    brokers: int
    verdict: str
    problems: list[str]


class ClusterOutcome(NamedTuple):
    """All there is to tell of a cluster's demo. The fields are the keys of --format json."""

    controllers: int
    brokers: int
    acknowledged: int
    """Registrations, topics, fencings and leaves."""
    lost: int
    registrations: int
    topics: int
    fencings: int
    """Acknowledged fencings of killed brokers."""
    leaves: int
    """Acknowledged leaves of brokers that got SIGTERM, and handed over their leads first."""
    partitions: int
    elections: int
    kills: int
    refusals: list[str]
    """Error names that requests under outdated tokens got."""
    fenced_after_s: float
    taken_over_after_s: float
    fenced_leads: int
    end_offset: int
    """The images at this one were compared."""
    images_equal: bool
    verdict: str
    problems: list[str]
