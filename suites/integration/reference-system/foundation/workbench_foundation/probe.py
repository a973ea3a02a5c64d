"""``python -m workbench_foundation.probe URL``: whether a service says that it is healthy."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request

_TIMEOUT_S = 4.0


def main() -> int:
    """0 when the URL answers 200; else 1, with what was seen instead."""
    try:
        with urllib.request.urlopen(sys.argv[1], timeout=_TIMEOUT_S) as answer:
            return 0 if answer.status == 200 else 1
    except (urllib.error.URLError, TimeoutError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
