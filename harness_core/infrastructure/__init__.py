"""Servers that are disposable: a container engine, PostgreSQL, S3, Temporal, and databases on them."""
