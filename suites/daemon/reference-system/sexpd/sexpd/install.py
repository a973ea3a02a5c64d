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


def setup(config: Config, *, force: bool) -> list[str]:
    """Install everything; a file that was changed is kept unless ``force``.

    Returns:
        One line per thing that was done or left alone.

    Raises:
        SexpdError: a directory or file cannot be written.
    """
    try:
        config.root.mkdir(parents=True, exist_ok=True)
        lines = [f"root    {config.root}"]
        for source in packaged_skills():
            lines.append(_install(source, config.skills / source.name, force=force))
        lines.append(_install(emacs_client(), config.data / "emacs" / "sexpd.el", force=force))
    except OSError as error:
        raise SexpdError(f"cannot set up {config.data}: {error}. Make it writable") from error
    return lines


def _install(source: Path, target: Path, *, force: bool) -> str:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and target.read_bytes() == source.read_bytes():
        return f"same    {target}"
    if target.exists() and not force:
        return f"kept    {target} (changed; --force replaces it)"
    verb = "replaced" if target.exists() else "new     "
    shutil.copyfile(source, target)
    return f"{verb} {target}"
