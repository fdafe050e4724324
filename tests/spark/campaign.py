"""Long runs of the Spark data source over quorums that are hurt: everything acknowledged is there once, and in order.

python -m tests.spark.campaign stream-kills --kills 10
python -m tests.spark.campaign write-kills --kills 10
python -m tests.spark.campaign cluster-kills

Of audits of generated replicas, healthy and damaged: no healthy one is accused, what a loss leaves a proof of is found,
and threads, Spark, names and order change nothing. A world that shows otherwise is printed with its seed.

python -m tests.spark.campaign verdicts --worlds 1000
python -m tests.spark.campaign verdicts --worlds 50 --spark

And of other versions of Spark, each in a virtual environment that pip makes: every read, write, stream and command is
as without Spark, or refused in one line. Delta's jars come by Maven (apt-get install maven).

python -m tests.spark.campaign versions --spark 4.0.* 4.3.*
python -m tests.spark.campaign delta --package io.delta:delta-spark_2.13:4.2.0
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.spark.stream_kills import stream_kills
from tests.spark.verdicts.run import verdicts
from tests.spark.version_checks import PARTS
from tests.spark.versions import DELTA, VERSIONS, delta, versions
from tests.spark.write_campaign import cluster_kills, write_kills


def main() -> int:
    arguments = _parser().parse_args()
    began, failure, figures = time.monotonic(), "", {}
    with tempfile.TemporaryDirectory(prefix="fastquorum-campaign-") as root:
        try:
            figures = arguments.run(Path(root), arguments, lambda text: print(text, flush=True))
        except AssertionError as error:
            failure = str(error) or repr(error)
    figures |= {"took_s": round(time.monotonic() - began, 1), "failure": failure}
    text = json.dumps(figures, indent=2)
    print(text)
    if arguments.report is not None:
        arguments.report.write_text(text + "\n")
    return 1 if failure else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.spark.campaign",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--report", type=Path, help="where to write the figures as JSON")
    campaigns = parser.add_subparsers(dest="campaign", required=True)

    def add(name: str, summary: str, run: Callable[..., dict[str, Any]]) -> argparse.ArgumentParser:
        added = campaigns.add_parser(name, help=summary)
        added.set_defaults(run=run)
        return added

    stream = add(
        "stream-kills",
        "from a quorum to Parquet, while its leaders are killed, and the query's own program",
        lambda root, arguments, say: stream_kills(root, arguments.kills, stops=arguments.kills > 2, say=say),
    )
    write = add(
        "write-kills",
        "from Parquet to a quorum, while its leaders are killed, and the driver",
        lambda root, arguments, say: write_kills(root, arguments.kills, seed=arguments.seed, say=say),
    )
    cluster = add(
        "cluster-kills",
        "from Parquet to a quorum by a cluster of processes: leaders, workers, an executor and the driver are killed",
        lambda root, arguments, say: cluster_kills(root, seed=arguments.seed, say=say),
    )
    worlds = add(
        "verdicts",
        "verdicts of audits over generated replicas, healthy and damaged, are what is known of them",
        lambda root, arguments, say: verdicts(
            root, arguments.worlds, seed=arguments.seed, by_spark=arguments.spark, say=say
        ),
    )
    worlds.add_argument("--worlds", type=int, default=1000, help="(default: %(default)s)")
    worlds.add_argument("--spark", action="store_true", help="Spark must say the same of each: seconds a world")
    sparks = add(
        "versions",
        "other versions of Spark give what no Spark gives, or refuse in one line",
        lambda root, arguments, say: versions(
            root, arguments.spark, arguments.environments, parts=arguments.parts, say=say
        ),
    )
    sparks.add_argument("--spark", nargs="+", default=VERSIONS, help="of PySpark (default: %(default)s)")
    sparks.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="(default: all)")
    lake = add(
        "delta",
        "logs into Delta tables and back, with the PySpark that this Delta wants",
        lambda root, arguments, say: delta(root, arguments.package, arguments.environments, say=say),
    )
    lake.add_argument("--package", default=DELTA, help="GROUP:ARTIFACT:VERSION (default: %(default)s)")
    for each in (sparks, lake):
        each.add_argument("--environments", type=Path, help="where to keep what pip installs; else it is made anew")
    for each in (stream, write):
        each.add_argument("--kills", type=int, default=10, help="of leaders (default: %(default)s)")
    for each in (write, cluster, worlds):
        each.add_argument("--seed", type=int, default=1)
    return parser


if __name__ == "__main__":
    sys.exit(main())
