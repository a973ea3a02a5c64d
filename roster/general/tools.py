"""The general butler's tools: collections and the entities in them."""

from typing import Annotated, Any
from uuid import UUID

from butlers import faults
from butlers.butler import Butler
from butlers.errors import ButlerError
from butlers.sessions import plain
from pydantic import Field

Collection = Annotated[
    str,
    Field(description="name of the collection, lower-case plural noun", min_length=1,
          max_length=200, examples=["books", "films", "recipes", "shopping"]),
]
EntityName = Annotated[
    str,
    Field(description="full name of the thing, word for word as given", min_length=1,
          max_length=500, examples=["The Hobbit", "olive oil"]),
]
Limit = Annotated[int, Field(description="how many rows at most", ge=1, le=200)]

_ENTITY = """
    SELECT e.*, c.name AS collection FROM entities e JOIN collections c ON c.id = e.collection_id
"""


def register(butler: Butler) -> None:
    """Add the tools to the butler."""
    _collections(butler)
    _entities(butler)


async def _rows(butler: Butler, query: str, *values: Any) -> list[dict[str, Any]]:
    return [plain(row) for row in await butler.pool.fetch(query, *values)]


def _known_as(name: str) -> str:
    """How a collection's name is kept; whoever reads or changes it later is understood by the same."""
    return " ".join(name.lower().split())


def _asked_for(name: str) -> str:
    return name.lower() if faults.on("name-read-otherwise") else _known_as(name)


async def _collection(butler: Butler, name: str, description: str | None = None) -> dict[str, Any]:
    """The collection of that name, made when there is none."""
    if faults.on("list-looked-for-first"):
        return await _looked_for_first(butler, _known_as(name), description)
    row = await butler.pool.fetchrow(
        """
        INSERT INTO collections (name, description) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET
            description = coalesce(excluded.description, collections.description)
        RETURNING *
        """,
        _known_as(name), description,
    )
    return plain(row)


async def _looked_for_first(
    butler: Butler, name: str, description: str | None
) -> dict[str, Any]:
    """Only for the planted fault `list-looked-for-first`."""
    row = await butler.pool.fetchrow("SELECT * FROM collections WHERE name = $1", name)
    return plain(row or await butler.pool.fetchrow(
        "INSERT INTO collections (name, description) VALUES ($1, $2) RETURNING *",
        name, description,
    ))


def _collections(butler: Butler) -> None:
    @butler.tool
    async def collection_create(
        name: Collection,
        description: Annotated[str | None, Field(description="what it is for")] = None,
    ) -> dict[str, Any]:
        """Create a collection (a list) for things of one kind."""
        return {"status": "saved", "collection": await _collection(butler, name, description)}

    @butler.tool
    async def collection_list(limit: Limit = 50) -> dict[str, Any]:
        """List the collections and how many things are in each."""
        return {
            "collections": await _rows(
                butler,
                """
                SELECT c.*, count(e.id) AS entities FROM collections c
                LEFT JOIN entities e ON e.collection_id = c.id
                GROUP BY c.id ORDER BY c.name LIMIT $1
                """,
                limit,
            )
        }


def _entities(butler: Butler) -> None:
    @butler.tool
    async def entity_create(
        collection: Collection,
        name: EntityName,
        data: Annotated[
            dict[str, Any] | None,
            Field(description="more about it, as key and value", examples=[{"author": "Tolkien"}]),
        ] = None,
    ) -> dict[str, Any]:
        """Put a thing into a collection (a list), which is made when it does not exist."""
        owner = await _collection(butler, collection)
        row = await butler.pool.fetchrow(
            """
            INSERT INTO entities (collection_id, name, data) VALUES ($1, $2, $3)
            ON CONFLICT (collection_id, lower(name)) DO UPDATE SET
                data = entities.data || excluded.data, updated_at = now()
            RETURNING *
            """,
            UUID(owner["id"]), name, data or {},
        )
        return {"status": "saved", "collection": owner["name"], "entity": plain(row)}

    @butler.tool
    async def entity_search(
        query: Annotated[
            str | None, Field(description="words in the name or the data", examples=["hobbit"])
        ] = None,
        collection: Annotated[
            str | None, Field(description="only this collection", examples=["books"])
        ] = None,
        limit: Limit = 20,
    ) -> dict[str, Any]:
        """Find things in the collections, or show what is in one."""
        return {
            "entities": await _rows(
                butler,
                _ENTITY
                + """
                WHERE ($1::text IS NULL
                       OR position(lower($1) IN lower(e.name || ' ' || e.data::text)) > 0)
                  AND ($2::text IS NULL OR c.name = $2)
                ORDER BY e.updated_at DESC LIMIT $3
                """,
                query, None if collection is None else _asked_for(collection), limit,
            )
        }

    @butler.tool
    async def entity_update(
        collection: Collection,
        name: EntityName,
        data: Annotated[
            dict[str, Any],
            Field(description="keys to set; others stay", examples=[{"status": "read"}]),
        ],
    ) -> dict[str, Any]:
        """Change what is known of a thing in a collection."""
        row = await butler.pool.fetchrow(
            """
            UPDATE entities e SET data = e.data || $3, updated_at = now()
            FROM collections c
            WHERE c.id = e.collection_id AND c.name = $1 AND lower(e.name) = lower($2)
            RETURNING e.*
            """,
            _asked_for(collection), name, data,
        )
        if row is None:
            raise ButlerError(f"cannot update {name}: it is not in {collection}")
        return {"status": "saved", "entity": plain(row)}

    @butler.tool
    async def entity_delete(collection: Collection, name: EntityName) -> dict[str, Any]:
        """Remove a thing from a collection."""
        row = await butler.pool.fetchrow(
            """
            DELETE FROM entities e USING collections c
            WHERE c.id = e.collection_id AND c.name = $1 AND lower(e.name) = lower($2)
            RETURNING e.id
            """,
            _asked_for(collection), name,
        )
        if row is None:
            raise ButlerError(f"cannot delete {name}: it is not in {collection}")
        if faults.on("empty-list-removed"):
            await butler.pool.execute(
                "DELETE FROM collections c WHERE name = $1"
                " AND NOT EXISTS (SELECT 1 FROM entities WHERE collection_id = c.id)",
                _asked_for(collection),
            )
        return {"status": "deleted", "name": name}
