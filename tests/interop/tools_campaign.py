"""The same commands of Kafka's tools to Kafka's brokers on Kafka's controllers, and then on ours: they are to print the
same, but for ids, ports and times."""

import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from .brokers import LOOK_S, Cluster, cluster
from .kafka import Kafka
from .nodes import DIRECTORY_IDS
from .tools import (
    CLUSTER,
    CONFIGS,
    CONSUMER_GROUPS,
    FEATURES,
    LEADER_ELECTION,
    LOG_DIRS,
    REASSIGN_PARTITIONS,
    TOPICS,
    ToolRun,
)
from .tools_shell import COMMANDS, FILES, SETTINGS, SHELL, look

DIFFERENT: Final[Mapping[str, str]] = {}
"""Commands that are answered otherwise by our controllers, and why that is right."""
SETTLE_S: Final = 15.0
"""Brokers hear of a change a little later than who asked for it: so long ours may say something else than Kafka's."""
UNDER_WAY: Final = "still in progress"
"""What a tool says of a move that the next steps would meet on one cluster, and not on the other."""
RECORDS: Final = 30

_EXCEPTION: Final = re.compile(r"[\w.]+(?:Exception|Error)\b")
_VARIABLES: Final = (
    (re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])"), "ID"),
    (re.compile(r'"size":\d+'), '"size":N'),
    (re.compile(r"\bEpoch: \d+"), "Epoch: N"),
    (re.compile(r"PORT-\d+\s+\(\d+\)"), "COORDINATOR"),
    (re.compile(r"(?m)^\s+at .*\n?"), ""),
    (re.compile(r"(?<=\[)\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"), "TIME"),
    (re.compile(r"(?<=Registration\()(id=\d+), epoch=\d+"), r"\1, epoch=N"),
    (re.compile(r"\b(salt|storedKey|serverKey)=[0-9a-f]+"), r"\1=SECRET"),
    (re.compile(r"(?<=nextProducerId:\n  )\d+"), "ID"),
    (re.compile(r"offset \d+, epoch \d+, time \S+"), "offset N, epoch N, time TIME"),
)


class Step(NamedTuple):
    """One command. {at} and {controllers} are where the brokers and controllers are, {plan} is a file with the plan."""

    tool: str
    words: str
    plan: str = ""

    def __str__(self) -> str:
        return f"{self.tool.rpartition('.')[2]} {self.words}" + (f" of {self.plan}" if self.plan else "")


def _moves(**replicas: Sequence[int]) -> str:
    partitions = [{"topic": topic, "partition": 0, "replicas": list(each)} for topic, each in replicas.items()]
    return json.dumps({"version": 1, "partitions": partitions})


def _of(tool: str, *lines: str, at: str = "--bootstrap-server {at}") -> list[Step]:
    return [Step(tool, f"{at} {words}") for words in lines]


AT_CONTROLLERS: Final = "--bootstrap-controller {controllers}"
NOWHERE: Final = json.dumps({"version": 1, "topics": [{"topic": "nowhere"}]})
SCRIPT: Final = [
    *_of(
        TOPICS,
        "--create --topic one --replica-assignment 11:12:13,12:13:11 --config retention.ms=90000000",
        "--create --topic two --replica-assignment 11,12",
        "--create --topic spread --partitions 3 --replication-factor 2",
        "--create --topic one --partitions 1",
        "--create --topic one --partitions 1 --if-not-exists",
        "--create --topic wide --partitions 1 --replication-factor 4",
        "--create --topic none --partitions 0",
        "--create --topic bad/name --partitions 1",
        "--create --topic odd --partitions 1 --config retention.ms=soon",
        "--create --topic odd --partitions 1 --config no.such=1",
        "--create --topic odd --replica-assignment 11:11",
        "--create --topic odd --replica-assignment 11:99",
        "--create --topic odd --replica-assignment 11:12,13",
        "--list",
        "--describe --topic one",
        "--describe --topic two",
        "--describe --topic nowhere",
        "--alter --topic two --partitions 3 --replica-assignment 11,12,13",
        "--alter --topic two --partitions 2",
        "--alter --topic two --partitions 3",
        "--alter --topic nowhere --partitions 3",
        "--alter --topic one --partitions 3 --replica-assignment 11:12:13,12:13:11,13:99:11",
        "--describe --topic two",
        "--describe --under-replicated-partitions",
        "--describe --unavailable-partitions",
        "--describe --topics-with-overrides",
        "--delete --topic nowhere",
        "--delete --topic nowhere --if-exists",
        "--delete --topic spread",
        "--list",
    ),
    *_of(
        CONFIGS,
        "--alter --entity-type topics --entity-name one --add-config cleanup.policy=compact,max.message.bytes=9000",
        "--alter --entity-type topics --entity-name one --delete-config max.message.bytes",
        "--alter --entity-type topics --entity-name one --delete-config max.message.bytes",
        "--alter --entity-type topics --entity-name one --add-config retention.ms=soon",
        "--alter --entity-type topics --entity-name one --add-config no.such=1",
        "--alter --entity-type topics --entity-name nowhere --add-config retention.ms=1000",
        "--describe --entity-type topics --entity-name one",
        "--describe --entity-type topics --entity-name one --all",
        "--alter --entity-type brokers --entity-default --add-config log.retention.ms=80000000",
        "--alter --entity-type brokers --entity-name 11 --add-config log.cleaner.threads=2",
        "--alter --entity-type brokers --entity-name 11 --add-config log.dirs=/elsewhere",
        "--alter --entity-type brokers --entity-name 99 --add-config log.cleaner.threads=2",
        "--describe --entity-type brokers --entity-default",
        "--describe --entity-type brokers --entity-name 11",
        "--alter --entity-type clients --entity-name app --add-config producer_byte_rate=1024,request_percentage=12.5",
        "--alter --entity-type clients --entity-name app --add-config producer_byte_rate=0",
        "--alter --entity-type clients --entity-name app --add-config no_such=1",
        "--alter --entity-type users --entity-name alice --entity-type clients --entity-default --add-config"
        " consumer_byte_rate=2048",
        "--alter --entity-type users --entity-name alice --add-config SCRAM-SHA-256=[iterations=8192,password=pencil]",
        "--alter --entity-type users --entity-name alice --add-config SCRAM-SHA-256=[iterations=1,password=pencil]",
        "--alter --entity-type users --entity-name bob --delete-config SCRAM-SHA-512",
        "--alter --entity-type ips --entity-name 10.0.0.1 --add-config connection_creation_rate=7",
        "--alter --entity-type groups --entity-name readers --add-config consumer.session.timeout.ms=50000",
        "--alter --entity-type groups --entity-name readers --add-config consumer.session.timeout.ms=1",
        "--alter --entity-type client-metrics --entity-name seen --add-config interval.ms=30000",
        "--alter --entity-type client-metrics --entity-name seen --add-config interval.ms=1",
        "--describe --entity-type clients",
        "--describe --entity-type users",
        "--describe --entity-type users --entity-name alice --entity-type clients --entity-default",
        "--describe --entity-type ips",
        "--describe --entity-type groups --entity-name readers",
        "--describe --entity-type client-metrics --entity-name seen",
        "--alter --entity-type clients --entity-name app --delete-config producer_byte_rate,request_percentage",
        "--describe --entity-type clients",
    ),
    *_of(
        CONFIGS,
        "--alter --entity-type topics --entity-name two --add-config retention.ms=1000000",
        "--describe --entity-type brokers --entity-default",
        "--describe --entity-type brokers --entity-name 1",
        "--describe --entity-type brokers --entity-name 11",
        "--describe --entity-type topics --entity-name one",
        "--describe --entity-type topics --entity-name one --all",
        "--describe --entity-type topics --entity-name nowhere",
        "--describe --entity-type groups --entity-name readers",
        "--describe --entity-type client-metrics --entity-name seen",
        "--describe --entity-type brokers --entity-default --all",
        at=AT_CONTROLLERS,
    ),
    *(
        Step(REASSIGN_PARTITIONS, f"--bootstrap-server {{at}} {words}", plan)
        for words, plan in (
            ("--topics-to-move-json-file {plan} --broker-list 12,13,11 --generate", NOWHERE),
            ("--reassignment-json-file {plan} --execute", _moves(two=[13])),
            ("--reassignment-json-file {plan} --verify", _moves(two=[13])),
            ("--list", ""),
            ("--reassignment-json-file {plan} --execute", _moves(two=[99])),
            ("--reassignment-json-file {plan} --execute", _moves(nowhere=[11])),
            ("--reassignment-json-file {plan} --execute", _moves(two=[11, 11])),
            ("--reassignment-json-file {plan} --cancel", _moves(two=[13])),
        )
    ),
    *_of(TOPICS, "--describe --topic two"),
    *_of(
        LEADER_ELECTION,
        "--topic one --partition 0 --election-type PREFERRED",
        "--topic one --partition 0 --election-type UNCLEAN",
        "--topic nowhere --partition 0 --election-type PREFERRED",
        "--topic one --partition 9 --election-type UNCLEAN",
    ),
    *_of(
        FEATURES,
        "describe",
        "downgrade --feature streams.version=0",
        "describe",
        "upgrade --feature streams.version=1",
        "upgrade --feature streams.version=1",
        "upgrade --feature streams.version=9",
        "upgrade --feature no.such=1",
        "downgrade --metadata 4.2",
        "downgrade --metadata 3.2",
        "upgrade --release-version 4.3",
        "upgrade --metadata 4.3 --dry-run",
        "downgrade --feature group.version=0 --dry-run",
        "disable --feature transaction.version --dry-run",
        "disable --feature metadata.version",
    ),
    *_of(FEATURES, "describe", at=AT_CONTROLLERS),
    *(
        Step(CLUSTER, words)
        for words in (
            "cluster-id --bootstrap-server {at}",
            "cluster-id --bootstrap-controller {controllers}",
            "list-endpoints --bootstrap-server {at}",
            "list-endpoints --bootstrap-server {at} --include-fenced-brokers",
            "list-endpoints --bootstrap-controller {controllers}",
            "unregister --bootstrap-server {at} --id 99",
        )
    ),
    *_of(
        LOG_DIRS,
        "--describe --topic-list one,two",
        "--describe --topic-list one,two --broker-list 12",
        "--describe --topic-list one --broker-list 99",
    ),
    *_of(
        CONSUMER_GROUPS,
        "--list",
        "--list --state",
        "--describe --group readers",
        "--describe --group readers --state",
        "--describe --group nowhere",
        "--group readers --topic two --reset-offsets --to-earliest --dry-run",
        "--group readers --topic two --reset-offsets --to-earliest --execute",
        "--describe --group readers --offsets",
        "--delete --group nowhere",
        "--delete --group readers",
        "--list",
    ),
]  # fmt: skip
LOOKS: Final = [Step(SHELL, f"--snapshot {file}: {command}") for file in FILES for command in COMMANDS]
"""The final commands, on files."""


class Played:
    """The script on one cluster."""

    def __init__(self, kafkas: Cluster, root: Path) -> None:
        self._kafkas = kafkas
        self._plan = root / "plan.json"

    def prepare(self) -> None:
        """Before the groups are asked for there is one."""
        writer = self._kafkas.producer()
        self._kafkas.topics("--create", "--topic", "read", "--replica-assignment", "11:12:13")
        writer.write("read", [b"%d" % number for number in range(RECORDS)])
        assert writer.errors == []
        self._kafkas.consumed("read", "readers", RECORDS)

    def say(self, step: Step) -> ToolRun:
        """What it says, made plain."""
        self._kafkas.brokers_caught_up()
        self._plan.write_text(step.plan)
        given = {"at": self._kafkas.bootstrap, "controllers": self._kafkas.bootstrap_controllers, "plan": self._plan}
        printed = self._kafkas.tools.call(step.tool, *(word.format(**given) for word in step.words.split()))
        return ToolRun(printed.code, self.plain(printed.out), self.plain(printed.err))

    def plain(self, text: str) -> str:
        """Without what differs from run to run."""
        for each in self._kafkas.members:
            text = re.sub(rf"\b{each.port}\b", f"PORT-{each.id}", text)
            text = text.replace(str(each.directory), f"DIRECTORY-{each.id}")
        for pattern, name in _VARIABLES:
            text = pattern.sub(name, text)
        # Tables are as wide as what was replaced, and the order of some lines is that of a hash.
        return "\n".join(sorted(" ".join(line.split()) for line in text.splitlines()))


def _looks(step: Step) -> bool:
    """It changes nothing, and may be asked again."""
    return not {"--describe", "--list", "--verify", "describe", "list-endpoints"}.isdisjoint(step.words.split())


def _settled(played: Played, step: Step) -> ToolRun:
    """If it only looks: what it says twice in a row, and of nothing that is still under way."""
    printed = played.say(step)
    until = time.monotonic() + SETTLE_S
    while _looks(step):
        before, printed = printed, played.say(step)
        if (printed == before and UNDER_WAY not in printed.out) or time.monotonic() > until:
            break
    return printed


def _compared(played: Played, step: Step, wanted: ToolRun) -> ToolRun:
    """If it only looks: what is wanted, if it is to be had."""
    printed = played.say(step)
    until = time.monotonic() + SETTLE_S
    while _looks(step) and printed != wanted and time.monotonic() < until:
        time.sleep(LOOK_S)
        printed = played.say(step)
    return printed


def _play(kafka: Kafka, theirs: Sequence[int], ask: Callable[[Played, int], ToolRun]) -> list[ToolRun]:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        with cluster(kafka, root, theirs=theirs, settings=SETTINGS) as kafkas:
            played = Played(kafkas, root)
            played.prepare()
            printed = [ask(played, number) for number in range(len(SCRIPT))]
            return [*printed, *(ToolRun(0, played.plain(each), "") for each in look(kafka, kafkas))]


def tools(kafka: Kafka, say: Callable[[str], None]) -> dict[str, Any]:
    """A report."""
    say("Kafka's brokers on Kafka's controllers")
    wanted = _play(kafka, tuple(DIRECTORY_IDS), lambda played, number: _settled(played, SCRIPT[number]))
    say("Kafka's brokers on ours")
    printed = _play(kafka, (), lambda played, number: _compared(played, SCRIPT[number], wanted[number]))
    found: dict[str, Counter[str]] = {"equal": Counter(), "other words": Counter(), "different": Counter()}
    different = []
    for step, theirs, ours in zip([*SCRIPT, *LOOKS], wanted, printed, strict=True):
        how = "equal" if theirs == ours else "other words" if _is_same_error(theirs, ours) else "different"
        found[how][step.tool.rpartition(".")[2]] += 1
        if how != "equal":
            different.append({"step": str(step), "how": how, "kafkas": theirs._asdict(), "ours": ours._asdict()})
    wrong = [each["step"] for each in different if each["how"] == "different" and each["step"] not in DIFFERENT]
    return {
        "kafka": kafka.version,
        **found,
        "not_equal": different,
        "problems": [f"{step}: it says something else" for step in wrong],
    }


def _is_same_error(one: ToolRun, other: ToolRun) -> bool:
    """The same exit code and exceptions, whatever is said about them."""
    exceptions = [{*_EXCEPTION.findall(each.out + each.err)} for each in (one, other)]
    is_error = one.code != 0 or exceptions[0]
    return bool(is_error) and one.code == other.code and exceptions[0] == exceptions[1]
