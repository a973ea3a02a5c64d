"""One call on its way to a loop and back: how it runs there, how it is cut off, how it ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar, cast

import trio

from harness_core.base.errors import HarnessError

T = TypeVar("T")


def closed(where: str) -> HarnessError:
    """The error of a call that comes too late."""
    return HarnessError(
        f"use {where}", observed="it was closed", next_step="Use it inside the block that opened it"
    )


class Errand(Generic[T]):
    """A call that runs on one loop for a caller elsewhere; made by a :class:`Loop`.

    Args:
        call: what is run.
        where: what errors call the loop.
        token: of the loop.
        begin: starts a task there; whether it did, or the loop starts none any more.
        ended: called when the call has ended, or never began; perhaps more than once.
    """

    def __init__(
        self,
        call: Callable[[], Awaitable[T]],
        *,
        where: str,
        token: trio.lowlevel.TrioToken,
        begin: Callable[[Callable[[], Awaitable[None]]], bool],
        ended: Callable[[], None],
    ) -> None:
        self._call = call
        self._where = where
        self._token = token
        self._begin = begin
        self._ended = ended
        self._scope = trio.CancelScope()
        self._arrived = False
        self._value: T | None = None
        self._given = False
        self._error: BaseException | None = None

    def send(self) -> None:
        """Have the call begin on the loop; from any thread.

        Raises:
            HarnessError: the loop was closed.
        """
        try:
            self._token.run_sync_soon(self._arrive)
        except trio.RunFinishedError:
            raise closed(self._where) from None

    def cut_off(self) -> None:
        """Cancel the call, sent or not; from any thread. ``ended`` is called when it has ended."""
        try:
            self._token.run_sync_soon(self._cancel)
        except trio.RunFinishedError:
            self._ended()

    def check(self) -> None:
        """Raise what the call raised; cancellations are the loop's own affair."""
        error = self._error
        if isinstance(error, BaseExceptionGroup):
            cancelled, others = error.split(trio.Cancelled)
            error = error if cancelled is None else others
        if error is not None and not isinstance(error, trio.Cancelled):
            raise error

    def take(self) -> T:
        """What the call answered; raises what it raised.

        Raises:
            HarnessError: its loop was closed before it had ended, or before it began.
        """
        self.check()
        if not self._arrived:
            raise closed(self._where)
        if not self._given:
            raise HarnessError(
                f"wait for a call on {self._where}",
                observed="the loop was stopped",
                next_step="Have every call end inside the block that opened it",
            )
        return cast("T", self._value)

    # --- on the loop ----------------------------------------------------------------------------

    def _arrive(self) -> None:
        if self._scope.cancel_called:
            return
        self._arrived = self._begin(self._run)
        if not self._arrived:
            self._ended()

    def _cancel(self) -> None:
        self._scope.cancel()
        if not self._arrived:
            self._ended()

    @trio.lowlevel.enable_ki_protection
    async def _run(self) -> None:
        """Run the call. Ctrl-C is for the main task of the loop."""
        try:
            with self._scope:
                self._value = await self._call()
                self._given = True
        except BaseException as error:
            self._error = error
            if isinstance(error, trio.Cancelled):
                raise
        finally:
            self._ended()
