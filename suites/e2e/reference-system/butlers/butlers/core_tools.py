"""The tools every butler has. A model sees none of them but those its configuration names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID, uuid4

from pydantic import Field

from butlers import database, faults, tracing
from butlers.client import CallProblem, call
from butlers.envelopes import Name, RouteInput, RouteVersion, TraceContext
from butlers.errors import ButlerError, Rejected
from butlers.log import describe
from butlers.spawner import SpawnerResult

if TYPE_CHECKING:
    from butlers.butler import Butler

PROMPT_CHARS = 64_000

Prompt = Annotated[
    str, Field(description="what the butler is asked to do", min_length=1, max_length=PROMPT_CHARS)
]
Key = Annotated[str, Field(description="the key, taken literally", min_length=1, max_length=512)]
Cron = Annotated[
    str, Field(description="five cron fields, UTC", examples=["0 9 * * 1"], max_length=100)
]


def register(butler: Butler) -> None:
    """Add the core tools to a butler."""
    for group in (_service, _sessions, _state, _schedules):
        for name, function in group(butler).items():
            butler.add_tool(function, name=name, domain=False)


async def _session(butler: Butler, prompt: str, **options: Any) -> dict[str, Any]:
    """Run a session; whatever prevents one is an answer with its outcome class, never silence."""
    try:
        return (await butler.spawner.trigger(prompt, **options)).as_dict()
    except Rejected as refusal:
        error, error_class = str(refusal), refusal.error_class
    except Exception as problem:  # the edge of a call; the caller records the answer
        error, error_class = describe(problem), "internal_error"
        butler.log.error("session.prevented", error=error)
    return SpawnerResult(
        session_id=None, status=error_class, success=False, result="", error=error,
        error_class=error_class,
    ).as_dict()


def _checked(delivery: dict[str, Any]) -> dict[str, Any]:
    """As its arguments are after a call over MCP."""
    context = delivery.get("trace_context")
    return {**delivery, "trace_context": TraceContext(**context) if context else None}


async def _through_switchboard(butler: Butler, arguments: dict[str, Any]) -> dict[str, Any]:
    """Have the switchboard hand a delivery to the messenger."""
    settings = butler.config.switchboard
    try:
        return await call(
            settings.url, "deliver", arguments, connect_timeout_s=settings.connect_timeout_s,
            timeout_s=settings.hop_timeout_s,
        )
    except CallProblem as problem:
        return {"status": problem.error_class, "error": f"through the switchboard: {problem}"}


def _service(butler: Butler) -> dict[str, Any]:
    asked = database.Probe(butler.pool)

    async def status() -> dict[str, Any]:
        """How this butler, its database and its modules fare now."""
        trouble = None if faults.on("database-unasked") else await asked.trouble()
        return {
            "name": butler.name,
            "description": butler.config.description,
            "health": "ok" if butler.modules.healthy and trouble is None else "degraded",
            "database": trouble or "ok",
            "modules": butler.modules.report(),
            "queue": butler.spawner.queued,
        }

    async def trigger(
        prompt: Prompt,
        context: Annotated[
            str | None, Field(description="put before the prompt", max_length=PROMPT_CHARS)
        ] = None,
    ) -> dict[str, Any]:
        """Run one session of this butler and answer with what came of it."""
        return await _session(
            butler, prompt, trigger_source="trigger", context=context, trace=tracing.caller().trace
        )

    async def route_execute(
        schema_version: RouteVersion,
        request_id: Name,
        source_butler: Name,
        target_butler: Name,
        input: RouteInput,
        trace_context: TraceContext | None = None,
    ) -> dict[str, Any]:
        """Do what another butler hands over (route.v1)."""
        if target_butler != butler.name:
            raise ButlerError(
                f"cannot route to {target_butler}: this is {butler.name}. Correct target_butler"
            )
        if source_butler not in butler.config.allowed_sources and not faults.on("route-any-source"):
            raise ButlerError(
                f"cannot route from {source_butler}: {butler.name} accepts "
                f"{', '.join(butler.config.allowed_sources) or 'nobody'}"
            )
        trace = tracing.parse(trace_context.traceparent) if trace_context else None
        return await _session(
            butler, input.prompt, trigger_source="external", context=input.context,
            request_id=request_id, trace=trace,
        )

    async def tick() -> dict[str, Any]:
        """Run every scheduled task that is due."""
        return {"ran": await butler.schedules.tick(butler.spawner)}

    async def notify(
        channel: Annotated[
            Literal["telegram", "email"],
            Field(description="how to send it", examples=["telegram", "email"]),
        ],
        message: Annotated[
            str, Field(description="the text to send", min_length=1, max_length=4096)
        ],
        recipient: Annotated[
            str | None,
            Field(
                description="chat id or address; the owner when not given",
                min_length=0 if faults.on("nobody-is-the-owner") else 1,
                max_length=320,
            ),
        ] = None,
    ) -> dict[str, Any]:
        """Send a message out to the owner or another person, by way of the messenger."""
        if faults.on("notify-swallowed"):
            return {"status": "sent", "channel": channel, "recipient": recipient}
        position = tracing.caller()
        given: dict[str, Any] = {
            "origin_butler": butler.name, "channel": channel, "message": message,
            "recipient": recipient, "idempotency_key": f"notify-{uuid4()}",
            "request_id": butler.spawner.request_of(position.session),
        }
        if position.trace is not None:
            given["trace_context"] = {"traceparent": position.trace.traceparent}
        answer = await (
            _through_switchboard(butler, given) if butler.deliver is None
            else butler.deliver(**_checked(given))
        )
        if answer["status"] != "delivered":
            raise ButlerError(
                f"cannot notify by {channel}: {answer.get('error') or answer['status']}"
            )
        return {
            "status": "sent", "channel": channel, "recipient": answer["recipient"],
            "delivery_id": answer["id"],
        }

    return {
        "status": status, "trigger": trigger, "route.execute": route_execute, "tick": tick,
        "notify": notify,
    }


def _sessions(butler: Butler) -> dict[str, Any]:
    async def sessions_list(
        limit: Annotated[int, Field(description="rows at most", ge=1, le=500)] = 20,
        offset: Annotated[int, Field(description="rows to pass over", ge=0)] = 0,
    ) -> dict[str, Any]:
        """Sessions of this butler, newest first."""
        return {"sessions": await butler.sessions.list(limit=limit, offset=offset)}

    async def sessions_get(
        session_id: Annotated[UUID, Field(description="id of the session")],
    ) -> dict[str, Any]:
        """One session with its tool calls."""
        if (session := await butler.sessions.get(session_id)) is None:
            raise ButlerError(f"cannot show session {session_id}: it does not exist")
        return session

    async def sessions_summary(
        hours: Annotated[float, Field(description="how far back", gt=0, le=8784)] = 24,
    ) -> dict[str, Any]:
        """Counts, tokens and cost of the sessions of the last hours."""
        return await butler.sessions.summary(since=datetime.now(UTC) - timedelta(hours=hours))

    return {
        "sessions_list": sessions_list, "sessions_get": sessions_get,
        "sessions_summary": sessions_summary,
    }


def _state(butler: Butler) -> dict[str, Any]:
    async def state_get(key: Key) -> dict[str, Any]:
        """The value of a key."""
        found, value = await butler.state.get(key)
        return {"key": key, "found": found, "value": value}

    async def state_set(
        key: Key, value: Annotated[Any, Field(description="any JSON value")]
    ) -> dict[str, Any]:
        """Set a key to a JSON value."""
        await butler.state.set(key, value)
        return {"key": key, "value": value}

    async def state_delete(key: Key) -> dict[str, Any]:
        """Forget a key."""
        return {"key": key, "deleted": await butler.state.delete(key)}

    async def state_list(
        prefix: Annotated[str, Field(description="beginning of the keys, taken literally")] = "",
    ) -> dict[str, Any]:
        """Keys and values below a prefix."""
        entries = await butler.state.list(prefix)
        return {"keys": [entry["key"] for entry in entries], "entries": entries}

    return {
        "state_get": state_get, "state_set": state_set, "state_delete": state_delete,
        "state_list": state_list,
    }


def _schedules(butler: Butler) -> dict[str, Any]:
    async def schedule_list() -> dict[str, Any]:
        """Scheduled tasks."""
        return {"schedules": await butler.schedules.list()}

    async def schedule_create(
        name: Name, cron: Cron, prompt: Prompt
    ) -> dict[str, Any]:
        """Schedule a prompt."""
        return await butler.schedules.create(name, line=cron, prompt=prompt)

    async def schedule_update(
        schedule_id: Annotated[UUID, Field(description="id of the task")],
        cron: Cron | None = None,
        prompt: Prompt | None = None,
        enabled: Annotated[bool | None, Field(description="whether ticks run it")] = None,
    ) -> dict[str, Any]:
        """Change a scheduled task."""
        return await butler.schedules.update(
            schedule_id, line=cron, prompt=prompt, enabled=enabled
        )

    async def schedule_delete(
        schedule_id: Annotated[UUID, Field(description="id of the task")],
    ) -> dict[str, Any]:
        """Remove a scheduled task made at run time."""
        await butler.schedules.delete(schedule_id)
        return {"schedule_id": str(schedule_id), "deleted": True}

    tools: dict[str, Any] = {
        "schedule_list": schedule_list, "schedule_create": schedule_create,
        "schedule_update": schedule_update,
    }
    return tools if faults.on("core-tool-missing") else {**tools, "schedule_delete": schedule_delete}
