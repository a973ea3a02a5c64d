"""One call on its way to a loop and back: how it runs there, how it is cancelled, how it ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

import trio

from harness_core.base.errors import HarnessError

T = TypeVar("T")


def closed(where: str) -> HarnessError:
    """The error of a call that comes too late."""
    return HarnessError(
        f"use {where}", observed="it was closed", next_step="Use it inside the block that opened it"
    )


class Call(Generic[T]):
    """A call that runs on one loop for a caller elsewhere; made by a :class:`Loop`.

    Args:
        function: what is run.
        where: what errors call the loop.
        token: of the loop.
        begin: starts a task there; whether it did, or the loop starts none any more.

    Attributes:
        outcome: done when the call has ended on its loop; cancelled when it gave no answer.
    """

    def __init__(
        self,
        function: Callable[[], Awaitable[T]],
        *,
        where: str,
        token: trio.lowlevel.TrioToken,
        begin: Callable[[Callable[[], Awaitable[None]]], bool],
    ) -> None:
        self.outcome: Future[T] = Future()
        self._function = function
        self._where = where
        self._token = token
        self._begin = begin
        self._scope = trio.CancelScope()
        self._begun = False

    def send(self) -> None:
        """Have the call begin on the loop; from any thread.

        Raises:
            HarnessError: the loop was closed.
        """
        try:
            self._token.run_sync_soon(self._arrive)
        except trio.RunFinishedError:
            raise closed(self._where) from None

    def cancel(self) -> None:
        """Cancel the call, sent or not; from any thread. ``outcome`` is done when it has ended."""
        try:
            self._token.run_sync_soon(self._cancel)
        except trio.RunFinishedError:
            self.outcome.cancel()

    def check(self) -> None:
        """Raise what the call raised; cancellations are the loop's own affair."""
        if not self.outcome.cancelled() and (error := self.outcome.exception()) is not None:
            raise error

    def answer(self) -> T:
        """What the call answered; raises what it raised.

        Raises:
            HarnessError: its loop was closed before it had ended, or before it began.
        """
        if not self.outcome.cancelled():
            return self.outcome.result()
        if not self._begun:
            raise closed(self._where)
        raise HarnessError(
            f"wait for a call on {self._where}",
            observed="the loop was stopped",
            next_step="Have every call end inside the block that opened it",
        )

    # --- on the loop ----------------------------------------------------------------------------

    def _arrive(self) -> None:
        if self._scope.cancel_called:
            return
        self._begun = self._begin(self._run)
        if not self._begun:
            self.outcome.cancel()

    def _cancel(self) -> None:
        self._scope.cancel()
        if not self._begun:
            self.outcome.cancel()

    @trio.lowlevel.enable_ki_protection
    async def _run(self) -> None:
        """Run the call. Ctrl-C is for the main task of the loop."""
        try:
            with self._scope:
                self.outcome.set_result(await self._function())
        except BaseException as raised:
            error = _without_cancellations(raised)
            if error is None:
                raise
            self.outcome.set_exception(error)
        finally:
            self.outcome.cancel()  # nothing when it has ended otherwise


def _without_cancellations(error: BaseException) -> BaseException | None:
    if isinstance(error, BaseExceptionGroup):
        cancelled, others = error.split(trio.Cancelled)
        return error if cancelled is None else others
    return None if isinstance(error, trio.Cancelled) else error
