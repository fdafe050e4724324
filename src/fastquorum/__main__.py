"""`python -m fastquorum` is the command."""

import sys

from fastquorum.cli.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
