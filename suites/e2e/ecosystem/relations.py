"""Where a product keeps what the contract names: ``[tables.NAME]`` of the subject file.

```toml
[tables.message_inbox]
select = '''
    select id::text as request_id, doc->>'channel' as channel, doc->'raw' as payload, …
    from mail.items where direction = 'in'
'''
values.lifecycle_state = { done = "completed", broken = "errored" }
```

Each is a query on the butler's own database that yields the contract's columns; ``{name}`` in it is the
butler's. It is checked against the living database at boot, and read under the contract's name by every test
(``harness_core.infrastructure.databases.Relation``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from harness_core.infrastructure.databases import Database, Relation
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.subject_file import tables_of

__all__ = ["CONTRACT", "read_as_the_contract"]


def _table(columns: str) -> Mapping[str, str]:
    """Columns, each with its kind behind a colon where it has one."""
    pairs = (column.partition(":") for column in columns.split())
    return {name: kind for name, _, kind in pairs}


#: The contract's tables and columns (contract, "Database").
CONTRACT: Final[Mapping[str, Mapping[str, str]]] = {
    "state": _table("key value:json updated_at:time"),
    "scheduled_tasks": _table(
        "id name cron prompt source enabled:truth next_run_at:time last_run_at:time last_result"
    ),
    "sessions": _table(
        "id prompt trigger_source result tool_calls:json duration_ms:number trace_id cost:json"
        " started_at:time completed_at:time success:truth error model input_tokens:number"
        " output_tokens:number request_id"
    ),
    "butler_registry": _table(
        "name endpoint_url description capabilities eligibility_state last_seen_at:time"
    ),
    "message_inbox": _table(
        "request_id channel payload:json normalized_text lifecycle_state decomposition:json"
        " dispatch_outcomes:json response_summary"
    ),
    "routing_log": _table(
        "source_butler target_butler tool_name success:truth duration_ms:number error"
        " error_class created_at:time"
    ),
    "delivery_requests": _table(
        "id error error_class completed_at:time origin_butler channel recipient message status"
        " request_id trace_id created_at:time"
    ),
    "delivery_attempts": _table(
        "id error error_class completed_at:time delivery_id attempt_number:number started_at:time"
        " success:truth duration_ms:number"
    ),
    "delivery_receipts": _table(
        "id delivery_id attempt_id channel recipient external_message_id received_at:time"
    ),
}

#: Whose database has it; every butler's, else.
_OF: Final = {
    "butler_registry": "switchboard",
    "message_inbox": "switchboard",
    "routing_log": "switchboard",
    "delivery_requests": "messenger",
    "delivery_attempts": "messenger",
    "delivery_receipts": "messenger",
}


async def read_as_the_contract(subject: Subject, name: str, database: Database) -> None:
    """Have a butler's database read as the subject file says; without ``[tables]`` it stays as it is.

    Args:
        subject: whose file says it.
        name: the butler.
        database: its database, which has been migrated.

    Raises:
        BadInput: a query that the database refuses, or that lacks a column of the contract.
    """
    given = tables_of(subject).tables
    relations = {
        table: Relation(
            columns=_columns(table, row.more),
            select=row.select.replace("{name}", name),
            values=row.values,
        )
        for table, row in given.items()
        if _OF.get(table, name) == name and row.butler in {"", name}
    }
    if relations:
        await database.read_as(relations, where=str(subject.path))


def _columns(table: str, more: Sequence[str]) -> Mapping[str, str]:
    """Those of the contract, and more; of a table that it does not name, all that there are."""
    return {**CONTRACT[table], **dict.fromkeys(more, "")} if table in CONTRACT else {}
