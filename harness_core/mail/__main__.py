"""``python -m harness_core.mail``."""

import sys

from harness_core.mail._server import main

if __name__ == "__main__":
    sys.exit(main())
