"""What a profile names: functions, their files, and how often each was seen."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from harness_core.base.errors import BadInput

__all__ = ["Frame", "read_frames"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A function that was running.

    Attributes:
        function: its name.
        file: where it stands.
        samples: in how many samples it was on the stack.
    """

    function: str
    file: str
    samples: int


def read_frames(path: Path) -> tuple[Frame, ...]:
    """The functions of a speedscope file, the most often seen first.

    Raises:
        BadInput: it is no speedscope file.
    """
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        frames = [(str(f["name"]), str(f.get("file", ""))) for f in body["shared"]["frames"]]
        stacks = [stack for profile in body["profiles"] for stack in profile["samples"]]
        seen = Counter(frames[index] for stack in stacks for index in set(stack))
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise BadInput(path, found=repr(error), expected="a speedscope file") from error
    return tuple(
        Frame(function=name, file=file, samples=count) for (name, file), count in seen.most_common()
    )
