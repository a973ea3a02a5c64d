"""The tools that agents are offered: each is an operation of the worker, or of the controller."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from workbench_contract import (
    benchmark,
    catalogue,
    design,
    execution,
    files,
    handover,
    journal,
    pricing,
    renders,
    simulation,
)
from workbench_contract.episodes import AgentRole
from workbench_controller.roles import TOOLS
from workbench_foundation import faults

#: What an agent does not choose; the controller sets it.
_SET_BY_US = ("job_id", "variant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool.

    Attributes:
        path: of the operation.
        jobs: it can be cancelled by a job id.
        tracked: it takes variant and seed.
        seeded: it takes a seed.
        hands_over: what it accepts is a hand-over.
        here: it is carried out by the controller's own processes, not by the worker.
    """

    path: str
    request: type[BaseModel]
    description: str
    jobs: bool = False
    tracked: bool = False
    seeded: bool = False
    here: bool = False
    hands_over: bool = False


ALL: dict[str, Tool] = {
    "fs_ls": Tool(path="/fs/ls", request=files.ListRequest, description="List a folder."),
    "fs_read": Tool(path="/fs/read", request=files.ReadRequest, description="Read a text file."),
    "fs_view": Tool(
        path="/fs/view", request=files.ViewRequest, description="Look at an image or a video."
    ),
    "fs_write": Tool(path="/fs/write", request=files.WriteRequest, description="Write a text file."),
    "fs_edit": Tool(
        path="/fs/edit", request=files.EditRequest, description="Replace a text that is there once."
    ),
    "fs_grep": Tool(
        path="/fs/grep", request=files.GrepRequest, description="Find lines by an expression."
    ),
    "fs_delete": Tool(
        path="/fs/delete", request=files.DeleteRequest, description="Delete a file or folder."
    ),
    "git_init": Tool(
        path="/git/init", request=files.GitInitRequest, description="Make a git repository."
    ),
    "git_commit": Tool(
        path="/git/commit", request=files.GitCommitRequest, description="Commit everything."
    ),
    "execute": Tool(
        path="/runtime/execute",
        request=execution.ExecuteRequest,
        description="Run a shell command in the workspace.",
        jobs=True,
    ),
    "lint": Tool(path="/lint", request=files.LintRequest, description="Check a Python file."),
    "validate": Tool(
        path="/benchmark/validate",
        request=benchmark.ValidateRequest,
        description="Whether a model can be simulated; with objectives, whether an environment's script "
        "and they are a sound benchmark over the whole randomization.",
        jobs=True,
        seeded=True,
    ),
    "analyze": Tool(
        path="/benchmark/analyze",
        request=benchmark.AnalyzeRequest,
        description="Whether a part can be made.",
        jobs=True,
    ),
    "simulate": Tool(
        path="/benchmark/simulate",
        request=simulation.SimulateRequest,
        description="Let a model run, once or several times, and watch how each run ends.",
        jobs=True,
        tracked=True,
    ),
    "preview": Tool(
        path="/benchmark/preview",
        request=renders.PreviewRequest,
        description="Look at the design, from anywhere.",
        jobs=True,
    ),
    "render": Tool(
        path="/benchmark/render",
        request=renders.RenderRequest,
        description="The 24 views of the design, all around it.",
        jobs=True,
    ),
    "video": Tool(
        path="/benchmark/video",
        request=renders.VideoRequest,
        description="A video of a run that left its trajectory.",
        jobs=True,
    ),
    "submit": Tool(
        path="/benchmark/submit",
        request=handover.SubmitRequest,
        description="Hand over what your role has to leave, or learn all that is wrong with it.",
        jobs=True,
        hands_over=True,
    ),
    "validate_costing_and_price": Tool(
        path="/benchmark/validate_costing_and_price",
        request=pricing.PriceRequest,
        description="Compute what the estimate costs and weighs, and write those numbers into it.",
        jobs=True,
    ),
    "validate_and_price": Tool(
        path="/benchmark/validate_and_price",
        request=design.DesignRequest,
        description="Whether the design can be made and holds, and is within price, weight and place.",
        jobs=True,
    ),
    "search_catalogue": Tool(
        path="/cots/search",
        request=catalogue.CatalogueQuery,
        description="Find parts that can be bought, cheapest first, or learn what to relax.",
        here=True,
    ),
    "write_journal": Tool(
        path="/journal",
        request=journal.JournalEntry,
        description="Write down what you meant to do, what came of it, what you make of that and what is "
        "next, with the events of events.jsonl that show it.",
        here=True,
    ),
}


def offered(role: AgentRole) -> list[dict[str, Any]]:
    """The tools of a role, as they are offered to the model."""
    left_out = {"lint"} if faults.on("tool-unoffered") else set()
    return [_described(name) for name in TOOLS[role] if name not in left_out]


def request_of(
    role: AgentRole, name: str, arguments: dict[str, Any], *, job_id: str, seed: int, variant: str
) -> tuple[Tool, dict[str, Any]]:
    """The operation that a model's tool call is.

    Raises:
        ValueError: the role has no such tool, or the arguments do not fit; says what.
    """
    if name not in TOOLS[role]:
        raise ValueError(f"cannot use {name}: a {role} has {', '.join(TOOLS[role])}")
    tool = ALL[name]
    body = {key: value for key, value in arguments.items() if key not in _SET_BY_US}
    if tool.jobs:
        body["job_id"] = job_id
    if tool.tracked or tool.seeded:
        body = {"seed": seed} | body
    if tool.tracked:
        body |= {"variant": variant}
    try:
        return tool, tool.request.model_validate(body).model_dump(mode="json")
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(str(part) for part in found['loc']) or 'arguments'}: {found['msg']}"
            for found in error.errors()
        )
        raise ValueError(f"cannot use {name}: {wrong}. Correct the arguments") from error


@functools.cache
def _described(name: str) -> dict[str, Any]:
    tool = ALL[name]
    schema = tool.request.model_json_schema()
    schema["properties"] = {
        key: value for key, value in schema.get("properties", {}).items() if key not in _SET_BY_US
    }
    return {"name": name, "description": tool.description, "input_schema": schema}
