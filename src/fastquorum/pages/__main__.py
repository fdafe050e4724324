"""`python -m fastquorum.pages PAGE`: the report inside a page, as JSON on stdout."""

import json
import sys
from pathlib import Path

from fastquorum.pages.html_file import report_of

if __name__ == "__main__":
    for path in sys.argv[1:]:
        print(json.dumps(report_of(Path(path).read_text(encoding="utf-8")), indent=1))
