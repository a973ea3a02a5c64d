"""The shop's worker on asyncio: it writes an invoice for each order, once."""

import asyncio
import os

import asyncpg
import boto3

NEXT = "select id, item from orders where invoice is null order by id limit 1 for update skip locked"


async def work(connection: asyncpg.Connection, s3) -> bool:
    async with connection.transaction():
        row = await connection.fetchrow(NEXT)
        if row is None:
            return False
        key, body = f"invoices/{row['id']}.txt", f"1 x {row['item']}".encode()
        where = {"Bucket": os.environ["S3_BUCKET"], "Key": key}
        await asyncio.to_thread(s3.put_object, **where, Body=body)
        await connection.execute("update orders set invoice = $1 where id = $2", key, row["id"])
    return True


async def main() -> None:
    s3 = boto3.client("s3")
    print("working", flush=True)
    while True:
        try:
            connection = await asyncpg.connect(os.environ["DATABASE_URL"])
            while True:
                if not await work(connection, s3):
                    await asyncio.sleep(0.05)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            print("the database is away:", error, flush=True)
            await asyncio.sleep(0.2)


asyncio.run(main())
