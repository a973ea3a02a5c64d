"""Of what a coder handed over last, what is kept in the object store."""

from __future__ import annotations

import asyncpg

from workbench_contract.episodes import FINAL_ASSETS, AgentRole, AssetKind
from workbench_contract.renders import FINAL
from workbench_controller.run import FoundAsset, Run
from workbench_foundation import faults
from workbench_planning import environment, package

#: What a file of a hand-over is by the end of its name, where the worker has made it.
_MADE = {
    ".step": AssetKind.STEP,
    ".xml": AssetKind.MJCF,
    ".stl": AssetKind.MJCF,
    ".png": AssetKind.RENDER,
    ".mp4": AssetKind.VIDEO,
    ".json": AssetKind.INDEX,
}
#: Of those that are read as what they are, by the end of their names.
_MEDIA_TYPES = {
    ".py": "text/x-python",
    ".md": "text/markdown",
    ".txt": "text/plain",
    ".csv": "text/csv",
    ".json": "application/json",
    ".yaml": "application/yaml",
    ".xml": "application/xml",
    ".step": "model/step",
    ".stl": "model/stl",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".mp4": "video/mp4",
}


def media_type_of(path: str) -> str:
    """By the end of a name; bytes where that says nothing."""
    return _MEDIA_TYPES.get(_end_of(path), "application/octet-stream")


async def final_assets(pool: asyncpg.Pool, run: Run) -> list[FoundAsset]:
    """The scripts of the last design of an episode, and all that was made of it; of other roles nothing."""
    if run.role is not AgentRole.CODER:
        return []
    order = "event_seq" if faults.on("final-of-first-round") else "event_seq DESC"
    handover_id = await pool.fetchval(
        "SELECT handover_id FROM handovers WHERE episode_id = $1 AND NOT refuses_plan"
        f" ORDER BY {order} LIMIT 1",
        run.episode_id,
    )
    if handover_id is None:
        return []
    rows = await pool.fetch(
        "SELECT path FROM handover_files WHERE handover_id = $1 ORDER BY path", handover_id
    )
    given = await pool.fetch(
        "SELECT path FROM handover_files WHERE handover_id = $1", run.handover_id
    )
    old = {row["path"] for row in given}
    found = []
    for row in rows:
        path, kind = row["path"], kind_of(row["path"])
        # What was given is kept with the episode that made it.
        if kind is not None and not (environment.belongs(path) and path in old):
            name = f"{FINAL_ASSETS}/{path.removeprefix(f'{FINAL}/')}"
            found.append(
                FoundAsset(path=name, kind=kind, handover_id=handover_id, handed_path=path)
            )
    return found


def kind_of(path: str) -> AssetKind | None:
    """What a file of a hand-over is; none of what is not kept: it is with the hand-over."""
    if path.startswith(f"{FINAL}/") or package.belongs(path):
        return _MADE.get(_end_of(path))
    return AssetKind.SCRIPT if path.endswith(".py") else None


def _end_of(path: str) -> str:
    name = path.rpartition("/")[2].lower()
    stem, dot, end = name.rpartition(".")
    return f".{end}" if dot and stem else ""
