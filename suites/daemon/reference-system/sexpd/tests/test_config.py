"""What a configuration that cannot be read says, and what it keeps to itself."""

import os

import pytest

from sexpd.config import load
from sexpd.errors import ConfigError

SECRET = "sk-Hidden.4711"

PROVIDER = {
    "SEXPD_PROVIDERS": "first",
    "SEXPD_PROVIDER_FIRST_SHAPE": "openai",
    "SEXPD_PROVIDER_FIRST_BASE_URL": "http://127.0.0.1:9",
    "SEXPD_PROVIDER_FIRST_KEY": "sk-its-own",
    "SEXPD_PROVIDER_FIRST_MODEL": "one",
}


@pytest.mark.parametrize(
    "variable",
    [
        "SEXPD_PROVIDERS",
        "SEXPD_PROVIDERS_FIRST_KEY",
        "SEXPD_PROVIDER_FIRST_SHAPE",
        "SEXPD_PROVIDER_FIRST_BASE_URL",
        "SEXPD_PROVIDER_FIRST_TIMEOUT_S",
        "SEXPD_PROVIDER_FIRST_MAX_TOKENS",
    ],
)
def test_a_misplaced_key_is_in_no_error(variable, monkeypatch):
    """A key in a variable of another meaning is refused by the variable's name, not by its value."""
    for name in [name for name in os.environ if name.startswith("SEXPD_")]:
        monkeypatch.delenv(name)
    for name, value in (PROVIDER | {variable: SECRET}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError) as refused:
        load()

    assert variable in str(refused.value)
    assert SECRET not in str(refused.value)
