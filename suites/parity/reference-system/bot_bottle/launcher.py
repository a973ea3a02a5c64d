"""Starts, resumes, lists and cleans up bottles, and applies what was approved."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bot_bottle import faults
from bot_bottle.backends import BACKENDS, choose_backend
from bot_bottle.backends.base import Backend, Bottle, Spec
from bot_bottle.backends.docker import ENV_FILES
from bot_bottle.env import resolve_env
from bot_bottle.errors import BackendError, HeldError, RemediationError, StateError, told
from bot_bottle.host import Host
from bot_bottle.manifest import load_bottle
from bot_bottle.proposals import Proposal, Proposals
from bot_bottle.state import OLDEST_BACKEND, Metadata, State


class Launcher:
    """The launcher of one host."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._state = State(host)
        self._proposals = Proposals(host)

    @contextmanager
    def start(
        self, name: str, *, backend: str | None = None, cwd: Path | None = None
    ) -> Iterator[Bottle]:
        """Launch the bottle of a manifest; its guest goes at the end, its state unless preserved.

        Raises:
            BottleError: manifest, environment or backend do not allow it; nothing is left.
        """
        manifest = load_bottle(self._host.home, name)
        chosen = choose_backend(backend, self._host.environ)
        env = resolve_env(manifest, self._host)
        metadata = Metadata(
            identity=self._state.new_identity(name),
            agent_name=name,
            cwd=str(cwd or self._host.home),
            copy_cwd=False,
            started_at=self._host.now().isoformat(),
            compose_project="",
            backend=chosen,
        )
        spec = Spec(identity=metadata.identity, image=manifest.image, env=env)
        plan = self._backend(chosen).prepare(spec)
        with self._state.created(metadata):
            try:
                with self._backend(chosen).launch(plan) as bottle:
                    yield bottle
            finally:
                self._forget(metadata)

    @contextmanager
    def resume(self, identity: str) -> Iterator[Bottle]:
        """Launch a preserved bottle again, on the backend it was recorded with.

        Its environment is resolved anew: what was typed in was kept nowhere. A transcript that is
        gone is begun anew, with a warning.

        Raises:
            BottleError: its record cannot be used, or it runs already; nothing is changed.
        """
        metadata = self._state.read(identity)
        backend = metadata.backend
        if faults.on("old-records-resumed-alone"):
            backend = backend or OLDEST_BACKEND
        if faults.on("resume-asks-for-a-choice"):
            choose_backend(None, self._host.environ)
        if faults.on("resume-ignores-recorded-backend"):
            backend = choose_backend(None, self._host.environ)
        if backend not in BACKENDS:
            known = ", ".join(BACKENDS)
            raise StateError(
                f"cannot resume {identity}: its record names the backend {backend!r}, expected "
                f"one of {known}"
            )
        manifest = load_bottle(self._host.home, metadata.agent_name)
        with self._state.locked(identity):
            env = resolve_env(manifest, self._host)
            transcript = self._state.folder(identity) / "transcript"
            if not transcript.is_dir():
                self._host.log.warning("the transcript of %s is gone, a new one begins", identity)
                with told(StateError, f"begin a transcript of {identity}"):
                    transcript.mkdir()
            image = metadata.image or manifest.image
            plan = self._backend(backend).prepare(Spec(identity=identity, image=image, env=env))
            # What a launcher left that died; nobody holds it now but us.
            self._backend(backend).remove(identity)
            with self._backend(backend).launch(plan) as bottle:
                yield bottle
                if faults.on("hold-let-go-before-guest"):
                    self._state.let_go(identity)

    def preserve(self, identity: str) -> None:
        """Let the state of a bottle outlive it."""
        self._state.preserve(identity)

    def active(self, backend: str) -> list[str]:
        """Identities of the bottles that run on a backend."""
        return self._backend(backend).enumerate_active()

    def recorded(self) -> list[Metadata]:
        """Every record that can be read."""
        found = []
        for identity in self._state.identities():
            try:
                found.append(self._state.read(identity))
            except StateError as error:
                self._host.log.warning("%s", error)
        return found

    def cleanup(self) -> list[str]:
        """Remove what launches left that died; the identities concerned.

        A backend whose tool is not there is passed over, unless one of its bottles is recorded.

        Raises:
            BackendError: something could not be removed.
        """
        removed: set[str] = set()
        identities = self._state.identities()
        recorded = {metadata.identity: metadata.backend for metadata in self.recorded()}
        # Identity → the backends that may have a guest of it: those that list one, and its own,
        # where one may have been made since.
        where = {identity: {name} & set(BACKENDS) for identity, name in recorded.items()}
        for name in BACKENDS:
            try:
                left = self._backend(name).leftovers()
            except BackendError as error:
                if name in recorded.values():
                    raise
                self._host.log.info("%s is passed over: %s", name, error)
                continue
            for identity in left:
                where.setdefault(identity, set()).add(name)
                identities.append(identity)
        for identity in dict.fromkeys(identities):
            with self._idle(identity) as idle:
                if idle:
                    removed |= self._clear(identity, sorted(where.get(identity, ())))
        self._state.sweep()
        for file in (self._host.root / ENV_FILES).glob("*.*"):
            if self._state.holder(file.stem) is None:
                with told(StateError, f"remove {file}"):
                    file.unlink(missing_ok=True)
        return sorted(removed)

    def _clear(self, identity: str, backends: list[str]) -> set[str]:
        """Remove the guests of a bottle that nobody runs, and then its record unless preserved."""
        removed: set[str] = set()
        for backend in map(self._backend, backends):
            if identity in backend.leftovers():
                backend.remove(identity)
                removed.add(identity)
        preserved_too = faults.on("cleanup-takes-preserved")
        if self._state.is_recorded(identity) and self._state.remove(
            identity, preserved_too=preserved_too
        ):
            removed.add(identity)
        return removed

    @contextmanager
    def _idle(self, identity: str) -> Iterator[bool]:
        """Whether nobody runs a bottle, which stays so until the end of the block.

        Raises:
            StateError: it cannot be told.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(self._state.locked(identity))
            except HeldError:
                yield False
                return
            except StateError:
                # Without a record there is nothing that could be launched.
                if self._state.is_recorded(identity):
                    raise
            yield True

    def propose(self, identity: str, *, image: str, justification: str) -> Proposal:
        """Queue a change of a bottle's image.

        Raises:
            BottleError: there is no such bottle, or nothing is proposed.
        """
        self._state.read(identity)
        return self._proposals.add(identity, image=image, justification=justification)

    def pending(self) -> list[Proposal]:
        """Proposals that wait."""
        return self._proposals.pending()

    def approve(self, id: str) -> None:
        """Apply a proposal by the handler of its bottle's own backend.

        Raises:
            BottleError: it cannot be applied, or was; it stays as it is and the bottle lives.
        """
        self._proposals.get(id)
        with self._proposals.alone(id):
            self._apply(id)

    def _apply(self, id: str) -> None:
        proposal = self._proposals.get(id)
        if proposal.status != "pending" and not faults.on("approve-twice-applies-twice"):
            raise RemediationError(f"cannot approve {id}: it was {proposal.status} before")
        metadata = self._state.read(self._meant(proposal))
        backend = metadata.backend
        if faults.on("approve-dispatches-to-default"):
            backend = choose_backend(None, self._host.environ)
        if backend not in BACKENDS:
            raise StateError(f"cannot approve {id}: unknown backend {backend!r} is recorded")
        if faults.on("approval-noted-first"):
            self._proposals.write(dataclasses.replace(proposal, status="applied"))
        self._backend(backend).apply_image(metadata.identity, proposal.image)
        if not faults.on("approved-image-forgotten"):
            self._state.write(dataclasses.replace(metadata, image=proposal.image))
        self._proposals.write(dataclasses.replace(proposal, status="applied"))

    def _meant(self, proposal: Proposal) -> str:
        """The identity of the bottle that a proposal is for."""
        if faults.on("approve-by-name"):
            name, _, _ = proposal.identity.rpartition("-")
            for identity in self._state.identities():
                if identity.rpartition("-")[0] == name:
                    return identity
        return proposal.identity

    def _backend(self, name: str) -> Backend:
        return BACKENDS[name](self._host)

    def _forget(self, metadata: Metadata) -> None:
        """Remove the state of a bottle that is not preserved and whose guest is gone."""
        if self._state.is_preserved(metadata.identity):
            return
        try:
            left = self._backend(metadata.backend).leftovers()
        except BackendError as error:
            # Told as a warning, or it would take the place of why the launch failed.
            self._host.log.warning("%s stays recorded for cleanup: %s", metadata.identity, error)
            return
        if metadata.identity not in left:
            preserved_too = faults.on("preserved-meanwhile-is-removed")
            self._state.remove(metadata.identity, preserved_too=preserved_too)
