"""Write a folder of tests for a product that is somewhere else: a noxfile, and one suite."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness_core.base.errors import BadInput
from harness_core.front.scaffold._guess import EXTRAS, guess_recipes, requirements_of
from harness_core.front.scaffold._suite import check_name, names_of, scaffold_suite
from harness_core.front.scaffold._write import write_folder

__all__ = ["Begun", "scaffold_project"]

_COMMAND: Final = "harness new project"

_RECIPES: Final = """\
# How each service of {file} runs without containers, for `harness` alone; compose does not read it.
# command: a command line with {{host}}, {{port}}, {{data}} (a folder of the service in this run), {{here}}
#   (this folder), {{bin}} (the commands of the tests' environment); cwd: where it runs;
#   environment: variables that are other ones here, e.g. {{db.host}}, {{db.port}}; health: a path;
#   once: true for what runs once. service: a server of the harness instead, e.g. postgres.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What was written.

    Attributes:
        folder: the project.
        recipes: a file beside the compose file, or ``None``.
        unknown: services of it that nothing is known of: what they run stands in no file.
    """

    folder: Path
    recipes: Path | None = None
    unknown: tuple[str, ...] = ()


def scaffold_project(
    name: str, *, parent: Path, argv: Sequence[str] = (), compose: Path | None = None
) -> Begun:
    """Write a project in a folder of its own.

    Args:
        name: of the folder and of its suite.
        parent: the folder that it is made in; the product's command line runs there.
        argv: the product's command line, with ``{port}`` where it listens; empty for none.
        compose: the product's compose file, instead; with neither a small product comes along.

    Raises:
        BadInput: the name cannot be used, the folder is there, or the compose file is none; nothing is
            written then.
        Unavailable: a compose file without the libraries to read one.
    """
    check_name(name, command=_COMMAND)
    folder = parent / name
    if folder.exists():
        expected, next_step = "a name that is not there yet", f"Look at {folder}"
        raise BadInput(_COMMAND, key="NAME", found=name, expected=expected, next_step=next_step)
    values = names_of(name)
    inside = folder / "suites" / name
    if compose is not None:
        return _of_compose(folder, inside, compose, values)
    if argv:
        values |= _of_command(inside, parent, argv)
        write_folder(folder, ["project"], values, more=_suite_of("command", values))
        return Begun(folder=folder)
    write_folder(folder, ["project"], values, more=lambda draft: _with_counter(name, draft))
    return Begun(folder=folder)


def _with_counter(name: str, draft: Path) -> None:
    scaffold_suite(name, root=draft)


def _suite_of(template: str, values: Mapping[str, str]) -> Any:
    def more(draft: Path) -> None:
        suites = draft / "suites"
        suites.mkdir()
        write_folder(suites / values["name"], [template], values)

    return more


def _of_command(inside: Path, product: Path, argv: Sequence[str]) -> dict[str, str]:
    """What a subject file says of a command line that runs in the folder of the product."""
    words = list(argv)
    project = _distribution(product)
    if project and words[0] in {"python", "python3"}:
        words[0] = "{bin}/python"
    return {
        "argv": json.dumps(words, ensure_ascii=False),
        "cwd": json.dumps(_relative(product, inside)),
        "project": _project_line(product, inside) if project else "",
    }


def _of_compose(folder: Path, inside: Path, compose: Path, values: Mapping[str, str]) -> Begun:
    from harness_core.system.compose import read_services

    compose = compose.resolve()
    services = read_services(compose)
    recipes = compose.with_name(f"{compose.stem}.harness{compose.suffix}")
    known: dict[str, Any] = {}
    unknown: list[str] = []
    if not recipes.exists():
        for service, recipe in guess_recipes(services, folder=compose.parent).items():
            if recipe is None:
                unknown.append(service)
            else:
                known[service] = recipe
    kinds = {str(recipe.get("service", "")) for recipe in known.values()}
    extras = ["stack", *sorted(kinds & EXTRAS)]
    filled = {
        **values,
        "beside": recipes.name,
        "compose": _relative(compose, inside),
        "extras": json.dumps(extras),
        "file": compose.name,
        "project": "",
    }
    if asked := requirements_of(services, folder=compose.parent):
        filled["product"] = '{ include-group = "product" }, '
        rows = "".join(f"    {json.dumps(row, ensure_ascii=False)},\n" for row in asked)
        filled["requirements"] = f"product = [ # its requirements.txt, as it was\n{rows}]\n"
    write_folder(folder, ["project"], filled, more=_suite_of("compose", filled))
    if known or unknown:
        lines = [f"{name}: {_flow(recipe)}" for name, recipe in known.items()]
        lines += [f"# {name}: " + "{ command: [...] } or { service: ... }" for name in unknown]
        text = _RECIPES.format(file=compose.name) + "\n".join(lines) + "\n"
        recipes.write_text(text, encoding="utf-8")
    return Begun(
        folder=folder, recipes=recipes if known or unknown else None, unknown=tuple(unknown)
    )


def _flow(recipe: Mapping[str, Any]) -> str:
    """A recipe on one line; what JSON writes of it is YAML."""
    pairs = (f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in recipe.items())
    return "{ " + ", ".join(pairs) + " }"


def _distribution(folder: Path) -> bool:
    """Whether an installer can install the folder."""
    try:
        content = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return "project" in content and "build-system" in content


def _project_line(product: Path, inside: Path) -> str:
    where = json.dumps(_relative(product, inside))
    return f"project = {where} # installed into an environment of its own: {{bin}}\n"


def _relative(path: Path, inside: Path) -> str:
    return os.path.relpath(path.resolve(), inside.parent.parent.resolve() / "suites" / inside.name)
