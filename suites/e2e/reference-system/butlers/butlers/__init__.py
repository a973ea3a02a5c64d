"""The reference butler ecosystem.

One process per butler. `daemon` holds the lifecycle; `config` reads `butler.toml`; `database` and
`migrate` own the tables; `server` and `core_tools` speak MCP; `spawner`, `runtime` and `sessions`
run the model; `ingest`, `classify`, `dispatch` and `registry` make a butler the switchboard.

Importing this package imports nothing else: four butlers boot at once on two cores, and what is
not needed yet is imported later.
"""

__version__ = "0.1.0"
