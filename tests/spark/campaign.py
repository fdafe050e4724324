"""Long runs of the Spark data source over quorums that are hurt.

python -m tests.spark.campaign stream-kills --kills 10
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from tests.spark.stream_kills import stream_kills


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.campaign", description=__doc__)
    campaigns = parser.add_subparsers(dest="campaign", required=True)
    stream = campaigns.add_parser("stream-kills", help="from a quorum to Parquet, while its leaders are killed")
    stream.add_argument("--kills", type=int, default=10)
    parser.add_argument("--report", type=Path, help="where to write the figures as JSON")
    arguments = parser.parse_args()
    began, failure, figures = time.monotonic(), "", {}
    with tempfile.TemporaryDirectory(prefix="fastquorum-campaign-") as root:
        try:
            figures = stream_kills(Path(root), arguments.kills, say=lambda text: print(text, flush=True))
        except AssertionError as error:
            failure = str(error)
    figures |= {"took_s": round(time.monotonic() - began, 1), "failure": failure}
    text = json.dumps(figures, indent=2)
    print(text)
    if arguments.report is not None:
        arguments.report.write_text(text + "\n")
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
