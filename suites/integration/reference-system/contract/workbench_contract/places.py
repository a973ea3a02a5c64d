"""Where things lie in a session. It imports nothing: each command that is run waits for this."""

#: What agents are taught, read-only.
SKILLS = "skills"
