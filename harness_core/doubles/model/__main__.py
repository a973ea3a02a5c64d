"""``python -m harness_core.doubles.model``."""

import sys

from harness_core.doubles.model._cli import main

if __name__ == "__main__":
    sys.exit(main())
