"""From one id of an episode to its others: what each system has on record of an id, by reads alone.

A read looks into one system by one kind of id; what it answers is searched for the ids of all episodes that a
test knows. So nothing is said of where in an answer a product has them.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from suites.integration.document import Document
from suites.integration.episodes import Episodes
from suites.integration.observed import Langfuse
from suites.integration.temporal_view import describe_workflow

__all__ = ["EPISODE", "JOB", "LANGFUSE", "OBJECT", "TRACE", "WORKFLOW", "Id", "Records", "ids_of"]

EPISODE: Final = "episode"
JOB: Final = "job"
LANGFUSE: Final = "trace at Langfuse"
OBJECT: Final = "object"
TRACE: Final = "trace"
WORKFLOW: Final = "workflow"


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Id:
    """What something is known by in one system.

    Attributes:
        kind: ``EPISODE``, ``JOB``, …
        value: unguessable; an object's is its key.
    """

    kind: str
    value: str

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"


def ids_of(episode: Mapping[str, Any], jobs: Iterable[str]) -> frozenset[Id]:
    """All ids of an episode that has ended, and whose traces are known to Langfuse."""
    return frozenset(
        {
            Id(EPISODE, episode["episode_id"]),
            Id(TRACE, episode["trace_id"]),
            Id(WORKFLOW, episode["workflow_id"]),
            *(Id(LANGFUSE, trace["langfuse_trace_id"]) for trace in episode["traces"]),
            *(Id(OBJECT, asset["key"]) for asset in episode["assets"]),
            *(Id(JOB, job) for job in jobs),
        }
    )


class Records:
    """What the systems around a stack have on record.

    Args:
        episodes: of the stack.
        langfuse: what stands in for Langfuse beside it.
        document: the controller's own, which says what can be read of an episode.
        known: the ids that are searched for.
    """

    def __init__(
        self, episodes: Episodes, langfuse: Langfuse, document: Document, known: Iterable[Id]
    ) -> None:
        self._episodes = episodes
        self._langfuse = langfuse
        self._document = document
        self._known = frozenset(known)
        self._read: dict[Id, str] = {}

    async def found_from(self, start: Id) -> dict[Id, str]:
        """The ids that can be reached from one: each with the way to it, for failure messages."""
        ways, left = {start: str(start)}, [start]
        while left:
            here = left.pop()
            text = await self.text_of(here)
            for each in sorted(self._known - ways.keys()):
                if each.value in text:
                    ways[each] = f"{ways[here]} → {each}"
                    left.append(each)
        return ways

    async def text_of(self, one: Id) -> str:
        """All that is on record of an id where ids of its kind are at home."""
        if one not in self._read:
            self._read[one] = await self._look(one)
        return self._read[one]

    async def _look(self, one: Id) -> str:
        match one.kind:
            case "episode":
                return await self._of_episode(one.value)
            case "job":
                return (await self._episodes.controller.get(f"/jobs/{one.value}")).text
            case "object":
                found = await self._episodes.stack.object(one.value)
                return json.dumps([one.value, dict(found.metadata), dict(found.tags)])
            case "trace":
                listed = (await self._episodes.controller.get("/episodes")).json()["episodes"]
                return json.dumps([each for each in listed if one.value in json.dumps(each)])
            case "workflow":
                seen = await describe_workflow(self._episodes.stack, one.value)
                return json.dumps(seen.memo, default=str) if seen else ""
            case _:
                told = self._langfuse.observations(one.value)
                return "\n".join([*(one.trace_id for one in told), *(one.text for one in told)])

    async def _of_episode(self, episode_id: str) -> str:
        """Every answer that there is to be had by the id of an episode alone."""
        texts = []
        for each in self._document.operations:
            if (
                each.method == "GET"
                and each.path.count("{") == each.path.count("{episode_id}") == 1
            ):
                answer = await self._episodes.controller.get(each.target(episode_id=episode_id))
                texts.append(answer.text)
        return "\n".join(texts)
