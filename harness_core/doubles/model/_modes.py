"""The options of a gateway, its modes, and what each needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness_core.base import limits
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    """What a gateway is to do.

    Attributes:
        mode: ``rehearsed``, ``live``, ``record`` or ``replay``.
        budget_usd: most that live calls may cost together.
        upstream: base URL of the provider in modes ``live`` and ``record``.
        upstream_key: the provider's key.
        cassette: directory that ``record`` writes and ``replay`` reads.
        turns: files of what the model does, in mode ``rehearsed``.
        form: TOML file whose ``[model]`` says how prompts are shaped, in mode ``rehearsed``.
    """

    mode: str = "rehearsed"
    budget_usd: float = limits.LLM_BUDGET_USD
    upstream: str | None = None
    upstream_key: str | None = field(default=None, repr=False)
    cassette: Path | None = None
    turns: Sequence[Path] = ()
    form: Path | None = None

    def backend(self, redactor: Redactor) -> Backend:
        """What answers; mistakes are named by the options of ``harness gateway``.

        Args:
            redactor: learns the provider's key.

        Raises:
            BadInput: an unknown mode, an option that is none of this mode, or a malformed file.
            Unavailable: a mode that needs a key, without one.
        """
        mode, cassette = self.mode, self.cassette
        if mode not in MODES:
            raise BadInput("--mode", found=mode, expected=" or ".join(MODES))
        if (cassette is not None) != (mode in _CASSETTE_MODES):
            modes = " or ".join(_CASSETTE_MODES)
            raise BadInput(
                "--cassette",
                found=cassette and str(cassette),
                expected=f"a directory with --mode {modes}, and only with those",
            )
        if mode == "rehearsed":
            return self._rehearsed()
        for name, given in (("--turns", self.turns), ("--form", self.form)):
            if given:
                raise BadInput(name, found=f"--mode {mode}", expected="--mode rehearsed")
        if cassette is not None and mode == "replay":
            return ReplayBackend(cassette, redactor=redactor)
        upstream = self.upstream or DEFAULT_UPSTREAM
        if not self.upstream_key:
            raise Unavailable(
                f"run the model gateway in mode {mode}",
                observed=f"{UPSTREAM_KEY_VARIABLE} is not set",
                next_step="Set it, or use mode rehearsed, which needs no key",
            )
        if not upstream.startswith(("http://", "https://")):
            raise BadInput("--upstream", found=upstream, expected="an http or https URL")
        redactor.add(self.upstream_key)
        live = LiveBackend(upstream, key=self.upstream_key)
        if cassette is None:
            return live
        return RecordBackend(live, cassette=cassette, redactor=redactor)

    def _rehearsed(self) -> RehearsedBackend:
        backend = RehearsedBackend(read_form(self.form) if self.form is not None else None)
        for rehearsal in (each for path in self.turns for each in read_rehearsals(path)):
            backend.stage.load(rehearsal)
        return backend
