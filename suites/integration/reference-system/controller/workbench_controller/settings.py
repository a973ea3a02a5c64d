"""The settings of the controller and of its Temporal worker."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from workbench_contract.fidelity import Tolerance
from workbench_foundation import faults
from workbench_foundation.settings import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectStore:
    """Where assets are kept, and how long an upload is tried.

    Attributes:
        attempts: uploads of one asset before it is given up.
        pause_s: before the second attempt; doubled before each further one.
    """

    url: str
    access_key: str
    secret_key: str
    bucket: str
    connect_timeout_s: float
    read_timeout_s: float
    attempts: int
    pause_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Temporal:
    """Temporal, and how long it may be away.

    Attributes:
        rpc_timeout_s: of one request.
        outage_s: an episode that is under way fails when Temporal is away for longer.
        run_s: the longest that an episode may take.
    """

    address: str
    namespace: str
    task_queue: str
    rpc_timeout_s: float
    outage_s: float
    run_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The model provider.

    Attributes:
        key: none when there is none; episodes fail then, saying so.
        attempts: of one turn, when the provider is in trouble.
    """

    url: str
    key: str | None
    name: str
    timeout_s: float
    attempts: int
    turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """How often a flow goes round; at a bound it fails.

    Attributes:
        rejections: of designs.
        confirmed_refusals: of plans.
        rejected_refusals: of plans.
        run_s: the longest that a flow may take.
    """

    rejections: int
    confirmed_refusals: int
    rejected_refusals: int
    run_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Backups:
    """How backups are taken.

    Attributes:
        kept: completed ones whose objects are kept; of older ones the record stays.
        attempts: before one has failed.
        pause_s: before the second attempt; doubled before each further one.
        attempt_s: the longest that an attempt may take.
        pg_dump: the program; empty for the one that is found.
    """

    kept: int
    attempts: int
    pause_s: float
    attempt_s: float
    pg_dump: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Langfuse:
    """Where runs can be looked at.

    Attributes:
        timeout_s: the longest that it may take for an answer.
        pause_s: between two looks for what it has not been told.
    """

    url: str
    public_key: str
    secret_key: str
    timeout_s: float
    pause_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All of them; see ``compose.yaml`` for what each is set to.

    Attributes:
        catalogue_url: the same database, as a role that can only read the catalogue.
        query_s: the longest that the database may take for one query.
        callback_key: what workers sign their reports of jobs with.
        langfuse: none where no keys of it are set.
        batch_concurrency: episodes of a batch that run at once, where it does not say.
        tool_s: the longest that a tool call may take.
        tool_attempts: at one, when who carries it out is lost.
        tool_pause_s: before the second attempt; doubled before each further one.
        heartbeat_s: an activity that is not heard of for longer is tried again elsewhere.
        pull_s: between two looks for new events.
        watch_s: between two looks at episodes that are under way.
        tolerance: of parts beside the numbers of their plan.
        material_share: of a design's cost; one that saves that much, or more, is materially cheaper.
    """

    api_key: str
    database_url: str
    catalogue_url: str
    worker_url: str
    callback_key: str
    store: ObjectStore
    temporal: Temporal
    model: Model
    flows: Flows
    backups: Backups
    langfuse: Langfuse | None
    batch_concurrency: int
    health_timeout_s: float
    query_s: float
    worker_timeout_s: float
    tool_s: float
    tool_attempts: int
    tool_pause_s: float
    heartbeat_s: float
    pull_s: float
    watch_s: float
    tolerance: Tolerance
    material_share: Decimal


def read_settings() -> Settings:
    """From the environment.

    Raises:
        ConfigError: something is missing or malformed.
    """
    env = Environment()
    return Settings(
        api_key=env.text("WORKBENCH_API_KEY"),
        database_url=database_url(env),
        catalogue_url=catalogue_url(env),
        worker_url=env.url("WORKBENCH_WORKER_URL"),
        callback_key=env.text("WORKBENCH_CALLBACK_KEY"),
        store=_store(env),
        temporal=_temporal(env),
        model=Model(
            url=env.url("WORKBENCH_LLM_URL"),
            key=env.values.get("ANTHROPIC_API_KEY") or None,
            name=env.text("WORKBENCH_MODEL", "claude-haiku-4-5-20251001"),
            timeout_s=env.timeout("WORKBENCH_LLM_TIMEOUT_S", 60.0),
            attempts=env.count("WORKBENCH_LLM_ATTEMPTS", 3),
            turns=env.count("WORKBENCH_LLM_TURNS", 40),
        ),
        flows=Flows(
            rejections=env.count("WORKBENCH_FLOW_REJECTIONS", 5),
            confirmed_refusals=env.count("WORKBENCH_FLOW_CONFIRMED_REFUSALS", 3),
            rejected_refusals=env.count("WORKBENCH_FLOW_REJECTED_REFUSALS", 3),
            run_s=env.timeout("WORKBENCH_FLOW_S", 24 * 3600.0),
        ),
        backups=Backups(
            kept=env.count("WORKBENCH_BACKUPS_KEPT", 14),
            attempts=env.count("WORKBENCH_BACKUP_ATTEMPTS", 3),
            pause_s=env.seconds("WORKBENCH_BACKUP_PAUSE_S", 5.0),
            attempt_s=env.timeout("WORKBENCH_BACKUP_S", 3600.0),
            pg_dump=env.values.get("WORKBENCH_PG_DUMP", ""),
        ),
        langfuse=_langfuse(env),
        batch_concurrency=env.count("WORKBENCH_BATCH_CONCURRENCY", 8),
        health_timeout_s=env.timeout("WORKBENCH_HEALTH_TIMEOUT_S", 2.0),
        query_s=env.timeout("WORKBENCH_DATABASE_TIMEOUT_S", 10.0),
        worker_timeout_s=env.timeout("WORKBENCH_WORKER_TIMEOUT_S", 10.0),
        tool_s=env.timeout("WORKBENCH_TOOL_S", 300.0),
        tool_attempts=env.count("WORKBENCH_TOOL_ATTEMPTS", 6),
        tool_pause_s=env.timeout("WORKBENCH_TOOL_PAUSE_S", 1.0),
        heartbeat_s=env.timeout("WORKBENCH_HEARTBEAT_S", 10.0),
        pull_s=env.seconds("WORKBENCH_PULL_S", 0.5),
        watch_s=env.seconds("WORKBENCH_WATCH_S", 2.0),
        tolerance=Tolerance(
            volume_share=float(env.share("WORKBENCH_FIDELITY_VOLUME_SHARE", "0.01")),
            box_mm=env.millimetres("WORKBENCH_FIDELITY_BOX_MM", 0.2),
            surface_mm=env.millimetres("WORKBENCH_FIDELITY_SURFACE_MM", 0.2),
        ),
        material_share=env.share("WORKBENCH_MATERIAL_SHARE", "0.05"),
    )


def database_url(env: Environment) -> str:
    """As SQLAlchemy takes it: `postgresql+asyncpg://…`."""
    return env.text("WORKBENCH_DATABASE_URL")


def catalogue_url(env: Environment) -> str:
    """The same, with the role that reads the catalogue and its password."""
    if faults.on("catalogue-read-as-owner"):
        return database_url(env)
    return env.text("WORKBENCH_CATALOGUE_DATABASE_URL")


def _store(env: Environment) -> ObjectStore:
    return ObjectStore(
        url=env.url("WORKBENCH_S3_URL"),
        access_key=env.text("WORKBENCH_S3_ACCESS_KEY"),
        secret_key=env.text("WORKBENCH_S3_SECRET_KEY"),
        bucket=env.text("WORKBENCH_S3_BUCKET"),
        connect_timeout_s=env.timeout("WORKBENCH_S3_CONNECT_TIMEOUT_S", 5.0),
        read_timeout_s=env.timeout("WORKBENCH_S3_READ_TIMEOUT_S", 30.0),
        attempts=env.count("WORKBENCH_S3_ATTEMPTS", 5),
        pause_s=env.seconds("WORKBENCH_S3_PAUSE_S", 1.0),
    )


def _langfuse(env: Environment) -> Langfuse | None:
    keys = [env.values.get(f"LANGFUSE_{which}_KEY") for which in ("PUBLIC", "SECRET")]
    if not all(keys):
        return None
    return Langfuse(
        url=env.url("LANGFUSE_HOST"),
        public_key=env.text("LANGFUSE_PUBLIC_KEY"),
        secret_key=env.text("LANGFUSE_SECRET_KEY"),
        timeout_s=env.timeout("WORKBENCH_LANGFUSE_TIMEOUT_S", 5.0),
        pause_s=env.seconds("WORKBENCH_LANGFUSE_S", 1.0),
    )


def _temporal(env: Environment) -> Temporal:
    return Temporal(
        address=env.text("WORKBENCH_TEMPORAL_ADDRESS"),
        namespace=env.text("WORKBENCH_TEMPORAL_NAMESPACE", "default"),
        task_queue=env.text("WORKBENCH_TASK_QUEUE", "workbench"),
        rpc_timeout_s=env.timeout("WORKBENCH_TEMPORAL_TIMEOUT_S", 10.0),
        outage_s=env.timeout("WORKBENCH_TEMPORAL_OUTAGE_S", 300.0),
        run_s=env.timeout("WORKBENCH_EPISODE_S", 3600.0),
    )
