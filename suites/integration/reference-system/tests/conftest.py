"""How the generated examples of these tests run: no clock, since machines are busy, and nothing kept."""

from hypothesis import settings

settings.register_profile("reference", deadline=None, database=None, max_examples=60)
settings.load_profile("reference")
