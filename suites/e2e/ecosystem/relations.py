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

from harness_core.infrastructure.databases import Database, Relation
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.contract import CONTRACT, OF
from suites.e2e.ecosystem.subject_file import tables_of

__all__ = ["read_as_the_contract"]


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
        if OF.get(table, name) == name and row.butler in {"", name}
    }
    if relations:
        await database.read_as(relations, where=str(subject.path))


def _columns(table: str, more: Sequence[str]) -> Mapping[str, str]:
    """Those of the contract, and more; of a table that it does not name, all that there are."""
    return {**CONTRACT[table], **dict.fromkeys(more, "")} if table in CONTRACT else {}
