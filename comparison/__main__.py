"""Run the command line."""

import sys

from comparison.command import main

sys.exit(main())
