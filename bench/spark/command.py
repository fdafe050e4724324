"""`python -m bench spark`: which figures of the data pipeline are measured, and where the results go."""

import argparse
from typing import Final

from bench import floors
from bench.figures.figure import Figure, Setting
from bench.figures.running import add_options, positive, run_figures, to_measure
from bench.spark import finding, growing, reading, shuffles, streaming
from bench.spark.clusters import MANY

FIGURES: Final = (
    Figure("read", "table records of a large log by Spark, over the same read without it", reading.measure),
    Figure("open", "the same as a stream in one process, over decoding alone", streaming.measure),
    Figure("cores", "the same with two cores over one", growing.cores),
    Figure("logs", "many small logs: time for each", growing.many),
    Figure("memory", "of Spark's processes, while one core reads one large log", growing.memory),
    Figure("findings", "of what was planted in generated clusters: precision and recall", finding.measure),
    Figure("shuffles", "what each pipeline hands from task to task and takes, by partitions", shuffles.measure),
)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench spark",
        description="The data pipeline on Spark, each figure beside its yardstick: "
        + ", ".join(each.name for each in FIGURES)
        + ". Needs pip install '.[spark,bench]'; no Java.",
        epilog="example: python -m bench spark --only read --directory /data --save spark.json",
    )
    add_options(parser)
    parser.add_argument(
        "--partitions",
        type=positive,
        default=MANY,
        metavar="N",
        help="the most, in shuffles, in clusters of a million or less (default: %(default)s)",
    )
    parser.add_argument(
        "--pipeline",
        action="append",
        choices=shuffles.NAMES,
        default=[],
        help="in shuffles only this one; may be given again",
    )
    options = parser.parse_args(arguments)
    wanted = to_measure(FIGURES, options)
    if wanted is None:
        return 0
    setting = Setting(
        options.directory,
        options.quick,
        floors.has_compiler(),
        records_max=options.partitions,
        names=frozenset(options.pipeline),
    )
    return run_figures(wanted, setting, save=options.save, is_json=options.format == "json")
