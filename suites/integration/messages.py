"""What is said to the stack and what it answers, by the models of the contract.

A test whose point is a malformed body sends it raw; all others are of their model's form, or the mistake is
ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from workbench_contract.benchmark import Analyzed, AnalyzeRequest, Validated, ValidateRequest
from workbench_contract.design import DesignJudged, DesignRequest
from workbench_contract.execution import Executed, ExecuteRequest
from workbench_contract.files import (
    Deleted,
    DeleteRequest,
    EditRequest,
    FileContent,
    FileWritten,
    GitCommitRequest,
    GitCommitted,
    GitInitialised,
    GitInitRequest,
    GrepMatches,
    GrepRequest,
    LintReport,
    LintRequest,
    Listing,
    ListRequest,
    ReadRequest,
    Viewed,
    ViewRequest,
    WriteRequest,
)
from workbench_contract.handover import Opened, OpenRequest, SubmitRequest, Submitted
from workbench_contract.joints import Exported, ExportRequest
from workbench_contract.pricing import Priced, PriceRequest
from workbench_contract.renders import (
    Filmed,
    PreviewRequest,
    Rendered,
    RenderRequest,
    VideoRequest,
)
from workbench_contract.simulation import Simulated, SimulateRequest

from harness_core.doubles.http import Response

__all__ = ["OPERATIONS", "answered", "sent"]

_Message = TypeVar("_Message", bound=BaseModel)

#: An operation of the worker → what it takes, and what it answers with 200.
OPERATIONS: Final[Mapping[str, tuple[type[BaseModel], type[BaseModel]]]] = {
    "/fs/ls": (ListRequest, Listing),
    "/fs/read": (ReadRequest, FileContent),
    "/fs/view": (ViewRequest, Viewed),
    "/fs/write": (WriteRequest, FileWritten),
    "/fs/edit": (EditRequest, FileWritten),
    "/fs/delete": (DeleteRequest, Deleted),
    "/fs/grep": (GrepRequest, GrepMatches),
    "/git/init": (GitInitRequest, GitInitialised),
    "/git/commit": (GitCommitRequest, GitCommitted),
    "/lint": (LintRequest, LintReport),
    "/runtime/execute": (ExecuteRequest, Executed),
    "/session/open": (OpenRequest, Opened),
    "/benchmark/validate": (ValidateRequest, Validated),
    "/benchmark/analyze": (AnalyzeRequest, Analyzed),
    "/benchmark/simulate": (SimulateRequest, Simulated),
    "/benchmark/preview": (PreviewRequest, Rendered),
    "/benchmark/render": (RenderRequest, Rendered),
    "/benchmark/video": (VideoRequest, Filmed),
    "/benchmark/export": (ExportRequest, Exported),
    "/benchmark/submit": (SubmitRequest, Submitted),
    "/benchmark/validate_and_price": (DesignRequest, DesignJudged),
    "/benchmark/validate_costing_and_price": (PriceRequest, Priced),
}


def sent(message: BaseModel) -> dict[str, Any]:
    """A message as it goes over the wire: what was not given is left to the product."""
    return message.model_dump(mode="json", exclude_unset=True, exclude_none=True)


def answered(answer: Response, kind: type[_Message]) -> _Message:
    """An answer, as the contract has it.

    Raises:
        AssertionError: it is another one; says where.
    """
    try:
        return kind.model_validate_json(answer.body)
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}"
            for each in error.errors(include_url=False)
        )
        raise AssertionError(f"expected a {kind.__name__}, found {answer}: {wrong}") from error
