"""Questions about many logs: commands of `fastquorum spark`, and what they are called in one process."""

from typing import Final

QUESTIONS: Final = {
    "audit-replicas": "do the replicas of each cluster hold the same bytes?",
    "audit-invariants": "does each log keep the promises of a quorum?",
    "anomalies": "storms, flapping brokers, ISR churn: what is unusual, by how much",
    "timeline": "who led, who was fenced, which partitions lacked replicas, and how long",
    "image-diff": "what changed in each cluster, or differs between two",
    "placement": "how replicas and leaders lie, what a loss does, what would repair it",
    "latency": "percentiles of many runs of load as one, and what became slower",
}
"""What each asks."""
IN_ONE_PROCESS: Final = {
    "audit-replicas": "audit replicas",
    "audit-invariants": "audit invariants",
    **{name: f"report {name}" for name in ("timeline", "placement", "anomalies", "latency", "image-diff")},
}
