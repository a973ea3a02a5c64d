"""``python -m harness_core.llm``."""

import sys

from harness_core.llm._cli import main

if __name__ == "__main__":
    sys.exit(main())
