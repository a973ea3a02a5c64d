"""`python -m sexpd` is `sexpd`."""

import sys

from sexpd.cli import main

sys.exit(main())
