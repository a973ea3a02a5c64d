"""The only way into a shell.

`syntax` parses a command, `words` says what its words are before anything runs, `dispatcher`
judges the whole of it by the rules of `rules` and `writes`, `confined` is what the kernel holds a
command to, and `actuator` runs what was allowed. Nothing outside this package starts a shell.
"""
