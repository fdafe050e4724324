"""`python -m fastquorum.pages PAGE...`: the report inside each page, as JSON, a line each."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from fastquorum.errors import UsageError
from fastquorum.pages.html_file import report_of


def main(paths: Sequence[str]) -> int:
    """Exit code 0, or 2 if one is no page."""
    if not paths:
        print("usage: python -m fastquorum.pages PAGE...", file=sys.stderr)
        return 2
    for path in paths:
        try:
            report = report_of(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, UsageError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 2
        print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
