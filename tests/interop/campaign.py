"""The long forms of what the tests beside this do in short.

    python -m tests.interop.campaign exactly-once --records 100000 --report FILE
    python -m tests.interop.campaign producers --records 20000 --kills 3 --report FILE
    python -m tests.interop.campaign fuzz --frames 1000000 --seed 7 --report FILE
    python -m tests.interop.campaign hostile --connections 1000 --report FILE
    python -m tests.interop.campaign messages --messages 100000 --report FILE
    python -m tests.interop.campaign mixed --commits 1000 --report FILE
    python -m tests.interop.campaign reference
    python -m tests.interop.campaign brokers --topics 100 --partitions 6 --report FILE
    python -m tests.interop.campaign mixed-controllers --report FILE
    python -m tests.interop.campaign tools --report FILE
    python -m tests.interop.campaign suites --report FILE
    python -m tests.interop.campaign first-looks --rounds 50 --report FILE

exactly-once: kcat and confluent-kafka write so many records each to three real nodes, whose leader is killed twice;
then six consumers read them all. Exit code 0 if each record is there once, in order, and every consumer reads the same.

producers: six idempotent producers of librdkafka, five requests under way each, write so many records over segments of
64 KiB, while so many leaders are killed. Exit code 0 if none was refused for good, and each record is there once.

fuzz: so many mutants of golden and well-formed frames are sent to three real nodes of whichever build is installed,
while a client appends and reads. Exit code 0 if no node died, complained, hung or grew, the leader and its epoch are
the same, and the log holds what was acknowledged.

hostile: so many connections of each hostile kind at once to the leader, or a follower, of three real nodes, or of three
controllers (`--log controllers`), of whichever build is installed, or pure (`--kernels pure`); with `--short` 100 each
of the kinds that the tests have. Exit code 0 if it leads on in its epoch, takes appends, keeps to its memory and
complains of nothing.

messages: so many random messages in each direction between Kafka's generated classes and our codecs. Exit code 0 if
all are the same bytes both ways.

mixed: our nodes and Kafka's controllers in one quorum, with so many commits before, during and after each kill. Exit
code 0 if all logs are the same bytes and nobody logs what Kafka's controllers alone do not.

reference: records what those log in the same scenarios (log_lines.json).

brokers: three of our controllers, three of Kafka's brokers, clients of every kind throughout, while brokers and
controllers are killed, stopped and started again. Exit code 0 if nothing acknowledged is lost, nothing is doubled,
nothing aborted is read, all replicas are in sync again, and the controllers' directories hold one image.

mixed-controllers: the same of two controllers of ours and one of Kafka's, which are active in turn.

tools: the same commands of Kafka's tools to brokers on Kafka's controllers and on ours, and of kafka-metadata-shell to
what these controllers leave on their disks. Exit code 0 if they print the same, but for what DIFFERENT in
`tools_campaign.py` gives reasons for.

suites: franz-go's, confluent-kafka-go's and kafka-python's own tests, from their registries, against brokers on Kafka's
controllers and on ours. Exit code 0 if nothing that passes on Kafka's fails on ours. Needs Go; half an hour.

first-looks: Kafka's brokers on our controllers and on Kafka's own, side by side, are changed and looked at at once, in
so many rounds. Exit code 0 if the old state is not seen more often on ours than on Kafka's, but for chance.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from . import brokers_campaign, first_looks, fuzz, hostile, messages_campaign, producers_campaign
from .clients import ClientFailed, Read, read_all
from .exactly_once import as_json, problems, write_while_leaders_die
from .fuzz import campaign as fuzz_campaign
from .kafka import Kafka, Missing, find
from .mixed_campaign import mixed, reference
from .mixed_controllers import mixed_controllers
from .mixed_scenarios import SCENARIOS
from .nodes import running
from .suites import SUITES
from .suites_campaign import suites
from .tools_campaign import tools


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def exactly_once(kafka: Kafka, records: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch, running(Path(scratch)) as nodes:
        first_offset = nodes.wait_caught_up().partition.high_watermark
        written = write_while_leaders_die(nodes, records, _say)
        _say(f"all is written after {written.seconds:.1f} s")
        end = nodes.wait_caught_up().partition.high_watermark
        found: dict[str, Read] = {}
        took: dict[str, float] = {}
        for name, read in read_all(kafka, nodes.bootstrap, end, 2 * records):
            began = time.monotonic()
            found[name] = read()
            took[name] = round(time.monotonic() - began, 1)
            _say(f"{name} reads {len(found[name]):,} records in {took[name]} s")
        wrong = problems(written, found, first_offset)
    return {
        **as_json(written),
        "end_offset": end,
        "read": {name: len(read) for name, read in found.items()},
        "read_seconds": took,
        "problems": wrong,
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.interop.campaign",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    scenarios = parser.add_subparsers(dest="scenario", required=True)
    once = scenarios.add_parser("exactly-once", help="records while leaders die")
    once.add_argument("--records", type=int, default=100_000, metavar="N", help="of each writer (100000)")
    produced = scenarios.add_parser("producers", help="five requests under way over segments' ends")
    produced.add_argument("--records", type=int, default=20_000, metavar="N", help="of each of six producers (20000)")
    produced.add_argument("--kills", type=int, default=3, metavar="N", help="of leaders meanwhile (3)")
    fuzzed = scenarios.add_parser(
        "fuzz",
        help="mutated frames against live nodes",
        description=fuzz.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    fuzz_campaign.configure(fuzzed)
    crowds = scenarios.add_parser("hostile", help="crowds of hostile connections")
    hostile.configure(crowds)
    messages = scenarios.add_parser("messages", help="random messages through Kafka's classes and back")
    messages.add_argument("--messages", type=int, default=100_000, metavar="N", help="in each direction (100000)")
    messages.add_argument("--seed", type=int, default=7, metavar="N", help="another one gives other messages (7)")
    mixing = scenarios.add_parser("mixed", help="our nodes and Kafka's controllers in one quorum")
    alone = scenarios.add_parser("reference", help="what Kafka's controllers log without ours")
    mixing.add_argument("--commits", type=int, default=1000, metavar="N", help="at each kill, three times (1000)")
    alone.add_argument("--commits", type=int, default=100, metavar="N", help="as for mixed (100)")
    alone.add_argument("--runs", type=int, default=2, metavar="N", help="of each scenario (2)")
    for each in (mixing, alone):
        each.add_argument("--only", action="append", default=[], choices=list(SCENARIOS), help="one scenario")
    sized = scenarios.add_parser("brokers", help="Kafka's brokers on our controllers")
    brokers_campaign.configure(sized)
    turns = scenarios.add_parser("mixed-controllers", help="our controllers and Kafka's are active in turn")
    tooled = scenarios.add_parser("tools", help="Kafka's tools on our controllers and on Kafka's")
    others = scenarios.add_parser("suites", help="other projects' own tests, on our controllers and on Kafka's")
    others.add_argument("--only", action="append", default=[], choices=[each.name for each in SUITES], help="one suite")
    others.add_argument("--test", action="append", default=[], metavar="NAME", help="one test of theirs")
    others.add_argument("--directory", type=Path, help="keep their sources and what they print here")
    looked = scenarios.add_parser("first-looks", help="what brokers tell right after a change was answered")
    first_looks.configure(looked)
    for each in (once, produced, fuzzed, crowds, messages, mixing, sized, turns, tooled, others, looked):
        each.add_argument("--report", type=Path, metavar="FILE", help="where the JSON report goes, besides stdout")
    return parser


def main() -> int:
    """Exit code: 0 good, 1 problems, 2 something is missing here, 130 interrupted."""
    try:
        return _run(_parser().parse_args())
    except KeyboardInterrupt:
        _say("interrupted: nothing is reported")
        return 130


def _run(options: argparse.Namespace) -> int:
    try:
        if options.scenario == "fuzz":
            report = fuzz_campaign.campaign(options, _say)
        elif options.scenario == "hostile":
            report = hostile.campaign(options, _say)
        elif options.scenario == "messages":
            report = messages_campaign.campaign(options.messages, options.seed, _say)
        elif options.scenario == "producers":
            with tempfile.TemporaryDirectory() as scratch:
                report = producers_campaign.campaign(Path(scratch), options.records, options.kills, _say)
        elif options.scenario == "mixed":
            report = mixed(find(), options.commits, options.only, _say)
        elif options.scenario == "reference":
            reference(find(), options.commits, options.runs, options.only, _say)
            return 0
        elif options.scenario == "brokers":
            report = brokers_campaign.campaign(find(), options, _say)
        elif options.scenario == "mixed-controllers":
            report = mixed_controllers(find(), _say)
        elif options.scenario == "tools":
            report = tools(find(), _say)
        elif options.scenario == "suites":
            report = suites(find(), options.only, options.test, options.directory, _say)
        elif options.scenario == "first-looks":
            report = first_looks.campaign(find(), options.rounds, _say)
        else:
            report = exactly_once(find(), options.records)
    except (Missing, ClientFailed) as error:
        print(error, file=sys.stderr)
        return 2
    text = json.dumps(report, indent=2)
    print(text)
    if options.report is not None:
        options.report.write_text(text + "\n")
    return 1 if report["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
