"""The shop's worker: it writes an invoice for each order, once."""

import os
import time

import boto3
import psycopg

NEXT = "select id, item from orders where invoice is null order by id limit 1 for update skip locked"


def work(connection: psycopg.Connection, s3) -> bool:
    with connection.transaction():
        row = connection.execute(NEXT).fetchone()
        if row is None:
            return False
        key = f"invoices/{row[0]}.txt"
        s3.put_object(Bucket=os.environ["S3_BUCKET"], Key=key, Body=f"1 x {row[1]}".encode())
        connection.execute("update orders set invoice = %s where id = %s", (key, row[0]))
    return True


s3 = boto3.client("s3")
print("working", flush=True)
while True:
    try:
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            while True:
                if not work(connection, s3):
                    time.sleep(0.05)
    except psycopg.OperationalError as error:
        print("the database is away:", error, flush=True)
        time.sleep(0.2)
