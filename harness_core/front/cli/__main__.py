"""``python -m harness_core.front.cli``."""

from harness_core.front.cli import main

if __name__ == "__main__":
    main()
