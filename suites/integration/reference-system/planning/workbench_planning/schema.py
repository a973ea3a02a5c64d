"""A document to a model of the contract, each of pydantic's errors to a finding in plain words.

``model_of`` reads a whole file; ``part_of`` reads one value of it, so that what can be judged is
judged while something else in the file is wrong.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from workbench_contract.findings import Finding
from workbench_planning.strict_yaml import Document, Path
from workbench_planning.text import finding, shortened

M = TypeVar("M", bound=BaseModel)

#: Keys by which the contract's unions are told apart.
_DISCRIMINATORS = ("shape", "mode", "method")
#: Names of what stands in a document, as its reader calls them.
_KINDS = {
    dict: "a mapping",
    list: "a list",
    str: "text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "nothing",
}
#: What pydantic's kinds of errors ask for; ``{…}`` from the error's context.
_EXPECTED = {
    "missing": "this key",
    "extra_forbidden": "no such key",
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
    "enum": "one of {expected}",
    "literal_error": "one of {expected}",
    "union_tag_invalid": "one of {expected_tags}",
    "union_tag_not_found": "the key {discriminator}",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "too_short": "at least {min_length} items",
    "too_long": "at most {max_length} items",
}


def described(value: Any) -> str:
    """What stands in a document, with its kind."""
    if isinstance(value, (dict, list)):
        return f"{_KINDS[type(value)]} of {len(value)}"
    if value is None:
        return "nothing"
    return f"{_KINDS.get(type(value), 'a value')}, {shortened(value)}"


def model_of(model: type[M], document: Document, *, file: str) -> tuple[M | None, list[Finding]]:
    """The model that a whole document is."""
    try:
        return model.model_validate(document.value), []
    except ValidationError as error:
        return None, [
            _finding_of(each, document, file=file) for each in error.errors(include_url=False)
        ]


def part_of(model: type[M], document: Document, path: Path) -> M | None:
    """The model that one value of a document is, or none; ``model_of`` says why not."""
    try:
        return model.model_validate(value_at(document.value, path))
    except ValidationError:
        return None


def value_at(value: Any, path: Path) -> Any:
    """What stands at a path; none where there is nothing."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def items_at(value: Any, path: Path) -> list[Any]:
    """The list that stands at a path; empty where there is none."""
    found = value_at(value, path)
    return found if isinstance(found, list) else []


def _finding_of(error: Any, document: Document, *, file: str) -> Finding:
    kind = error["type"]
    path = _path_of(error["loc"], document.value, missing=kind == "missing")
    context = error.get("ctx", {})
    if kind == "missing":
        found = "nothing"
    elif kind == "extra_forbidden":
        found = f"the key {shortened(path[-1])}"
    elif kind == "union_tag_not_found":
        path = (*path, context["discriminator"].strip("'"))
        found = "nothing"
    elif kind == "union_tag_invalid":
        path = (*path, context["discriminator"].strip("'"))
        found = described(value_at(document.value, path))
    else:
        # Not the error's own input: a validator before may have made something else of it.
        found = described(value_at(document.value, path))
    if kind == "value_error":
        expected = str(context["error"])
    elif template := _EXPECTED.get(kind):
        expected = template.format(**context)
    else:
        expected = error["msg"]
    return finding(file, document.where(path), found, expected)


def _path_of(loc: tuple[str | int, ...], value: Any, *, missing: bool) -> Path:
    """Where an error is, without the names that pydantic adds for the members of a union."""
    path: list[str | int] = []
    tag = None
    for position, step in enumerate(loc):
        last = position == len(loc) - 1
        if isinstance(value, dict) and tag is not value and step in _tags(value):
            # Once for each mapping: the next step of the same name is a key.
            tag = value
            continue
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        elif not (last and missing):
            continue
        path.append(step)
    return tuple(path)


def _tags(value: dict[str, Any]) -> list[Any]:
    """By what the member of a union is chosen."""
    return [value[key] for key in _DISCRIMINATORS if key in value]
