"""What the pytest plugin declares: fixtures, marks, options. The plugin itself is asked for them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from _pytest.fixtures import FixtureFunctionDefinition

from harness_core.front import pytest_plugin
from harness_core.front.hooks._explore import pytest_configure as add_explore
from harness_core.front.hooks._options import add_marks
from harness_core.front.pages._markdown import table

__all__ = ["fixtures_text", "marks_text", "options_text"]


class _Recorder:
    """Stands where pytest's parser, its groups, its plugin manager and its configuration do."""

    def __init__(self) -> None:
        self.options: list[tuple[Sequence[str], dict[str, Any]]] = []
        self.modules: list[ModuleType] = []
        self.marks: list[str] = []

    def getgroup(self, *_: object) -> _Recorder:
        return self

    def addoption(self, *names: str, **how: Any) -> None:
        self.options.append((names, how))

    def register(self, module: ModuleType) -> None:
        self.modules.append(module)

    def addinivalue_line(self, _: str, line: str) -> None:
        self.marks.append(line)

    def getoption(self, *_: object, **__: object) -> None:
        return None


def options_text() -> str:
    """Every option, its values, its default."""
    rows = []
    for names, how in _plugin().options:
        value = how.get("metavar") or "|".join(map(str, how.get("choices", ())))
        written = ", ".join(f"{name} {value}".strip() for name in names)
        rows.append((f"`{written}`", how["help"]))
    return table(("option", "meaning"), sorted(rows))


def marks_text() -> str:
    """Every mark, with its arguments."""
    rows = [line.partition(": ")[::2] for line in sorted(_plugin().marks)]
    return table(("mark", "meaning"), [(f"`{name}`", meaning) for name, meaning in rows])


def fixtures_text() -> str:
    """Every fixture that any test has: its scope, and the first paragraph of what it says."""
    found = {
        fixture.name: fixture
        for module in (pytest_plugin, *_plugin().modules)
        for fixture in _fixtures(module)
    }
    rows = []
    for name, fixture in sorted(found.items()):
        marker = fixture._fixture_function_marker  # noqa: SLF001 - pytest has no other way
        scope = marker.scope if isinstance(marker.scope, str) else "as configured"
        said, _, _ = inspect.cleandoc(fixture.__doc__ or "").partition("\n\n")
        rows.append((f"`{name}`", scope, said))
    return table(("fixture", "scope", "what it is"), rows)


def _fixtures(module: ModuleType) -> Iterator[FixtureFunctionDefinition]:
    for value in vars(module).values():
        if isinstance(value, FixtureFunctionDefinition) and not value.name.startswith("_"):
            yield value


def _plugin() -> _Recorder:
    recorder: Any = _Recorder()
    pytest_plugin.pytest_addoption(recorder, recorder)
    add_marks(recorder)
    add_explore(recorder)
    found: _Recorder = recorder
    return found
