"""`butler.toml` is read strictly; every mistake is one line naming file and key."""

from pathlib import Path

import pytest
from butlers import config
from butlers.errors import ConfigError

GOOD = '[butler]\nname = "x"\nport = 9000\n'


def written(folder: Path, text: str) -> Path:
    (folder / "butler.toml").write_text(text, encoding="utf-8")
    return folder


def test_defaults_fill_what_is_left_out(tmp_path: Path) -> None:
    """Name and port are enough."""
    loaded = config.load(written(tmp_path, GOOD), env={})

    assert ("x", 9000, "butler_x", 30.0) == (
        loaded.name, loaded.port, loaded.database_name, loaded.shutdown_timeout_s
    )


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[butler", ""),
        ('[butler]\nname = "x"\n', "butler.port"),
        ('[butler]\nname = "X y"\nport = 1\n', "butler.name"),
        ('[butler]\nname = "x"\nport = "1"\n', "butler.port"),
        ('[butler]\nname = "x"\nport = true\n', "butler.port"),
        (GOOD + "bogus = 1\n", "butler.bogus"),
        (GOOD + 'description = "${NOPE}"\n', "butler.description"),
        (GOOD + "[butler.runtime]\nqueue_depth = -1\n", "butler.runtime.queue_depth"),
        (GOOD + '[[butler.schedule]]\nname = "a"\ncron = "61 * * * *"\nprompt = "p"\n',
         "butler.schedule[0].cron"),
        (GOOD + '[butler.env]\nrequired = ["NOPE"]\n', "butler.env.required"),
        (GOOD + "[other]\n", "other"),
    ],
)
def test_a_mistake_names_file_and_key(tmp_path: Path, text: str, key: str) -> None:
    """The error is one line that starts with what could not be read."""
    with pytest.raises(ConfigError) as caught:
        config.load(written(tmp_path, text), env={})

    assert key == caught.value.key
    assert str(caught.value).startswith(f"cannot read {tmp_path / 'butler.toml'}")
    assert "\n" not in str(caught.value)


def test_the_environment_overrides_port_database_and_any_other_key(tmp_path: Path) -> None:
    """Two ecosystems on one host need no second roster."""
    env = {
        "BUTLERS_X_PORT": "9001",
        "BUTLERS_DATABASE_URL": "postgresql://u@h:1/ignored",
        "BUTLERS_X__RUNTIME__QUEUE_DEPTH": "3",
    }
    loaded = config.load(written(tmp_path, GOOD), env=env)

    assert (9001, "postgresql://u@h:1/butler_x", 3) == (
        loaded.port, loaded.database_url, loaded.runtime.queue_depth
    )
