"""What a person can send to a staged stack: episodes whose model's turns are rehearsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness_core.base.errors import BadInput
from harness_core.base.evidence import Message, Told
from harness_core.doubles.http import HttpClient
from harness_core.doubles.turns import Turn, use
from harness_core.system.compose import Stack
from harness_core.system.staging import Offer, Way
from harness_core.system.subject import Subject
from suites.integration.episodes import FINAL, Episodes, new_token
from suites.integration.life import life_of
from suites.integration.stack import layout_of

__all__ = ["Tasks", "tasks"]

#: Offer → what the model does in an episode of it.
_TURNS: Final[Mapping[str, tuple[str, tuple[Turn, ...]]]] = {
    "writes-and-runs": (
        "writes a script, runs it and reads what it printed",
        (
            use("fs_write", path="hello.py", content="print('made on the worker')\n"),
            use("execute", command="python3 hello.py > said.txt; cat said.txt", timeout_s=20),
            use("fs_read", path="said.txt"),
        ),
    ),
    "a-command-fails": (
        "runs a command that fails, and looks at its files",
        (
            use("execute", command="echo begun; ls /nowhere", timeout_s=20),
            use("fs_ls", path="."),
        ),
    ),
    "works-for-a-while": (
        "works for ten seconds: time to take the worker away",
        (use("execute", command="for n in $(seq 50); do echo $n; sleep 0.2; done", timeout_s=30),),
    ),
    "nothing": ("has nothing to do, and ends at once", ()),
}


def tasks(stack: Stack, subject: Subject) -> Tasks:
    """``messages`` of the suite's ``suite.toml``."""
    key = stack["controller"].environment.get(layout_of(subject).api_key, "")

    def client(of: Stack, service: str) -> HttpClient:
        return of.client(service, headers={"x-api-key": key})

    return Tasks(Episodes(stack, client))


class Tasks:
    """Episodes, as a user of the stack submits them.

    Args:
        episodes: of the stack.
    """

    #: What the model does is rehearsed for a task that this module writes.
    free_text = False

    def __init__(self, episodes: Episodes) -> None:
        self._episodes = episodes
        self._texts: dict[str, str] = {}

    def offers(self) -> Sequence[Offer]:
        """What an agent may do."""
        return [
            Offer(id=name, title=f"An agent {title}", text=_calls(turns), group="episodes")
            for name, (title, turns) in _TURNS.items()
        ]

    async def send(self, offer: str, text: str) -> str:
        """Submit an episode.

        Raises:
            AssertionError: the controller did not accept it.
        """
        del text
        if offer not in _TURNS:
            expected = f"one of {', '.join(_TURNS)}"
            raise BadInput("send", key="offer", found=offer, expected=expected)
        title, turns = _TURNS[offer]
        token = new_token()
        await self._episodes.rehearse(token, *turns)
        identity = str((await self._episodes.submit(token))["episode_id"])
        self._texts[identity] = f"An agent {title}"
        return identity

    async def way(self, message: str) -> Way:
        """The episode as it is now, with its events."""
        if message not in self._texts:
            raise BadInput("way", key="message", found=message, expected="one that was sent here")
        episode = {**await self._episodes.get(message)}
        episode["events"] = await self._episodes.events(message)
        ended = episode["status"] in FINAL
        story = (_titled(row, self._texts[message]) for row in life_of(episode))
        return Way(story=tuple(story), ended=ended)


def _titled(row: Told, text: str) -> Told:
    """A row of an episode; what it is called is the offer, not the task with its token."""
    if not isinstance(row, Message):
        return row
    return Message(id=row.id, text=text, at=row.at, names=row.names)


def _calls(turns: Sequence[Any]) -> str:
    return ", ".join(turn.tool for turn in turns) or "no tool"
