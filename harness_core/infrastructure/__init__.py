"""Servers that are disposable: a container engine, PostgreSQL, S3, Temporal, Valkey, NATS, and databases on them."""
