"""The compose files of this repository, with every mistake that a hurry makes."""

import json
from pathlib import Path

import pytest

from harness_core.stack._compose import read_compose
from harness_core.stack._yaml import read_yaml
from harness_core.testing import check_reader
from harness_core.testing._stack import sample_stack

ROOT = Path(__file__).parents[3]

#: Variables, services and volumes have names of the author's choice.
NAMED = ("services.*.environment.*", "services.*", "services.*.depends_on.*", "volumes.*")
#: Extension fields are there for their anchors, and what compose alone reads, it alone can judge.
OTHERS = (
    "x-*",
    "volumes",
    "services.*.build",
    "services.*.command",
    "services.*.healthcheck.*",
    "services.*.stop_grace_period",
    "services.*.x-harness.answers.json",
)


#: What neither file has.
MORE = {
    "services": {
        "llm": {"environment": {}, "x-harness": {"service": "gateway", "mode": "scripted"}},
        "hooks": {
            "expose": [3000],
            "x-harness": {
                "service": "recorder",
                "answers": [{"path": "/a", "method": "POST", "status": 201, "json": {"any": 1}}],
            },
        },
        "files": {"x-harness": {"service": "s3", "bucket": "b"}},
        "job": {
            "ports": [{"target": 8000}],
            "stop_grace_period": "10s",
            "x-harness": {"command": ["{bin}/job"], "once": True, "ready_s": 3, "health": "/up"},
        },
    }
}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(sample_stack(), id="sample"),
        pytest.param(MORE, id="more"),
        *(
            pytest.param(json.loads(json.dumps(read_yaml(path))), id=path.parent.name)
            for path in sorted(ROOT.glob("suites/*/reference-system/compose.yaml"))
        ),
    ],
)
def test_compose_file(tmp_path, content):
    """Each is one error with file, service and key."""
    path = tmp_path / "compose.yaml"

    assert 40 < check_reader(
        lambda: read_compose(path),
        path,
        content=content,
        write=json.dumps,
        named_by_the_author=NAMED,
        left_to_others=OTHERS,
    )
