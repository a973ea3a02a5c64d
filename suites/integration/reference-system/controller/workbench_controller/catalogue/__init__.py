"""The catalogue of parts that can be bought: how it is filled, and how it is searched.

- ``partsfile.py``: one version of it, as a file that a migration stores.
- ``part.py``: one part. ``role.py``: the role that can only read, made when the database is migrated.
- ``reader.py``: its rows, through a database role that can only read.
- ``constraints.py``: what a search asks of a part, and how far a part is from it.
- ``cursor.py``: where a walk goes on. ``search.py``: a search, whole.
"""
