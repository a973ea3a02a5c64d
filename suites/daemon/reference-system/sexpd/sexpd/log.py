"""Log lines on stderr: `time level event key=value …`, one per event."""

from __future__ import annotations

import json
import sys
import time
import traceback


def _value(value: object) -> str:
    text = str(value)
    plain = text and all(c.isprintable() and c not in ' "=' for c in text)
    return text if plain else json.dumps(text, ensure_ascii=False)


def _line(level: str, event: str, fields: dict[str, object]) -> None:
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
    rest = "".join(f" {key}={_value(value)[:2000]}" for key, value in fields.items())
    print(f"{stamp} {level} {event}{rest}", file=sys.stderr, flush=True)


def place(error: BaseException) -> str:
    """What kind of error it is and where it was raised; its text may hold a secret."""
    where = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        where = f" at {frame.f_globals.get('__name__', '?')}:{line}"
    return type(error).__name__ + where


def info(event: str, **fields: object) -> None:
    """Something happened that an operator may want to know."""
    _line("info", event, fields)


def warning(event: str, **fields: object) -> None:
    """Something was refused, bounded or passed over."""
    _line("warning", event, fields)


def error(event: str, **fields: object) -> None:
    """Something an operator must look at."""
    _line("error", event, fields)
