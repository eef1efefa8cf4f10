"""Run the command line."""

import sys

from studies.comparison.command import main

if __name__ == "__main__":
    sys.exit(main())
