"""Questions about many logs: commands of `fastquorum spark`, and what they are called in one process."""

from typing import Final

QUESTIONS: Final = {
    "audit-replicas": "do the replicas of each cluster hold the same bytes?",
    "audit-invariants": "does each log keep the invariants of a quorum?",
    "anomalies": "storms, flapping brokers, ISR churn: what is unusual, by how much",
    "timeline": "leaders, fenced brokers, and for how long partitions lacked replicas",
    "image-diff": "what changed in each cluster, or differs between two",
    "placement": "how replicas and leaders are spread, what a loss does, what repairs it",
    "latency": "percentiles of many runs of load as one, and what became slower",
}
"""What each asks."""
IN_ONE_PROCESS: Final = {
    "audit-replicas": "audit replicas",
    "audit-invariants": "audit invariants",
    **{name: f"report {name}" for name in ("timeline", "placement", "anomalies", "latency", "image-diff")},
}
