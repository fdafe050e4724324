"""`fastquorum wire replay`: the requests of a recording, asked again; the answers compared with the recorded ones."""

import argparse
import contextlib
import sys
from collections import Counter
from enum import Enum
from itertools import chain, islice
from typing import Any, NamedTuple

from fastquorum.cli.terminal.arguments import add_format, add_timeout, explain
from fastquorum.cli.terminal.file_limit import raise_file_limit
from fastquorum.cli.terminal.output import print_json, progress, tell
from fastquorum.cli.wire.batches import inside_batches
from fastquorum.cli.wire.compare import DEFAULT_IGNORED, FieldDifference, Ignored, differences, first_difference
from fastquorum.cli.wire.decode import response_fields
from fastquorum.cli.wire.exchanges import is_answered
from fastquorum.cli.wire.lines import Line, api_key
from fastquorum.cli.wire.recorded import RecordedExchange, count_lines, line_texts, recorded
from fastquorum.cli.wire.recording import api_name
from fastquorum.client.connection import Connection, Deadline, NoAnswer, NotSent
from fastquorum.client.endpoints import parse_endpoint
from fastquorum.errors import FrameError, UsageError, WireError
from fastquorum.types import Endpoint


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Send the requests of a recording (`wire sniff`, or the same format) to a node, byte for byte, one after the "
        "other, and compare its answers with the recorded ones, field by field. One connection is made for each "
        "recorded one.\n\n"
        "BEWARE: the node cannot tell a replay. Replayed writes (Produce, Vote, CreateTopics, ...) change it: choose "
        "a node that may be changed, and select APIs with --only.\n\n"
        "Exits 0 if all answers are the same, 1 if one differs or is missing, 2 if lines could not be read, or there "
        "was nothing to send. Ignored fields do not count; always ignored, unless --strict: "
        f"{', '.join(DEFAULT_IGNORED)}.",
        "fastquorum wire replay frames.jsonl --to 127.0.0.1:9093",
        "fastquorum wire replay frames.jsonl.gz --to h1:9093 --only Fetch,Metadata --ignore clusterId --ignore "
        "'brokers[].port'",
        "fastquorum wire replay - --to h1:9093 --format json < frames.jsonl",
    )
    parser.add_argument("file", metavar="FILE", help="the recording, plain or gzip; - is stdin")
    parser.add_argument("--to", metavar="HOST:PORT", required=True, help="the node that gets the requests")
    parser.add_argument(
        "--ignore",
        metavar="FIELD",
        action="append",
        default=[],
        help="a field that may differ, as in response_json, and all below it: `port` anywhere, `brokers[].port` from "
        "the top, `Metadata:port` for one API; below `records` stand the batches' fields; may be repeated",
    )
    parser.add_argument("--strict", action="store_true", help="ignore nothing but what --ignore says")
    parser.add_argument("--only", metavar="API,...", help="replay these APIs only")
    parser.add_argument("--server", metavar="NAME", help="replay only the requests to this recorded server")
    parser.add_argument("--one-connection", action="store_true", help="send everything on one connection")
    add_timeout(parser, "wait this long for each answer")
    add_format(parser)


class ReplayVerdict(Enum):
    """How an answer compares to the recorded one."""

    SAME = "same"
    IGNORED = "same but for ignored fields"
    DIFFERENT = "different"
    UNANSWERED = "not answered"
    NOT_COMPARED = "not compared, since no answer was recorded"
    NOT_SENT = "not sent, since no whole request was recorded"

    @property
    def is_bad(self) -> bool:
        return self in (ReplayVerdict.DIFFERENT, ReplayVerdict.UNANSWERED)


class ReplayOutcome(NamedTuple):
    """What came of one request."""

    verdict: ReplayVerdict
    differences: tuple[FieldDifference, ...] = ()
    reason: str = ""
    """What there is to say beside the differences."""


def run(arguments: argparse.Namespace) -> int:
    target = parse_endpoint("--to", arguments.to)
    ignored = Ignored([*(() if arguments.strict else DEFAULT_IGNORED), *arguments.ignore])
    only = None if arguments.only is None else _names(arguments.only)
    raise_file_limit()
    summary = _Summary(arguments.format)
    total = count_lines(arguments.file) if sys.stderr.isatty() else 0
    with contextlib.ExitStack() as stack:
        texts = line_texts(arguments.file)
        begun = list(islice(texts, 1))  # or there is nothing to sum up
        stack.callback(summary.show)  # also of what was done until an error, or Ctrl-C
        asker = stack.enter_context(contextlib.closing(_Asker(target, arguments.timeout, arguments.one_connection)))
        advance = stack.enter_context(progress("requests", total)) if total else lambda done: None
        for number, text in chain(begun, texts):
            try:
                line = recorded(text)
            except UsageError as error:
                summary.add_bad(number, error)
                continue
            finally:
                advance(1)
            if line is None:
                summary.add(number, None, ReplayOutcome(ReplayVerdict.NOT_SENT))
            elif _is_wanted(line, only, arguments.server):
                summary.add(number, line, _compare(line, asker, ignored))
            else:
                summary.left_out += 1
    summary.check_sent(arguments.file)
    return summary.exit_code


def _names(text: str) -> set[str]:
    return {api_name(api_key(part.strip(), "--only")) for part in text.split(",")}


def _is_wanted(line: RecordedExchange, only: set[str] | None, server: str | None) -> bool:
    return (only is None or api_name(line.api_key) in only) and (server is None or line.server == server)


class _Asker:
    """The connections to the node, by the recorded ones."""

    def __init__(self, target: Endpoint, timeout_s: float, one_connection: bool) -> None:
        self._target = target
        self._timeout_s = timeout_s
        self._one_connection = one_connection
        self._connections: dict[tuple[str, int], Connection] = {}

    def ask(self, line: RecordedExchange) -> bytes | None:
        """The answer; None if none comes by the protocol. NotSent, NoAnswer, FrameError."""
        which = ("", 0) if self._one_connection else (line.server, line.connection)
        deadline = Deadline(self._timeout_s)
        connection = self._connections.pop(which, None)
        if connection is not None:
            try:
                connection.send(line.request, deadline)
            except NotSent:
                connection = None  # the node has closed it meanwhile
        if connection is None:
            connection = Connection(self._target, deadline)
            connection.send(line.request, deadline)
        answer = connection.receive(deadline) if is_answered(line.request) else None
        self._connections[which] = connection  # not kept where it failed: it is closed then
        return answer

    def close(self) -> None:
        while self._connections:
            self._connections.popitem()[1].close()


def _compare(line: RecordedExchange, asker: _Asker, ignored: Ignored) -> ReplayOutcome:
    try:
        answer = asker.ask(line)
    except (NoAnswer, FrameError) as error:
        return ReplayOutcome(
            ReplayVerdict.NOT_COMPARED if line.response is None else ReplayVerdict.UNANSWERED, reason=str(error)
        )
    if line.response is None:
        return ReplayOutcome(ReplayVerdict.NOT_COMPARED)
    if answer is None:
        return ReplayOutcome(
            ReplayVerdict.UNANSWERED, reason="a Produce with acks=0 is not answered, but an answer was recorded"
        )
    if answer == line.response:
        return ReplayOutcome(ReplayVerdict.SAME)
    try:
        one, other = (_fields(line, frame) for frame in (line.response, answer))
    except WireError as error:
        return ReplayOutcome(ReplayVerdict.DIFFERENT, reason=f"{_bytes_differ(line.response, answer)}; {error}")
    found = [inner for each in differences(one, other) for inner in inside_batches(each)]
    if not found:
        return ReplayOutcome(
            ReplayVerdict.DIFFERENT,
            reason=f"{_bytes_differ(line.response, answer)}, in tagged fields that are not declared",
        )
    counted = tuple(each for each in found if not ignored.matches(line.api_key, each.path))
    return ReplayOutcome(ReplayVerdict.DIFFERENT if counted else ReplayVerdict.IGNORED, counted)


def _fields(line: RecordedExchange, response: bytes) -> Any:
    fields = response_fields(line.api_key, line.version, response)
    return {"response_header": fields["response_header"], **fields["response_json"]}


def _bytes_differ(recorded_bytes: bytes, now: bytes) -> str:
    at = first_difference(recorded_bytes, now)
    return f"{len(recorded_bytes)} bytes were recorded, now {len(now)}, which differ from byte {at} on"


class _Summary:
    """Prints what is different as it comes, and the counts in the end."""

    def __init__(self, how: str) -> None:
        self._how = how
        self._counts: Counter[ReplayVerdict] = Counter()
        self._bad_lines = 0
        self.left_out = 0
        """Exchanges that --only or --server do not name."""

    @property
    def exit_code(self) -> int:
        if any(verdict.is_bad for verdict in self._counts):
            return 1
        return UsageError.exit_code if self._bad_lines else 0

    def check_sent(self, file: str) -> None:
        """Raise UsageError if no request was sent, and no bad line says why: nothing was compared then."""
        if self._bad_lines or self._counts.total() > self._counts[ReplayVerdict.NOT_SENT]:
            return
        if self.left_out:
            what = f"--only and --server leave out {'all ' if self.left_out > 1 else 'its '}{_exchanges(self.left_out)}"
            raise UsageError(f"{file}: nothing was sent: {what}")
        if self._counts[ReplayVerdict.NOT_SENT]:
            raise UsageError(f"{file}: nothing was sent: no whole request was recorded")
        raise UsageError(f"{file}: nothing was sent: it holds no exchange", "record some: `fastquorum wire sniff`")

    def add_bad(self, number: int, error: UsageError) -> None:
        self._bad_lines += 1
        tell(f"line {number}: {error}")

    def add(self, number: int, line: RecordedExchange | None, outcome: ReplayOutcome) -> None:
        self._counts[outcome.verdict] += 1
        if self._how == "json":
            request: Line = {} if line is None else {"api": api_name(line.api_key), "api_version": line.version}
            print_json(
                {
                    "line": number,
                    **request,
                    "verdict": outcome.verdict.name.lower(),
                    "differences": [each.as_json() for each in outcome.differences],
                    **({"reason": outcome.reason} if outcome.reason else {}),
                }
            )
            sys.stdout.flush()
        elif outcome.verdict.is_bad and line is not None:
            print(f"line {number}: {api_name(line.api_key)} v{line.version}: {outcome.verdict.value}")
            for each in (*outcome.differences, *filter(None, [outcome.reason])):
                print(f"  {each}")
            sys.stdout.flush()

    def show(self) -> None:
        if self._how == "json":
            counts = {verdict.name.lower(): self._counts[verdict] for verdict in ReplayVerdict}
            print_json({"summary": {**counts, "bad_lines": self._bad_lines}})
            return
        counted = [f"{self._counts[verdict]} {verdict.value}" for verdict in ReplayVerdict if self._counts[verdict]]
        if self._bad_lines:
            counted.append(f"{self._bad_lines} lines that could not be read")
        print(f"{_exchanges(self._counts.total())}: {'; '.join(counted) or 'nothing to send'}")


def _exchanges(count: int) -> str:
    return f"{count} exchange{'' if count == 1 else 's'}"
