"""Physics of a scene: what moves, what drives it, how a run ends, and what many runs say together."""
