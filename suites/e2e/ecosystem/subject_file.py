"""The subject file of an ecosystem, read whole: a table or key that no adapter reads is a mistake.

[process]
layout = "one"            # one process serves every butler; "each" (one per butler) when left out

[ports]
source = "lease"          # any free port, given to the subject; "roster": as each butler.toml says
switchboard = 9100        # or fixed numbers, butler by butler
offset = 100              # how much higher they are in a second ecosystem at once

[tools]                                       # left out: MCP over HTTP/SSE at http://127.0.0.1:PORT/sse
url = "http://127.0.0.1:{port}/mcp"           # MCP elsewhere; streamable HTTP unless it ends in /sse
# or no MCP at all:
transport = "http"
call = "http://127.0.0.1:{port}/call/{tool}"  # POST, the arguments as a JSON object
list = "http://127.0.0.1:{port}/tools"        # GET, a JSON list of {name, input_schema}
result = "result"                             # key of the answer that holds the result; "": all of it
error = "error"                               # key that holds the reason of a refusal, when there is one

docs/reference/subject.md has the other tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from msgspec import field, structs

from harness_core.base.errors import BadInput
from harness_core.base.reading import Misfit, Table, like
from harness_core.system.subject import Subject, Tables, Variables, load_subject
from suites.e2e.ecosystem.contract import ANSWERS, CONTRACT, OF, PLACES, VALUES
from suites.e2e.ecosystem.roster import ButlerConfig

__all__ = ["OWN_PROCESS", "EcosystemTables", "filled", "read_subject", "tables_of"]

#: The capability of every subject that does not say ``layout = "one"``.
OWN_PROCESS: Final = "own-process"

#: Of ports between two ecosystems.
MOST_OFFSET: Final = 4_000

#: A table or a column of a database.
Identifier = Annotated[str, like(r"[A-Za-z_]\w*")]


class Container(Table, frozen=True):
    """``[container]``.

    Attributes:
        image: the image that butlers run in; built from `dockerfile` when left out.
        dockerfile: relative to the file.
        base: the image that it begins from.
        context: folders that the build sees.
        read: folders of this machine that butlers may read.
    """

    image: str = ""
    dockerfile: str = "Dockerfile"
    base: str = "python"
    context: tuple[str, ...] = ()
    read: tuple[str, ...] = ()


class Ticks(Table, frozen=True):
    """``[heartbeat.ticks]``: the table of the heartbeat's database with a row per tick.

    Attributes:
        table: its name.
        butler: the column with the butler that was ticked.
        at: the column with the time.
        success: the column that says whether the tick was answered.
    """

    table: Identifier
    butler: Identifier
    at: Identifier
    success: Identifier


class Heartbeat(Table, frozen=True):
    """``[heartbeat]``.

    Attributes:
        env: variables that set its interval to `{interval_s}`.
        ticks: the table of the heartbeat's database with a row per tick.
    """

    env: Variables = field(default_factory=dict)
    ticks: Ticks | None = None


class Knobs(Table, frozen=True):
    """``[knobs]``, every knob a test may ask for: the variables that turn it.

    Attributes:
        connect_deadline_s: switchboard: until a target speaks MCP.
        heartbeat_s: butler: between two registrations.
        hop_deadline_s: switchboard: one route.execute.
        in_flight: switchboard: dispatches to one target at a time; others wait.
        lease_s: switchboard: silence after which a butler is stale.
        queue_depth: butler: triggers that may wait behind the running one.
        session_deadline_s: butler: one session.
        shutdown_s: butler: what running sessions get to end at shutdown.
        turns: butler: calls of the model in one session.
    """

    connect_deadline_s: Variables = field(default_factory=dict)
    heartbeat_s: Variables = field(default_factory=dict)
    hop_deadline_s: Variables = field(default_factory=dict)
    in_flight: Variables = field(default_factory=dict)
    lease_s: Variables = field(default_factory=dict)
    queue_depth: Variables = field(default_factory=dict)
    session_deadline_s: Variables = field(default_factory=dict)
    shutdown_s: Variables = field(default_factory=dict)
    turns: Variables = field(default_factory=dict)


class Log(Table, frozen=True):
    """``[log]``.

    Attributes:
        error: a pattern that the line of an error has in it, without colours; left out, its level
            is read: as a word at the front, as ``level=``, or from a line of JSON.
    """

    error: str = ""

    def __post_init__(self) -> None:
        try:
            re.compile(self.error)
        except re.error as error:
            raise Misfit("error", expected=f"a regular expression ({error})") from error


class Migrations(Table, frozen=True):
    """A row of ``[[migrations]]``.

    Attributes:
        path: the folder of an alembic chain; `{butler_dir}` and `{name}` are filled in.
        version_table: where a database says how far it is.
    """

    path: str
    version_table: str


class Model(Table, frozen=True):
    """``[model]``, which the gateway reads.

    Attributes:
        message: how the switchboard's prompt holds a `{message}`.
        registry: how it holds the `{registry}`.
        answer: the answer that it wants for each `{target}` with its `{prompt}`.
        tool: the tool that is called instead of an answer.
        arguments: what that tool is given.
        servers: the subject's own MCP servers; all when left out.
    """

    message: str = ""
    registry: str = ""
    answer: str = ""
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    servers: tuple[str, ...] = ()


class Module(Table, frozen=True):
    """``[modules.NAME]``.

    Attributes:
        env: variables with its credentials, from `{telegram_url}`, `{telegram_token}`,
            `{telegram_chat}`, `{mail_host}`, `{mail_port}`, `{mail_account}`, `{mail_password}`,
            `{mail_recipient}`, `{calendar_url}`, `{calendar_token}`, `{calendar_id}`.
    """

    env: Variables = field(default_factory=dict)


class Modules(Table, frozen=True):
    """``[modules]``.

    Attributes:
        telegram: of Telegram.
        email: of mail.
        calendar: of the calendar.
    """

    telegram: Module = Module()
    email: Module = Module()
    calendar: Module = Module()


class Golden(Table, frozen=True):
    """``[golden]``.

    Attributes:
        directory: a folder with what messages left, reviewed and found right.
    """

    directory: str = ""


class Process(Table, frozen=True):
    """``[process]``.

    Attributes:
        layout: a process for each butler, or one for all; one gets the variables of every butler.
    """

    layout: Literal["each", "one"] = "each"


class Profile(Table, frozen=True):
    """``[profile]``.

    Attributes:
        frames: what the files of its own code have in their names.
    """

    frames: str = ""


class Phrased(Table, frozen=True):
    """``[ingest]``, ``[route]``, ``[notify]``: a call of the contract in the product's words.

    Attributes:
        tool: its name there.
        arguments: what is sent: ``{payload.raw}`` stands for that place of the contract's call.
        answer: key of the contract's answer → where it stands in the product's.
        values: key of the contract's answer → the product's value → the contract's; of `[ingest]` the
            `status` of a message that was taken is `accepted`.
    """

    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    answer: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[str, str]] = field(default_factory=dict)


class Refused(Table, frozen=True):
    """``[refusal]``: an answer that says no without being an error of MCP.

    Attributes:
        key: of the answer.
        values: what it says then; left out: anything.
    """

    key: str
    values: tuple[str, ...] = ()


class Relations(Table, frozen=True):
    """``[tables.NAME]``: where a product keeps what the contract names.

    Attributes:
        select: a query that yields the contract's columns (below); of any other table that a test reads,
            such as `symptoms`, those that the test names. ``{name}`` is the butler's.
        values: column → the product's value → the contract's.
        more: further columns that it yields.
        butler: whose database it is in, where that is one alone.
    """

    select: str
    values: dict[str, dict[str, str]] = field(default_factory=dict)
    more: tuple[Identifier, ...] = ()
    butler: str = ""


class Roster(Table, frozen=True):
    """``[roster]``.

    Attributes:
        directory: where its butlers are.
        up: the command that starts every butler of ``{roster_dir}``; takes ``--only a,b``.
    """

    directory: str
    up: tuple[str, ...] = ()


class Session(Table, frozen=True):
    """``[session]``.

    Attributes:
        environment: patterns of variables that a session may have besides the usual.
    """

    environment: tuple[str, ...] = ()


class ToolsTable(Table, frozen=True):
    """``[tools]``.

    Attributes:
        transport: how tools are called.
        url: where MCP is served with `{port}`; streamable HTTP unless it ends in /sse.
        call: over HTTP: where a tool is called, by POST of its arguments; `{port}`, `{tool}`.
        list: over HTTP: where its tools are listed.
        result: key of the answer with the result; all of it when left out.
        error: key of the answer with the reason of a refusal; one that is told otherwise needs `[refusal]`.
    """

    transport: Literal["mcp", "http"] = "mcp"
    url: str = ""
    call: str = ""
    list: str = ""
    result: str = ""
    error: str = "error"

    def __post_init__(self) -> None:
        for key in ("call", "list") if self.transport == "http" else ():
            if not getattr(self, key).startswith(("http://", "https://")):
                raise Misfit(key, expected="a URL")


class EcosystemTables(Tables, frozen=True, kw_only=True):
    """Every table but ``[subject]`` and ``[env]``.

    A program in `argv` is looked for on the `PATH`, or, where it has a slash, from `cwd`; `{bin}` is the
    folder that `HARNESS_SUBJECT_BIN` names, else that of the Python that runs the tests. Fields of `argv`, `cwd` and `[env]`: `{bin}`, `{name}`, `{NAME}` (upper case), `{port}`, `{config_dir}`,
    `{roster_dir}`, `{database_url}` or in parts `{database_host}`, `{database_port}`, `{database_user}`,
    `{database_password}`, `{database_name}`, `{switchboard_url}`, `{gateway_url}`, `{gateway_key}`,
    `{otlp_url}`. `suites/e2e/subjects/foreign.toml` is a template of a product that differs in much.

    Attributes:
        roster: its butlers, a folder with a `butler.toml` each.
        container: butlers that are containers.
        golden: golden runs.
        heartbeat: the butler that ticks the others.
        ingest: `ingest` in the product's words.
        knobs: the variables that set one thing to `{value}`, with `{name}` or `{NAME}` of the
            butler; tests that turn what is left out are skipped.
        log: how its logs are read.
        migrations: chains whose head every database must be at.
        model: how its prompts are shaped ([foreign prompts](../how-to/gateway.md#foreign-prompts)); left out,
            that is read from their structure, where that can be: a tool that "was not offered" to a
            butler's model is the sign that it cannot.
        modules: how a butler is given what its modules need; left out, it gets none.
        notify: `notify` in the product's words.
        ports: `source`: `"lease"` (any free port, told as `{port}`) or `"roster"` (that of each
            `butler.toml`); a butler's name: its number; `offset`: by how much these are higher in
            each next ecosystem at once.
        process: how its butlers are spread over processes.
        profile: what a profile must show.
        refusal: an answer that refuses without being an error of MCP.
        route: `route.execute` in the product's words.
        session: what a session may know.
        tables: where the product keeps what the contract names: inbox, routing_log, sessions,
            butler_registry, state and so on; left out, it is read under the contract's own name.
        tools: how tools are called; left out, by MCP over HTTP/SSE at
            `http://127.0.0.1:{port}/sse`.
    """

    roster: Roster
    container: Container | None = None
    golden: Golden = Golden()
    heartbeat: Heartbeat = Heartbeat()
    ingest: Phrased = Phrased()
    knobs: Knobs = Knobs()
    log: Log = Log()
    migrations: tuple[Migrations, ...] = ()
    model: Model | None = None
    modules: Modules = Modules()
    notify: Phrased = Phrased()
    ports: dict[str, int | str] = field(default_factory=dict)
    process: Process = Process()
    profile: Profile = Profile()
    refusal: Refused | None = None
    route: Phrased = Phrased()
    session: Session = Session()
    tables: dict[Identifier, Relations] = field(default_factory=dict)
    tools: ToolsTable = ToolsTable()

    def __post_init__(self) -> None:
        for name, port in self.ports.items():
            if name == "offset":
                if not isinstance(port, int) or not 0 < port <= MOST_OFFSET:
                    expected = f"a whole number from 1 to {MOST_OFFSET}"
                    raise Misfit("ports", name, expected=expected)
            elif name == "source":
                if port not in {"lease", "roster"}:
                    raise Misfit("ports", name, expected="'lease' or 'roster'")
            elif not isinstance(port, int) or not 0 < port <= 65_535:
                raise Misfit("ports", name, expected="a port from 1 to 65535")

    @classmethod
    def of_the_contract(cls) -> Iterator[tuple[str, Sequence[str], Sequence[Sequence[str]]]]:
        """Places of calls, and columns of tables."""
        calls = [
            (f"`[{name}]`", _listed(places), _listed(ANSWERS.get(name, ())))
            for name, places in PLACES.items()
        ]
        yield "What calls hold", ("table", "places for `arguments`", "keys of `answer`"), calls
        tables = [
            (
                f"`[tables.{name}]`",
                OF.get(name, "each"),
                ", ".join(f"`{column}`" + f" {kind}".rstrip() for column, kind in columns.items()),
            )
            for name, columns in CONTRACT.items()
        ]
        yield "What tables yield", ("table", "butler", "columns"), tables
        says = [(f"`{column}`", text) for column, text in VALUES.items()]
        yield "What columns say", ("column", "what stands there"), says

    @property
    def one_process(self) -> bool:
        """One process serves every butler."""
        return self.process.layout == "one"

    @property
    def offset(self) -> int:
        """How much higher the ports of each next ecosystem are; 0 when they may not be others."""
        offset = self.ports.get("offset", 0)
        return offset if isinstance(offset, int) else 0

    def port_of(self, config: ButlerConfig) -> int | None:
        """The port a butler insists on; ``None`` when it takes any."""
        asked = config.port if self.ports.get("source") == "roster" else None
        port = self.ports.get(config.name, asked)
        return port if isinstance(port, int) else None


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def tables_of(subject: Subject) -> EcosystemTables:
    """What a subject file says beside ``[subject]`` and ``[env]``.

    Raises:
        BadInput: the first mistake in it, with file and key.
    """
    return subject.read_tables(EcosystemTables)


def read_subject(path: Path) -> Subject:
    """A subject file, with the capability that its layout of processes implies.

    Args:
        path: the file.

    Raises:
        BadInput: the first mistake in it, with file and key.
    """
    subject = load_subject(path)
    tables = tables_of(subject)
    told = (*subject.argv, *subject.env, *subject.env.values())
    if tables.offset and not any("{port}" in text for text in told):
        expected = "argv or [env] to say {port}, since ports that move are told to the product"
        raise BadInput(path, key="ports.offset", found=tables.offset, expected=expected)
    if tables.one_process:
        return subject
    return structs.replace(subject, capabilities=subject.capabilities | {OWN_PROCESS})


def filled(
    subject: Subject, key: str, variables: Variables, fields: Mapping[str, object]
) -> dict[str, str]:
    """The variables of a table of the file with their ``{fields}`` filled in, names and values.

    Args:
        subject: whose file it is.
        key: where they stand in it, for the error.
        variables: as they stand there.
        fields: what there is to fill in.

    Raises:
        BadInput: another field, or stray braces.
    """
    found = {}
    for variable, text in variables.items():
        try:
            found[variable.format_map(fields)] = text.format_map(fields)
        except (KeyError, ValueError, IndexError) as error:
            raise BadInput(
                subject.path,
                key=f"{key}.{variable}",
                found=text,
                expected="a text with the fields " + ", ".join(sorted(fields)),
            ) from error
    return found
