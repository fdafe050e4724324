"""Warnings and errors in logs, reduced to classes: what a mixed quorum may log is what Kafka's controllers alone log in
the same scenario.

    python -m tests.interop.campaign reference      # has them play every scenario, and writes log_lines.json

A class is level, logger and message without what differs from run to run, the requests that it is about, and the
exceptions below it.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from .mixed import Member

REFERENCE: Final = Path(__file__).with_name("log_lines.json")

_LINE: Final = re.compile(r"(WARN|ERROR|FATAL) (\S+) (.*)")
_EXCEPTION: Final = re.compile(r"(?:[a-z]\w*\.)+([A-Z]\w*(?:Exception|Error))")
_REQUEST: Final = re.compile(r"(\w+)RequestData\(|apiKey=(\w+)")
_BRACKETS: Final = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}")
_VARIABLES: Final = (
    (re.compile(r"'[^']*'|\"[^\"]*\""), "'...'"),
    (re.compile(r"(?<![\w.])/\S+"), "PATH"),
    (re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])"), "ID"),
    (re.compile(r"-?\b\d+"), "N"),
    (re.compile(r"\s+"), " "),
)

_NO_CONTROLLER: Final = (
    "a controller registers with the active one; ours only keeps the log, and is asked again and again"
)
_STOPPING: Final = "as it has not registered it still asks, of one that is just stopping, which Kafka's does not expect"
EXCEPTIONS: Final[Mapping[str, str]] = {
    "ERROR NodeToControllerRequestThread: Request ControllerRegistrationRequestData failed due to unsupported version "
    "error | ControllerRegistration | UnsupportedVersionException": _NO_CONTROLLER,
    "ERROR ControllerRegistrationManager: RegistrationResponseHandler: unsupported API version error | "
    "UnsupportedVersionException": _NO_CONTROLLER,
    "ERROR ControllerRegistrationManager: RegistrationResponseHandler: channel manager timed out before sending the "
    "request.": "it has not registered when it is stopped",
    "ERROR ControllerApis: Unexpected error handling request RequestHeader -- ControllerRegistrationRequestData with "
    "context RequestContext | CONTROLLER_REGISTRATION | ControllerRegistration | CompletionException | "
    "NotControllerException": "as it has not registered it asks the next leader before that one is active",
    "ERROR ControllerApis: Unexpected error handling request RequestHeader -- ID with context RequestContext | "
    "API_VERSIONS | ApiVersions | NullPointerException": _STOPPING,
    "WARN NetworkClient: Received error UNKNOWN_SERVER_ERROR from node N when making an ApiVersionsRequest with "
    "correlation id N. Disconnecting.": _STOPPING,
}
"""Classes that Kafka's controllers log beside ours only, and why that is right."""

_BUSY: Final = (
    re.compile(r"\w+ EventPerformanceMonitor: Exceptionally slow controller event \w+ took N ms\."),
    re.compile(r"\w+ QuorumController: Renouncing the leadership due to a metadata log event\. .*"),
)
"""Kafka's controllers say so of a machine that is busy with something else, and of a lead that ends with it."""
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z ")
OURS: Final[Mapping[str, str]] = {
    r"fastquorum: node \d+ of cluster \S+ listens, reached at \S+, data \S+": "it was started",
    r"fastquorum: nobody leads epoch \d+( \(.*\))?": "an election began (--verbose)",
    r"fastquorum: node \d+ leads epoch \d+( \(.*\))?": "it ended (--verbose)",
    r"fastquorum: node \d+ at \S+ is of another cluster than \S+ \(INCONSISTENT_CLUSTER_ID\): nothing comes of it "
    "until the right data directory runs there, or here": "that is so in one scenario",
    r"fastquorum: node \d+ at \S+ (cannot be reached for .*|can be reached again)": "a node was stopped (--verbose)",
    r"fastquorum: no leader is known: .*": "a majority was stopped",
    r"fastquorum: a snapshot of all below offset \d+ was taken: \d+ bytes": "it keeps its log short (--verbose)",
}
"""Whatever else a node of ours prints is a warning or an error."""
OURS_IN: Final[Mapping[str, str]] = {
    "stale directory": r"fastquorum: node 3 at \S+, directory id \S+, had all below offset \d+ on its disk, and has "
    r"\d+ now: its directory was formatted anew, restored or copied; .*",
}
"""By scenario: the warning that a node of ours must give there."""
_FORGOTTEN: Final = (
    r"fastquorum: node \d+ at \S+, directory id \S+, was in epoch \d+, and is in epoch \d+ now: its directory was "
    r"formatted .*"
)
OURS_PERHAPS_IN: Final[Mapping[str, str]] = {"snapshots": _FORGOTTEN, "stale directory": _FORGOTTEN}
"""By scenario: one that it gives if the node that lost its directory happens to ask it before it knows the epoch."""
THEIRS_PERHAPS_IN: Final[Mapping[str, Collection[str]]] = {
    "another cluster": {
        "ERROR KafkaRaftClient: Unexpected error INCONSISTENT_CLUSTER_ID in VOTE response: InboundResponse",
    }
}
"""By scenario: what Kafka's controllers say there if a busy machine makes them stand for election."""


def classes(text: str) -> set[str]:
    """Return the classes of the lines that a JVM logged."""
    found = set()
    lines = text.splitlines()
    for number, line in enumerate(lines):
        matched = _LINE.fullmatch(line)
        if matched:
            below = lines[number + 1] if number + 1 < len(lines) else ""
            thrown = [] if _LINE.match(below) else _EXCEPTION.findall(below) if _EXCEPTION.match(below) else []
            level, logger, message = matched.groups()
            found.add(_class(level, logger, message, thrown))
    return found


def _class(level: str, logger: str, message: str, thrown: Iterable[str]) -> str:
    about = {first or second for first, second in _REQUEST.findall(message)}
    while (shorter := _BRACKETS.sub("", message)) != message:
        message = shorter
    for pattern, name in _VARIABLES:
        message = pattern.sub(name, message)
    printed = f"{level} {logger.rpartition('.')[2]}: {message.strip()}"
    return " | ".join([printed, *sorted(about), *thrown])


def logged(members: Iterable[Member]) -> set[str]:
    """By Kafka's controllers."""
    return {each for member in members if not member.is_ours for each in classes(member.printed())}


def printed_by_ours(members: Iterable[Member]) -> set[str]:
    """Lines of our nodes that tell of anything but what they are asked to tell."""
    lines = {line for member in members if member.is_ours for line in member.printed().splitlines()}
    return {line for line in lines if not any(re.fullmatch(usual, _TIME.sub("", line)) for usual in OURS)}


def unheard_of(members: Sequence[Member], scenario: str) -> list[str]:
    """What should not have been logged in this scenario, and what should have been and was not."""
    known = json.loads(REFERENCE.read_text())["scenarios"]
    assert scenario in known, f"{scenario!r} is not in {REFERENCE.name}: record it with the campaign"
    unknown = {each for each in logged(members) if not any(busy.fullmatch(each) for busy in _BUSY)}
    ours = printed_by_ours(members)
    missing = []
    if (wanted := OURS_IN.get(scenario)) and any(member.is_ours for member in members):
        warned = {line for line in ours if re.fullmatch(wanted, _TIME.sub("", line))}
        ours -= warned
        missing = [] if warned else [f"no node of ours gives the warning {wanted!r}"]
    perhaps = OURS_PERHAPS_IN.get(scenario, "")
    ours = {line for line in ours if not re.fullmatch(perhaps, _TIME.sub("", line))}
    unknown -= {*known[scenario], *EXCEPTIONS, *THEIRS_PERHAPS_IN.get(scenario, ())}
    return sorted(unknown) + sorted(ours) + missing


def record(scenario: str, found: set[str], kafka_version: str) -> None:
    """Beside what was recorded of it before: some classes show in one run and not in the next."""
    before = json.loads(REFERENCE.read_text())["scenarios"] if REFERENCE.exists() else {}
    all_of_it = sorted(found.union(before.get(scenario, ())))
    written = {"kafka": kafka_version, "scenarios": {**before, scenario: all_of_it}}
    REFERENCE.write_text(json.dumps(written, indent=1, sort_keys=True) + "\n")
