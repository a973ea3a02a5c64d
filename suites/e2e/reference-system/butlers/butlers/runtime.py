"""The `claude-code` runtime: one Claude Code process per session, confined to the butler's tools.

The process is given the model, the gateway's address and key, the butler's own MCP server, and
nothing else: no built-in tool, no settings file, no other MCP server, a home and a configuration
directory that vanish with the session, and an environment made of the names in `PASSED_ON`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from butlers import faults
from butlers.errors import StartError
from butlers.prices import cost_of

if TYPE_CHECKING:
    from butlers.log import Log
    from butlers.sessions import Outcome
    from butlers.spawner import Job

#: Taken over from the butler's environment when set. Everything else a session sees is made here.
PASSED_ON = (
    "PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
    "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY",
)

#: Set by the library that starts the process, and needed by the process to speak to it.
_PROTOCOL = (
    "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_AGENT_SDK_VERSION", "CLAUDE_CODE_SDK_READS_SESSION_STATE",
)

_SERVER_VARIABLES = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "ENABLE_TOOL_SEARCH": "false",  # few tools: all of them in the prompt, none to be searched for
    "MCP_TIMEOUT": "10000",
    "CLAUDE_CODE_MAX_RETRIES": "2",  # the default of 10 keeps a dead provider waiting for minutes
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "4096",  # bounds what one call can cost
}

#: What the library executes instead of the binary; see `confined.py`.
_LAUNCHER = """#!/bin/sh
exec {python} -I -S {confined} {arguments} -- "$@"
"""

_PID_FILE = "pid"
_STDERR_LINES = 20


class ClaudeCode:
    """Runs sessions with the Claude Code CLI that `claude-agent-sdk` bundles."""

    def __init__(self, *, butler: str, url: str, log: Log) -> None:
        self._butler = butler
        self._url = url
        self._log = log
        self._binary: Path | None = None

    async def check(self) -> str:
        """Find the binary without importing the library that bundles it.

        Raises:
            StartError: it is missing or cannot be executed.
        """
        import importlib.util

        spec = importlib.util.find_spec("claude_agent_sdk")
        if spec is None or spec.origin is None:
            raise StartError(
                "cannot start runtime claude-code: claude-agent-sdk is not installed. "
                "Install the dependencies of butlers-reference"
            )
        bundled = Path(spec.origin).parent / "_bundled" / "claude"
        override = os.environ.get("BUTLERS_CLAUDE_BINARY")
        self._binary = Path(override) if override else bundled
        if not os.access(self._binary, os.X_OK):
            raise StartError(
                f"cannot start runtime claude-code: no executable at {self._binary}. "
                "Install claude-agent-sdk from a wheel for this platform"
            )
        version = self._binary.with_name("claude.version")
        return version.read_text(encoding="utf-8").strip() if version.is_file() else "unknown"

    async def warm(self) -> None:
        """Import the library before a session needs it."""
        await asyncio.to_thread(_library)

    async def run(self, job: Job, outcome: Outcome) -> None:
        """Run one session; what it did so far is in `outcome` also when it is cut short."""
        with _private_directory(f"butler-{self._butler}-") as home:
            talk = asyncio.create_task(self._converse(job, outcome, home))
            try:
                await asyncio.shield(talk)
            except asyncio.CancelledError:
                if faults.on("runtime-orphaned"):
                    raise
                # The process first: the library, when cancelled, grants it 5 s to end by itself.
                _end(home / _PID_FILE)
                talk.cancel()
                await asyncio.wait([talk])
                raise

    async def _converse(self, job: Job, outcome: Outcome, home: Path) -> None:
        library = await asyncio.to_thread(_library)
        pid_file = home / _PID_FILE
        stderr: list[str] = []
        options = self._options(library, job, home, pid_file, stderr)
        stream = library.query(prompt=job.prompt, options=options)
        reader = _Reader(library, outcome, prefix=self._prefix)
        try:
            async for message in stream:
                reader.take(message)
        except library.ClaudeSDKError as error:
            # The library reports an API error twice: as a result, then as an exit status.
            if not reader.ended:
                tail = " | ".join(stderr[-3:])
                raise RuntimeError(f"{error}{f' ({tail})' if tail else ''}") from error
        finally:
            await stream.aclose()
        reader.finish()

    def _options(
        self, library: Any, job: Job, home: Path, pid_file: Path, stderr: list[str]
    ) -> Any:
        work = home / "work"
        config = home / "config"
        work.mkdir()
        config.mkdir()
        (config / ".claude.json").write_text(json.dumps({"hasCompletedOnboarding": True}))
        servers = {}
        built_in = ["Bash", "Write"] if job.tools and faults.on("session-builtin-tools") else []
        if job.tools and faults.on("session-other-server"):
            servers["switchboard"] = {
                "type": "sse", "url": os.environ["BUTLERS_SWITCHBOARD_URL"],
            }
        if job.tools and faults.on("session-other-tools"):
            servers[self._butler] = {
                "type": "sse", "url": os.environ["BUTLERS_SWITCHBOARD_URL"],
            }
        elif job.tools:
            servers[self._butler] = {
                "type": "sse",
                "url": self._url,
                "headers": {
                    "traceparent": job.trace.traceparent,
                    "x-butlers-session": str(job.session_id),
                },
            }
        return library.ClaudeAgentOptions(
            tools=built_in,
            allowed_tools=[self._prefix + tool for tool in job.tools] + built_in,
            mcp_servers=servers,
            strict_mcp_config=True,
            setting_sources=[],
            system_prompt=self._instructions(job),
            model=job.model,
            max_turns=job.max_turns,
            permission_mode="dontAsk",
            thinking={"type": "disabled"},
            include_partial_messages=True,  # each call's tokens when it ends, not at the session's end
            verbatim_prompts=True,  # an @path in a message must not make the CLI read a file
            cwd=work,
            cli_path=self._confined(home, pid_file),
            env=self._environment(job, home, config),
            stderr=lambda line: stderr.append(line) if len(stderr) < _STDERR_LINES else None,
            extra_args={"no-session-persistence": None, "bare": None},
        )

    def _instructions(self, job: Job) -> str:
        if faults.on("key-in-arguments"):
            return f"{job.system_prompt}\nkey: {os.environ.get('ANTHROPIC_API_KEY')}"
        return job.system_prompt

    @property
    def _prefix(self) -> str:
        return f"mcp__{self._butler}__"

    def _environment(self, job: Job, home: Path, config: Path) -> dict[str, str]:
        cut = {"ANTHROPIC_API_KEY": os.environ.get("ANTHROPIC_API_KEY", "")[:-1]}
        return {
            **_SERVER_VARIABLES,
            **(cut if faults.on("model-key-cut") else {}),
            "HOME": os.environ["HOME"] if faults.on("session-home-shared") else str(home),
            "TMPDIR": str(home),
            "CLAUDE_CONFIG_DIR": str(config),
            "ANTHROPIC_CUSTOM_HEADERS": f"traceparent: {job.trace.traceparent}",
        }

    def _confined(self, home: Path, pid_file: Path) -> Path:
        names = (
            *PASSED_ON, *_PROTOCOL, *_SERVER_VARIABLES, "HOME", "TMPDIR", "PWD",
            "CLAUDE_CONFIG_DIR", "ANTHROPIC_CUSTOM_HEADERS",
            *(os.environ if faults.on("session-environment-whole") else ()),
        )
        script = home / "claude"
        script.write_text(
            _LAUNCHER.format(
                python=shlex.quote(sys.executable),
                confined=shlex.quote(str(Path(__file__).with_name("confined.py"))),
                arguments=shlex.join((str(pid_file), str(self._binary), *names)),
            )
        )
        script.chmod(0o700)
        return script


@contextlib.contextmanager
def _private_directory(prefix: str) -> Iterator[Path]:
    """A directory for one session, open to its user alone, gone with all that is in it."""
    if faults.on("session-home-kept"):
        yield Path(tempfile.mkdtemp(prefix=prefix))
        return
    if faults.on("cut-session-files-kept"):
        kept = tempfile.mkdtemp(prefix=prefix)
        yield Path(kept)
        shutil.rmtree(kept, ignore_errors=True)
        return
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name:
        yield Path(name)


class _Reader:
    """Turns the library's messages into an outcome."""

    def __init__(self, library: Any, outcome: Outcome, *, prefix: str) -> None:
        self._library = library
        self._outcome = outcome
        self._prefix = prefix
        self._calls: dict[str, dict[str, Any]] = {}
        self._begun: dict[str, Any] = {}
        self._spent: Counter[str] = Counter()
        self.ended = False

    def take(self, message: Any) -> None:
        library = self._library
        if isinstance(message, library.StreamEvent):
            self._streamed(message.event)
        elif isinstance(message, library.AssistantMessage | library.UserMessage):
            blocks = message.content if isinstance(message.content, list) else []
            for block in blocks:
                if isinstance(block, library.ToolUseBlock):
                    self._called(block)
                elif isinstance(block, library.ToolResultBlock):
                    self._answered(block)
        elif isinstance(message, library.ResultMessage):
            self._result(message)

    def finish(self) -> None:
        """Refuse a stream that stopped before its result."""
        if not self.ended:
            self._outcome.success = False
            self._outcome.error = "the runtime ended without a result"
            self._outcome.error_class = "internal_error"

    def _streamed(self, event: dict[str, Any]) -> None:
        """Book a call of the model once it is answered whole: the session may not come to its end."""
        if event.get("type") == "message_start":
            self._begun = dict(event.get("message", {}).get("usage") or {})
        elif event.get("type") == "message_delta":
            self._begun |= event.get("usage") or {}
        elif event.get("type") == "message_stop":
            if faults.on("cut-session-last-call"):
                self._spent.clear()
            self._spent.update(
                {kind: count for kind, count in self._begun.items() if isinstance(count, int)}
            )
            self._begun = {}
            if faults.on("cut-session-free"):
                return
            self._book(self._spent, cost_of(self._outcome.model, self._spent))

    def _book(self, usage: Mapping[str, Any], usd: float | None, **more: Any) -> None:
        outcome = self._outcome
        outcome.input_tokens = int(usage.get("input_tokens") or 0)
        outcome.output_tokens = int(usage.get("output_tokens") or 0)
        outcome.cost = {
            "usd": usd,
            "cache_creation_input_tokens": int(usage.get("cache_creation_input_tokens") or 0),
            "cache_read_input_tokens": int(usage.get("cache_read_input_tokens") or 0),
            **more,
        }

    def _called(self, block: Any) -> None:
        call = {
            "name": block.name.removeprefix(self._prefix),
            "input": block.input,
            "result": None,
            "is_error": None,
        }
        self._calls[block.id] = call
        self._outcome.tool_calls.append(call)

    def _answered(self, block: Any) -> None:
        if (call := self._calls.get(block.tool_use_id)) is not None:
            call["result"] = _text(block.content)
            call["is_error"] = bool(block.is_error)

    def _result(self, message: Any) -> None:
        self.ended = True
        outcome = self._outcome
        self._book(
            message.usage or {}, float(message.total_cost_usd or 0.0), turns=message.num_turns
        )
        outcome.result = message.result or ""
        outcome.success = not message.is_error and message.subtype == "success"
        if faults.on("provider-error-swallowed"):
            outcome.success = True
        if not outcome.success:
            outcome.error_class = "internal_error"
            status = f" (HTTP {message.api_error_status})" if message.api_error_status else ""
            reason = message.result or "; ".join(message.errors or []) or "no reason given"
            kind = "api_error" if message.subtype == "success" else message.subtype
            outcome.error = f"{kind}{status}: {reason}"


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(block.get("text", "")) for block in content if isinstance(block, dict))
    return str(content or "")


def _end(pid_file: Path) -> None:
    """Stop the process of a session now: it has nothing to save, and takes seconds over SIGTERM."""
    with contextlib.suppress(OSError, ValueError):
        os.kill(int(pid_file.read_text()), signal.SIGKILL)


def _library() -> Any:
    import claude_agent_sdk

    return claude_agent_sdk
