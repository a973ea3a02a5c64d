"""The tables of ``[tool.staging_harness]``: ``Attributes:`` of each is what the reference page says of its keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta, field

from harness_core.base import limits
from harness_core.base.reading import Misfit, SomeTexts, Step, Table, Text, Texts
from harness_core.system.suites import StagingHarness

Seconds = Annotated[float, Meta(gt=0, description="seconds, more than 0")]

#: ``{database.url}`` in a table of a process: a fixture, and what it has that a process may be given.
GIVEN: Final = re.compile(r"\{([a-z]\w*)\.(\w+)\}")
OFFERED: Final[Mapping[str, tuple[str, ...]]] = {
    "database": ("url",),
    "mailbox": ("host", "port", "account", "password"),
    "model_gateway": ("url", "api_key"),
    "s3_bucket": ("name", "endpoint", "access_key", "secret_key", "region"),
    "temporal": ("address", "namespace", "task_queue"),
    "valkey": ("url", "host", "port"),
    "nats": ("url", "address"),
}


#: Fixtures that have variables for a process.
_Fixture = Annotated[
    Literal[
        "clock",
        "database",
        "mailbox",
        "model_gateway",
        "s3_bucket",
        "temporal",
        "valkey",
        "nats",
    ],
    Meta(description=f"one of clock, {', '.join(OFFERED)}"),
]


class DatabaseTable(Table, frozen=True):
    """``[tool.staging_harness.database]``: what a ``database`` is made from.

    Attributes:
        template: what makes one, in this order: folders of alembic revisions, an ``alembic.ini``, SQL
            files (paths relative to the file), functions as ``module:function``, called with the URL
            of an empty database; empty when left out. A fixture ``database_template`` of your own
            takes its place.
        warm: databases that are made ahead, by each process of the run; 8 MB each, in memory.
        settings: settings of the PostgreSQL server, as in ``postgresql.conf``.
    """

    template: Texts = ()
    warm: Annotated[int, Meta(ge=0, le=32, description="0 to 32")] = 2
    settings: Mapping[str, str] = field(default_factory=dict)


class ProcessTable(Table, frozen=True):
    """``[tool.staging_harness.process.NAME]``: what ``process.start("NAME")`` starts.

    In a command line and in variables stand ``{port}`` (a free port, leased for it), ``{port:NAME}``
    (a further one), ``{host}``, ``{python}`` (the one that runs the tests), ``{data}`` (an empty folder of
    its own), ``{home}`` (the folder of the file), and what a fixture gives: ``{database.url}``.

    Attributes:
        argv: its command line.
        env: variables, besides those that pytest has.
        fixtures: those whose variables it has too: ``database`` (``DATABASE_URL``), ``s3_bucket``
            (``AWS_ENDPOINT_URL`` and so on, ``S3_BUCKET``), ``mailbox`` (``SMTP_HOST`` …), ``model_gateway``
            (``ANTHROPIC_BASE_URL``, ``OPENAI_BASE_URL`` …), ``temporal`` (``TEMPORAL_ADDRESS`` …), ``valkey``
            (``REDIS_URL``, ``VALKEY_URL``), ``nats`` (``NATS_URL``), ``clock``.
        cwd: where it starts; the folder of the file when left out.
        health: a path that answers 200 when it serves; left out, listening on its port is enough.
        line: a text that it writes when it is ready, for one without a port.
        once: it is to end, with status 0; then it is ready.
        ready_s: seconds for each stage of its start.
        stop_s: seconds it may take to end when it is asked to; then it is killed.
    """

    argv: SomeTexts
    env: Mapping[str, str] = field(default_factory=dict)
    fixtures: tuple[_Fixture, ...] = ()
    cwd: Path | None = None
    health: Annotated[str, Meta(pattern=r"\A(/.*)?\Z", description="a path, e.g. /health")] = ""
    line: str = ""
    once: bool = False
    ready_s: Seconds = limits.STACK_READY_S
    stop_s: Seconds = limits.STACK_STOP_S

    def __post_init__(self) -> None:
        texts: list[tuple[tuple[Step, ...], str]]
        texts = [(("argv", number), text) for number, text in enumerate(self.argv)]
        texts += [(("env", name), text) for name, text in self.env.items()]
        for path, text in texts:
            for fixture, attribute in GIVEN.findall(text):
                if attribute not in OFFERED.get(fixture, ()):
                    known = [f"{{{each}.{it}}}" for each, them in OFFERED.items() for it in them]
                    found = f"{{{fixture}.{attribute}}}"
                    raise Misfit(*path, found=found, expected=f"one of {', '.join(known)}")

    @property
    def needs(self) -> frozenset[str]:
        """The fixtures that it names."""
        words = (*self.argv, *self.env.values())
        named = frozenset(fixture for word in words for fixture, _ in GIVEN.findall(word))
        return named.union(self.fixtures)


class StackTable(Table, frozen=True):
    """``[tool.staging_harness.stack]``: the compose file of ``stack``.

    Attributes:
        file: the compose file; left out, ``compose.yaml``, ``compose.yml``, ``docker-compose.yaml`` or
            ``docker-compose.yml`` beside this one, else the nearest to where pytest is started below it.
        bin: the folder of the commands that ``{bin}`` stands for; that of the tests' own when left out.
        driver: ``local`` (by ``x-harness``) or ``docker``; as ``--services`` says when left out.
        env: what ``${NAME}`` stands for in the file; processes without containers have them too.
    """

    file: Path | None = None
    bin: Path | None = None
    driver: Annotated[Literal["local", "docker", ""], Meta(description="local or docker")] = ""
    env: Mapping[str, str] = field(default_factory=dict)


class ModelTable(Table, frozen=True):
    """``[tool.staging_harness.model_gateway]``: what the model does in every test.

    Attributes:
        turns: TOML files of rehearsals, for every test; what a test rehearses itself comes before them.
        form: a TOML file that says how the product's prompts are shaped, where the guess fails.
        budget_usd: most that live calls of a run may cost; ``--llm-budget-usd`` comes before it.
    """

    turns: tuple[Path, ...] = ()
    form: Path | None = None
    budget_usd: Annotated[float, Meta(ge=0, description="USD, zero or more")] | None = None


class MailTable(Table, frozen=True):
    """``[tool.staging_harness.mailbox]``: the mail server of ``mailbox``.

    Attributes:
        account: the one address that may log in; its password is made up for each run.
    """

    account: Text = "shop@example.test"


class Settings(StagingHarness, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[tool.staging_harness]``.

    Attributes:
        database: what a ``database`` is made from.
        mailbox: the mail server.
        model_gateway: what the model does in every test.
        process: command lines that ``process`` starts by name.
        stack: the compose file.
    """

    database: DatabaseTable = DatabaseTable()
    mailbox: MailTable = MailTable()
    model_gateway: ModelTable = ModelTable()
    process: Mapping[str, ProcessTable] = field(default_factory=dict)
    stack: StackTable = StackTable()
