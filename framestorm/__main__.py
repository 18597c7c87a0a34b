"""Where run.sh hands over."""

import os
import sys

from framestorm.cli import main

# Needed to find this package, not for what it starts: frame clients and functions have environments of their own.
os.environ.pop("PYTHONPATH", None)

sys.exit(main(sys.argv[1:]))
