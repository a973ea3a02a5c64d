"""Capability-block proposals: changes of a bottle's image that wait for approval."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields

from bot_bottle import faults
from bot_bottle.errors import RemediationError, told
from bot_bottle.host import Host
from bot_bottle.state import alone, write_atomically

_ID = re.compile(r"p-[0-9a-f]{8}")
_STATUSES = ("pending", "applied")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """`status` is `pending` or `applied`."""

    id: str
    identity: str
    image: str
    justification: str
    status: str = "pending"


class Proposals:
    """The queue of one home."""

    def __init__(self, host: Host) -> None:
        self._log = host.log
        self._folder = host.root / "proposals"

    def add(self, identity: str, *, image: str, justification: str) -> Proposal:
        if not image.strip() or not justification.strip():
            raise RemediationError("cannot queue a proposal without an image and a justification")
        id = f"p-{secrets.token_hex(4)}"
        if faults.on("proposals-are-counted"):
            id = f"p-{len(list(self._folder.glob('p-*.json'))) + 1:08x}"
        proposal = Proposal(
            id=id,
            identity=identity,
            image=image,
            justification=justification,
        )
        with told(RemediationError, f"queue a proposal in {self._folder}"):
            self._folder.mkdir(parents=True, exist_ok=True)
        self.write(proposal)
        return proposal

    @contextmanager
    def alone(self, id: str) -> Iterator[None]:
        """No other process approves at the same time, neither this proposal nor another."""
        guard = f"{id}.guard" if faults.on("approvals-alone-by-proposal") else "guard"
        with alone(self._folder / guard):
            yield

    def write(self, proposal: Proposal) -> None:
        write_atomically(self._folder / f"{proposal.id}.json", asdict(proposal))

    def get(self, id: str) -> Proposal:
        """One proposal.

        Raises:
            RemediationError: there is none of that id, or its file is damaged.
        """
        path = self._folder / f"{id}.json"
        if not _ID.fullmatch(id) or not path.is_file():
            raise RemediationError(f"cannot find a proposal {id!r}")
        try:
            return _parse(json.loads(path.read_bytes()), id)
        except OSError as error:
            raise RemediationError(f"cannot read {path}: {error.strerror}") from error
        except ValueError as error:
            raise RemediationError(f"cannot read {path}: it is damaged ({error})") from error

    def pending(self) -> list[Proposal]:
        """Those that wait; one that cannot be read is a warning."""
        found = []
        for path in sorted(self._folder.glob("p-*.json")):
            try:
                found.append(self.get(path.stem))
            except RemediationError as error:
                self._log.warning("%s", error)
        return [proposal for proposal in found if proposal.status == "pending"]


def _parse(content: object, id: str) -> Proposal:
    if not isinstance(content, dict):
        raise ValueError("found no mapping")
    for field in fields(Proposal):
        if not isinstance(content.get(field.name), str):
            raise ValueError(f"{field.name} is missing, or no string")
    proposal = Proposal(**{field.name: content[field.name] for field in fields(Proposal)})
    if proposal.id != id:
        raise ValueError("it is another proposal")
    if proposal.status not in _STATUSES:
        raise ValueError(f"the status is {proposal.status!r}, expected one of {_STATUSES}")
    return proposal
