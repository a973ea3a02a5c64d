"""A YAML file as plain values; the only module that imports PyYAML."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml

from harness_core.base.errors import BadInput
from harness_core.base.reading import read_text

__all__ = ["read_yaml"]


class _Loader(yaml.SafeLoader):
    """Safe, and strict about what YAML leaves open: of two equal keys the last would win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        """Refuse a key that is there twice."""
        seen: dict[object, int] = {}
        for key_node, _ in node.value:
            # What was merged in stands elsewhere in the file, and may be set again here.
            here = node.start_mark.index <= key_node.start_mark.index <= node.end_mark.index
            if key_node.tag == "tag:yaml.org,2002:merge" or not here:
                continue
            key = self.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None,
                    None,
                    f"the key {key!r} is there twice, in lines {seen[key]} and {line}",
                    key_node.start_mark,
                )
            seen[key] = line
        return super().construct_mapping(node, deep=deep)


def read_yaml(path: Path) -> Mapping[str, Any]:
    """Read a YAML file whose top is a mapping.

    Raises:
        BadInput: no such file, no YAML, or something else at its top.
    """
    text = read_text(path, expected="a YAML file")
    try:
        content = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{path}:{mark.line + 1}" if mark else path
        raise BadInput(where, found=error.problem or str(error), expected="YAML") from error
    except yaml.YAMLError as error:
        raise BadInput(path, found=str(error), expected="YAML") from error
    if not isinstance(content, Mapping):
        raise BadInput(path, found=content, expected="a mapping with the key services")
    return {str(key): value for key, value in content.items()}
