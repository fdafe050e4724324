"""`python -m bench controllers`: which figures are measured, beside whom, and where the results go."""

import argparse
from typing import Final

from bench.controllers import creations, deaths, durable, failovers, heartbeats, isr_changes
from bench.controllers.rounds import Setting
from bench.figures.figure import Figure
from bench.figures.running import add_options, positive, run_figures, to_measure

FIGURES: Final = (
    Figure("syncs", "how often each node syncs for a topic created", durable.measure),
    Figure("creations", "topics created a second, ours over Kafka's controllers and ZooKeeper", creations.measure),
    Figure("isr", "ISR changes a second, ours over Kafka's controllers", isr_changes.measure),
    Figure(
        "heartbeats", "what one costs the active controller, 10,000 coming a second, over Kafka's", heartbeats.measure
    ),
    Figure("death", "a broker's death until its partitions' new leaders are committed, over Kafka's", deaths.measure),
    Figure("failover", "the active controller killed until the next one creates a topic", failovers.measure),
)
QUICK: Final = {"rounds": 1, "seconds": 0.5, "partitions": 600, "brokers": 4, "leaders": 100, "session_ms": 2_000}
QUICK_KILLS: Final = 1


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    wanted = to_measure(FIGURES, options)
    if wanted is None:
        return 0
    names = ("rounds", "seconds", "partitions", "brokers", "leaders", "session_ms")
    sizes = QUICK if options.quick else {name: getattr(options, name) for name in names}
    kills = QUICK_KILLS if options.quick else options.kills
    setting = Setting(
        options.directory, options.quick, kills=kills, in_flight=options.in_flight, heap=options.heap, **sizes
    )
    _check_sizes(setting)
    return run_figures(wanted, setting, save=options.save, is_json=options.format == "json")


def _check_sizes(setting: Setting) -> None:
    if setting.brokers < 4:
        raise SystemExit("bench: --brokers 4 or more: two die, and three replicas have to be somewhere")
    if 2 * setting.leaders > setting.partitions:
        raise SystemExit(f"bench: --partitions {2 * setting.leaders} or more: two brokers lead so many")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench controllers",
        description="Three controllers of ours beside three of Apache Kafka 4.3.0, and ZooKeeper, by turns: "
        + ", ".join(f.name for f in FIGURES)
        + ". The peers are fetched once, into ~/.cache/fastquorum/peers (or $XDG_CACHE_HOME), and need Java and maven.",
        epilog="example: python -m bench controllers --only death --partitions 1000000 --brokers 1000 --heap 4g "
        "--rounds 1 --directory /data --save controllers.json",
    )
    add_options(parser)
    default = Setting("")
    numbers = {
        "rounds": "of everybody's turn",
        "in-flight": "requests at a time, each on a connection of its own",
        "partitions": "in all, when a broker dies",
        "brokers": "in all, when one dies",
        "leaders": "partitions that the broker leads that dies",
        "session-ms": "broker.session.timeout.ms of all controllers, when a broker dies",
    }
    for name, what in numbers.items():
        value = getattr(default, name.replace("-", "_"))
        parser.add_argument(f"--{name}", type=positive, default=value, metavar="N", help=f"{what} (default: {value})")
    parser.add_argument(
        "--seconds", type=_seconds, default=default.seconds, help="of each slice (default: %(default)g)"
    )
    parser.add_argument(
        "--kills", type=positive, default=3, metavar="N", help="of active controllers, a round (default: %(default)s)"
    )
    parser.add_argument("--heap", default=default.heap, help="of each JVM, as java's -Xmx (default: %(default)s)")
    return parser


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0.1 <= seconds <= 600:
        raise argparse.ArgumentTypeError("0.1 to 600")
    return seconds
