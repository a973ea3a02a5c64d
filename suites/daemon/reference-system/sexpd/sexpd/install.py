"""Puts what the daemon needs into the data directory: the skills, the Emacs client, the root."""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path

from sexpd.config import Config
from sexpd.errors import SexpdError


def packaged_skills() -> list[Path]:
    """The skills that come with this distribution."""
    folder = Path(str(resources.files("sexpd"))) / "skills"
    return sorted(folder.glob("*.toml"))


def emacs_client() -> Path:
    """The Emacs client that comes with this distribution."""
    return Path(str(resources.files("sexpd"))) / "emacs" / "sexpd.el"


def setup(config: Config) -> list[str]:
    """Install everything; a file that was changed is kept.

    Returns:
        One line per thing that was done or left alone.

    Raises:
        SexpdError: a directory or file cannot be written.
    """
    try:
        config.root.mkdir(parents=True, exist_ok=True)
        lines = [f"root    {config.root}"]
        for source in packaged_skills():
            lines.append(_install(source, config.skills / source.name))
        lines.append(_install(emacs_client(), config.data / "emacs" / "sexpd.el"))
    except OSError as error:
        raise SexpdError(f"cannot set up {config.data}: {error}. Make it writable") from error
    return lines


def _install(source: Path, target: Path) -> str:
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copyfile(source, target)
        return f"new     {target}"
    same = target.read_bytes() == source.read_bytes()
    return f"same    {target}" if same else f"kept    {target} (changed; remove it to have it anew)"
