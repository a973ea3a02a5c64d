"""`python -m butlers` is the console script `butlers`."""

from butlers.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
