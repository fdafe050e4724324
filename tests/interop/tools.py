"""Apache Kafka's command-line tools, one after the other in one JVM that stays: see Tools.java."""

from pathlib import Path
from typing import Final, NamedTuple

from .java_driver import JavaDriver
from .kafka import TOOL_S, Kafka

TOPICS: Final = "org.apache.kafka.tools.TopicCommand"
CONFIGS: Final = "kafka.admin.ConfigCommand"
REASSIGN_PARTITIONS: Final = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
LEADER_ELECTION: Final = "org.apache.kafka.tools.LeaderElectionCommand"
FEATURES: Final = "org.apache.kafka.tools.FeatureCommand"
METADATA_QUORUM: Final = "org.apache.kafka.tools.MetadataQuorumCommand"
CLUSTER: Final = "org.apache.kafka.tools.ClusterTool"
LOG_DIRS: Final = "org.apache.kafka.tools.LogDirsCommand"
CONSUMER_GROUPS: Final = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


class ToolRun(NamedTuple):
    """What a tool ended with."""

    code: int
    out: str
    err: str


class Tools(JavaDriver):
    """A context manager."""

    def __init__(self, kafka: Kafka, scratch: Path) -> None:
        super().__init__(kafka, scratch, ["Tools.java"])

    def call(self, tool: str, *words: str | Path) -> ToolRun:
        """One of them, by its class, whatever its exit code; -1 if it hangs."""
        request = {"class": tool, "arguments": [str(word) for word in words], "timeout_ms": TOOL_S * 1000}
        return ToolRun(*self.ask(request))

    def run(self, tool: str, *words: str | Path) -> str:
        """What it prints. AssertionError if its exit code is not 0."""
        run = self.call(tool, *words)
        assert run.code == 0, f"{tool} {' '.join(map(str, words))}\n{run.out}{run.err}"
        return run.out
