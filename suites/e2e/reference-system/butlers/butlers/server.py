"""Speaks MCP over HTTP/SSE at `/sse`, on a socket that was bound before anything else started."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import re
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from butlers import __version__, faults, tracing
from butlers.errors import StartError
from butlers.hosts import OwnHost

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request

    from butlers.butler import Butler

#: The header by which a session names itself.
SESSION = "x-butlers-session"
#: The schema of a tool that says nothing of its arguments.
ANYTHING = {"type": "object"}

_BACKLOG = 128
#: Streams of clients that do not hang up are cut after this.
_CLOSE_S = 1
#: Calls whose work has ended get this long to deliver their answer.
_ANSWER_S = 5.0
#: What the first event of a stream names, and each request to it.
_STREAM = re.compile(rb"session_id=([0-9a-f]{32})")
_EVENT_DATA = re.compile(rb"^data: (.*?)\r?$", re.MULTILINE)


def bind(port: int) -> socket.socket:
    """Take the port without listening yet: a busy port is known before anything is touched.

    Raises:
        StartError: another process holds it.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("0.0.0.0" if faults.on("listens-everywhere") else "127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise _busy(port, error) from error
    return listener


def listen(listener: socket.socket) -> None:
    """Start to accept; connections wait until :meth:`Server.start` answers them.

    Raises:
        StartError: another process began to listen on the port since :func:`bind`.
    """
    port = listener.getsockname()[1]
    try:
        listener.listen(_BACKLOG)
    except OSError as error:
        raise _busy(port, error) from error


def _busy(port: int, error: OSError) -> StartError:
    why = "it is in use" if error.errno == errno.EADDRINUSE else str(error.strerror)
    return StartError(
        f"cannot listen on 127.0.0.1:{port}: {why}. "
        "Stop the process that holds the port, or set another one"
    )


class Server:
    """The MCP server of one butler.

    Args:
        butler: whose tools are served.
    """

    def __init__(self, butler: Butler) -> None:
        self._butler = butler
        self._server: uvicorn.Server | None = None
        self._task: asyncio.Task[None] | None = None
        self._calls = Calls()

    async def start(
        self, listener: socket.socket, *, session_tools: frozenset[str],
        is_session: Callable[[str], bool],
    ) -> None:
        """Serve; returns when requests are answered.

        Args:
            listener: the listening socket.
            session_tools: names a session of this butler may see and call.
            is_session: whether an id names a session that runs now.

        Raises:
            StartError: the server ended before it was up.
        """
        app = build(
            self._butler, session_tools=session_tools, is_session=is_session, calls=self._calls
        )
        import uvicorn

        class Quiet(uvicorn.Server):
            """Signals belong to the daemon."""

            @contextlib.contextmanager
            def capture_signals(self) -> Any:
                yield

        self._server = Quiet(
            uvicorn.Config(
                OwnHost(app, port=listener.getsockname()[1], log=self._butler.log),
                http="h11",  # the other one hides the host that a target names
                log_config=None,
                access_log=False,
                lifespan="on",
                timeout_graceful_shutdown=_CLOSE_S,
                ws="none",
                loop="asyncio",
            )
        )
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]))
        while not self._server.started:
            if self._task.done():
                raise StartError("cannot serve MCP: the server ended while starting")
            await asyncio.sleep(0.001)

    async def stop(self) -> None:
        """Close the port and every stream."""
        if self._server is None or self._task is None:
            return
        await self._calls.ended(_ANSWER_S)
        self._server.should_exit = True
        # Streams of clients never end by themselves; cut them instead of waiting for the timeout.
        for connection in list(self._server.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.close()
        with contextlib.suppress(SystemExit):
            await self._task


class Calls:
    """The tool calls whose answers are not on the wire yet, so that none is cut off before it.

    That the work of a call has ended says nothing of its answer, which passes through more tasks.
    """

    def __init__(self) -> None:
        self._open: set[tuple[str, Any]] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def begun(self, stream: str, number: Any) -> None:
        """A call came in by a stream.

        Args:
            stream: the stream that its answer goes to.
            number: the id that its answer will carry.
        """
        self._open.add((stream, number))
        self._idle.clear()

    @contextlib.contextmanager
    def watched(self, send: Any) -> Any:
        """What a stream is to be written by; at its end it owes no answers any more."""
        stream = ""

        async def written(message: Any) -> None:
            nonlocal stream
            await send(message)
            body = message.get("body", b"")
            if not stream and (named := _STREAM.search(body)):
                stream = named[1].decode()
            for data in _EVENT_DATA.findall(body):
                with contextlib.suppress(ValueError, AttributeError):
                    answered = (stream, json.loads(data).get("id"))
                    self._settled(lambda call, answered=answered: call == answered)

        try:
            yield written
        finally:
            self._settled(lambda call: call[0] == stream)

    def _settled(self, which: Callable[[tuple[str, Any]], bool]) -> None:
        self._open = {call for call in self._open if not which(call)}
        if not self._open:
            self._idle.set()

    async def ended(self, seconds: float) -> None:
        """Wait until the last answer has been written."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)


def preload() -> None:
    """Import what serving needs, so that forked processes share it."""
    import asyncpg  # noqa: F401
    import mcp.client.sse
    import mcp.server.sse  # noqa: F401
    import uvicorn  # noqa: F401

    import butlers.toolbox  # noqa: F401


def build(
    butler: Butler, *, session_tools: frozenset[str], is_session: Callable[[str], bool],
    calls: Calls,
) -> Starlette:
    """The application that serves every tool, with the session filter in place.

    Raises:
        StartError: a tool cannot be offered.
    """
    from mcp.server.lowlevel import Server as McpServer
    from mcp.server.sse import SseServerTransport
    from mcp_types import CallToolResult, ListToolsResult
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Mount, Route

    from butlers.toolbox import Toolbox, refusal

    toolbox = Toolbox(butler.tools, log=butler.log)

    async def list_tools(context: Any, _params: Any) -> ListToolsResult:
        """Sessions get their own butler's session tools."""
        if SESSION not in context.request.headers:
            return ListToolsResult(tools=toolbox.offered)
        offered = [tool for tool in toolbox.offered if tool.name in session_tools]
        if faults.on("session-tools-untyped"):
            offered = [tool.model_copy(update={"input_schema": ANYTHING}) for tool in offered]
        return ListToolsResult(tools=offered)

    async def call_tool(context: Any, params: Any) -> CallToolResult:
        name, headers = params.name, context.request.headers
        session = headers.get(SESSION)
        if session is not None:
            if not is_session(session):
                return refusal(f"cannot call {name}: session {session} does not run")
            if name not in session_tools:
                return refusal(f"cannot call {name}: a session may not use this tool")
        parent = tracing.parse(headers.get("traceparent"))
        span = butler.tracer.span(f"tool {name}", parent=parent, **{"tool.name": name})
        calls.begun(context.request.query_params.get("session_id", ""), context.request_id)
        with tracing.called(parent, session=session), span:
            answer = await toolbox.call(name, params.arguments or {})
            if answer.is_error:
                butler.tracer.failed(answer.content[0].text)
            return answer

    mcp: McpServer[Any] = McpServer(
        f"butler-{butler.name}", version=__version__, on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    transport = SseServerTransport("/messages/")  # looks at no host; `hosts.py` does

    async def stream(request: Request) -> Response:
        with calls.watched(request._send) as send:
            async with transport.connect_sse(request.scope, request.receive, send) as ends:
                await mcp.run(*ends, mcp.create_initialization_options())
        return Response()

    return Starlette(
        routes=[
            Route("/sse", stream, methods=["GET"]),
            Mount("/messages/", app=transport.handle_post_message),
        ]
    )
