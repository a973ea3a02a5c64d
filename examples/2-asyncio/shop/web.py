"""The shop's HTTP API on asyncio: it takes orders."""

import os

import asyncpg
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

app = FastAPI()


class Order(BaseModel):
    item: str


@app.get("/health")
async def health() -> str:
    return "ok"


@app.post("/orders", status_code=201)
async def place(order: Order) -> dict:
    insert = "insert into orders (item) values ($1) returning id"
    try:
        async with asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=1) as pool:
            return {"id": await pool.fetchval(insert, order.item)}
    except (OSError, asyncpg.PostgresError) as error:
        raise HTTPException(503, "try again later") from error
