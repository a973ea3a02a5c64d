"""``python -m harness_core.doubles.mail``."""

import sys

from harness_core.doubles.mail._server import main

if __name__ == "__main__":
    sys.exit(main())
