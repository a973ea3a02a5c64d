"""Keys of a compose file: each that a server of ours would not work with is one error at boot."""

import copy
import json

import pytest

from harness_core.base.errors import BadInput
from harness_core.base.evidence import open_evidence
from harness_core.process import open_run
from harness_core.system.compose import StackOptions, open_stack, read_compose
from harness_core.system.compose._keys import check_keys

KEY = "sk-ant-0123456789abcdef"
TOKEN = "hgt-0123456789abcdef"
ACCESS, SECRET = "shop-access", "shop-secret-0123"

GOOD = {
    "services": {
        "web": {
            "environment": {
                "MODEL_URL": "http://llm:8080",
                "ANTHROPIC_API_KEY": KEY,
                "LANGFUSE_SECRET_KEY": "a key of another service",
                "S3_URL": "http://store:9000",
                "SHOP_S3_ACCESS_KEY": ACCESS,
                "SHOP_S3_SECRET_KEY": SECRET,
            },
            "ports": ["80"],
            "x-harness": {"command": ["web"]},
        },
        "bystander": {
            "environment": {"ANTHROPIC_API_KEY": "another provider's", "AWS_ACCESS_KEY_ID": "real"},
            "x-harness": {"command": ["bystander"]},
        },
        "llm": {
            "environment": {"HARNESS_GATEWAY_KEY": KEY, "HARNESS_GATEWAY_TOKEN": TOKEN},
            "ports": ["8080"],
            "x-harness": {"service": "gateway"},
        },
        "store": {
            "environment": {
                "MINIO_ROOT_USER": ACCESS,
                "MINIO_ROOT_PASSWORD": SECRET,
                "RCLONE_AUTH_KEY": f'"{ACCESS},{SECRET}"',
            },
            "ports": ["9000"],
            "x-harness": {"service": "s3"},
        },
    }
}


def compose(folder, changes=None, **more):
    """A compose file: ``changes`` is variable → value of a service; ``None`` takes it out."""
    content = copy.deepcopy(GOOD)
    for (service, variable), value in (changes or {}).items():
        environment = content["services"][service]["environment"]
        environment.pop(variable, None)
        if value is not None:
            environment[variable] = value
    for service, keys in more.items():
        content["services"][service].update(keys)
    path = folder / "compose.yaml"
    path.write_text(json.dumps(content))
    return path


MISTAKES = [
    ("llm", "HARNESS_GATEWAY_KEY", None, "nothing", "at least 16 characters"),
    ("llm", "HARNESS_GATEWAY_KEY", "", "nothing", "at least 16 characters"),
    ("llm", "HARNESS_GATEWAY_KEY", "sk-short", "8 characters", "at least 16 characters"),
    ("llm", "HARNESS_GATEWAY_KEY", f"{KEY} ", "a key with other characters", "without spaces"),
    ("llm", "HARNESS_GATEWAY_TOKEN", "", "nothing", "at least 16 characters"),
    ("llm", "HARNESS_GATEWAY_TOKEN", "hgt-short", "9 characters", "at least 16 characters"),
    ("llm", "HARNESS_GATEWAY_TOKEN", KEY, "the same as HARNESS_GATEWAY_KEY", "another one"),
    ("web", "ANTHROPIC_API_KEY", "", "nothing", "the HARNESS_GATEWAY_KEY of llm"),
    ("web", "ANTHROPIC_API_KEY", f"{KEY}x", "another key (24 characters)", "of llm, which web"),
    ("web", "ANTHROPIC_API_KEY", KEY[:-1], "another key (22 characters)", "of llm, which web"),
    ("store", "MINIO_ROOT_USER", None, "nothing", "at least 3 characters"),
    ("store", "MINIO_ROOT_USER", "x9", "2 characters", "at least 3 characters"),
    ("store", "MINIO_ROOT_USER", "a/b/c", "a key with other characters", "and slashes"),
    ("store", "MINIO_ROOT_PASSWORD", "", "nothing", "at least 8 characters"),
    ("store", "MINIO_ROOT_PASSWORD", "1234567", "7 characters", "at least 8 characters"),
    ("store", "MINIO_ROOT_PASSWORD", "12345,67890", "a key with other characters", "commas"),
    (
        "store",
        "RCLONE_AUTH_KEY",
        f"{ACCESS},{SECRET}",
        "no pair in quotes",
        "MINIO_ROOT_USER,MINIO",
    ),
    ("store", "RCLONE_AUTH_KEY", f'"{ACCESS},{SECRET}x"', "another pair", "with their values"),
    ("web", "SHOP_S3_ACCESS_KEY", "other-access", "another key (12 characters)", "of store, which"),
    ("web", "SHOP_S3_SECRET_KEY", "", "nothing", "the MINIO_ROOT_PASSWORD of store"),
    ("web", "SHOP_S3_SECRET_KEY", SECRET[1:], "another key (15 characters)", "of store, which web"),
]


@pytest.mark.parametrize(
    ("service", "variable", "value", "found", "expected"),
    MISTAKES,
    ids=[f"{number}-{row[1].lower()}" for number, row in enumerate(MISTAKES, start=1)],
)
async def test_a_key_that_will_not_do_is_one_error_before_anything_starts(
    tmp_path, service, variable, value, found, expected
):
    """It names file, service and variable, and tells no key."""
    path = compose(tmp_path, {(service, variable): value})
    evidence = open_evidence(tmp_path / "evidence")
    async with open_run(evidence=evidence) as run:
        with pytest.raises(BadInput) as error:
            async with open_stack(run, path, evidence=evidence.child("stack")):
                pytest.fail("it was booted")

    assert (str(path), f"services.{service}.environment.{variable}") == (
        error.value.where,
        error.value.key,
    )
    assert found == error.value.found
    assert expected in error.value.expected
    for secret in filter(None, (KEY, TOKEN, SECRET, value)):
        assert secret not in str(error.value)
    assert [] == list(evidence.child("stack").path.glob("*"))


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({("web", "ANTHROPIC_API_KEY"): None}, "no variable that is it"),
        (
            {("web", "ANTHROPIC_API_KEY"): "one", ("web", "MODEL_TOKEN"): "two"},
            "none that is it (ANTHROPIC_API_KEY, MODEL_TOKEN)",
        ),
        (
            {("web", "SHOP_S3_SECRET_KEY"): None, ("web", "PASSWORD"): "x"},
            "no variable that is it",
        ),
    ],
    ids=["none", "several", "none-by-name"],
)
def test_a_key_that_nobody_can_name_is_missing_from_the_environment(tmp_path, changes, found):
    """Where no one variable is to blame, the service's environment is."""
    with pytest.raises(BadInput) as error:
        check_keys(read_compose(compose(tmp_path, changes)), external=False)

    assert "services.web.environment" == error.value.key
    assert found == error.value.found


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({}, {}),
        ({("llm", "HARNESS_GATEWAY_TOKEN"): None}, {}),
        ({("llm", "HARNESS_GATEWAY_KEY"): None, ("web", "MODEL_URL"): "http://else:1"}, {}),
        ({("store", "RCLONE_AUTH_KEY"): None}, {}),
        ({("web", "ANTHROPIC_API_KEY"): None, ("web", "WORD"): KEY}, {}),
        ({("web", "OPENAI_API_KEY"): "another provider's"}, {}),
        (
            {
                ("web", "SHOP_S3_ACCESS_KEY"): None,
                ("web", "SHOP_S3_SECRET_KEY"): None,
                ("web", "S3_URL"): f"s3://{ACCESS}:{SECRET}@store:9000/bucket",
            },
            {},
        ),
        ({("web", "ANTHROPIC_API_KEY"): None}, {"web": {"env_file": ".env"}}),
    ],
    ids=[
        "as-it-is",
        "token-made-up",
        "key-made-up-for-tests-alone",
        "other-server",
        "name-unknown",
        "two-providers",
        "in-a-url",
        "in-a-file",
    ],
)
def test_keys_that_do_are_taken(tmp_path, changes, more):
    """Whatever the variable is called that holds them, and wherever in it they stand."""
    check_keys(read_compose(compose(tmp_path, changes, **more)), external=False)


def test_keys_of_somebody_elses_server_are_not_ours_to_judge(tmp_path):
    """They are part of its URL, which the file's own say nothing of."""
    path = compose(tmp_path, {("web", "SHOP_S3_SECRET_KEY"): "of the server outside"})

    check_keys(read_compose(path), external=True)
    with pytest.raises(BadInput, match="SHOP_S3_SECRET_KEY"):
        open_stack(None, path, evidence=None, options=StackOptions())
