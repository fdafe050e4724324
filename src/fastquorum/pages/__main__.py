"""`python -m fastquorum.pages PAGE...`: the report inside each page, as JSON, a line each."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fastquorum.errnos import reason
from fastquorum.errors import UsageError
from fastquorum.pages.html_file import report_of

EXIT_BROKEN_PIPE: Final = 141


def main(paths: Sequence[str]) -> int:
    """Return exit code 0, or 2 if one is not a page."""
    if not paths:
        print("usage: python -m fastquorum.pages PAGE...", file=sys.stderr)
        return 2
    for path in paths:
        try:
            report = report_of(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            print(f"{path}: {reason(error)}", file=sys.stderr)
            return 2
        except (UnicodeDecodeError, UsageError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 2
        try:
            print(json.dumps(report), flush=True)
        except BrokenPipeError:  # whoever read it has gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return EXIT_BROKEN_PIPE
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
