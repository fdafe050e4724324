"""`python -m fastquorum.cli`: the command, where no script is installed."""

import sys

from fastquorum.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
