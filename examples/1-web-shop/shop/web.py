"""The shop's HTTP API: it takes orders."""

import os

import psycopg
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

app = FastAPI()


class Order(BaseModel):
    item: str


@app.get("/health")
def health() -> str:
    return "ok"


@app.post("/orders", status_code=201)
def place(order: Order) -> dict:
    insert = "insert into orders (item) values (%s) returning id"
    try:
        with psycopg.connect(os.environ["DATABASE_URL"], connect_timeout=5) as connection:
            [(number,)] = connection.execute(insert, [order.item]).fetchall()
    except psycopg.OperationalError as error:
        raise HTTPException(503, "try again later") from error
    return {"id": number}
