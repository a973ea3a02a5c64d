"""The modes by name, and what each needs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from harness_core.base.errors import BadInput, Unavailable
from harness_core.base.evidence import Redactor
from harness_core.doubles.model._backend import Backend
from harness_core.doubles.model._live import LiveBackend
from harness_core.doubles.model._record import RecordBackend
from harness_core.doubles.model._replay import ReplayBackend
from harness_core.doubles.model.rehearsed import RehearsedBackend, read_form
from harness_core.doubles.turns import read_rehearsals

MODES: Final = ("rehearsed", "live", "record", "replay")

#: Modes that ask a provider with a key.
PAID_MODES: Final = ("live", "record")

#: Modes that need a cassette.
_CASSETTE_MODES: Final = ("record", "replay")

DEFAULT_UPSTREAM: Final = "https://api.anthropic.com"

#: Where the provider's key is; a value never appears in argv, where any user could read it.
UPSTREAM_KEY_VARIABLE: Final = "ANTHROPIC_API_KEY"


def open_backend(  # noqa: PLR0913 - what the modes need together
    mode: str,
    *,
    redactor: Redactor,
    cassette: Path | None = None,
    turns: Iterable[Path] = (),
    form: Path | None = None,
    upstream: str = DEFAULT_UPSTREAM,
    upstream_key: str = "",
) -> Backend:
    """The backend of a mode; mistakes are named by the options of ``harness gateway``.

    Args:
        mode: one of :data:`MODES`.
        redactor: learns the provider's key.
        cassette: directory that ``record`` writes and ``replay`` reads.
        turns: files of what the model does, in mode ``rehearsed``.
        form: file whose ``[model]`` says how prompts are shaped, in mode ``rehearsed``.
        upstream: base URL of the provider in modes ``live`` and ``record``.
        upstream_key: the provider's key.

    Raises:
        BadInput: an unknown mode, an option that is none of this mode, or a malformed file.
        Unavailable: a mode that needs a key, without one.
    """
    if mode not in MODES:
        raise BadInput("--mode", found=mode, expected=" or ".join(MODES))
    if (cassette is not None) != (mode in _CASSETTE_MODES):
        raise BadInput(
            "--cassette",
            found=cassette and str(cassette),
            expected=f"a directory with --mode {' or '.join(_CASSETTE_MODES)}, and only with those",
        )
    if mode == "rehearsed":
        return _rehearsed(turns, form)
    for name, given in (("--turns", turns), ("--form", form)):
        if given:
            raise BadInput(name, found=f"--mode {mode}", expected="--mode rehearsed")
    if cassette is not None and mode == "replay":
        return ReplayBackend(cassette, redactor=redactor)
    if not upstream_key:
        raise Unavailable(
            f"run the model gateway in mode {mode}",
            observed=f"{UPSTREAM_KEY_VARIABLE} is not set",
            next_step="Set it, or use mode rehearsed, which needs no key",
        )
    if not upstream.startswith(("http://", "https://")):
        raise BadInput("--upstream", found=upstream, expected="an http or https URL")
    redactor.add(upstream_key)
    live = LiveBackend(upstream, key=upstream_key)
    return live if cassette is None else RecordBackend(live, cassette=cassette, redactor=redactor)


def _rehearsed(turns: Iterable[Path], form: Path | None) -> RehearsedBackend:
    backend = RehearsedBackend(read_form(form) if form is not None else None)
    for path in turns:
        for rehearsal in read_rehearsals(path):
            backend.stage.load(rehearsal)
    return backend
