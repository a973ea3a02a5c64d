"""The compose files of this repository, with every mistake that a hurry makes."""

import json
from pathlib import Path

import pytest

from harness_core.assurance.conformance import check_reader
from harness_core.system.compose._compose import read_compose
from harness_core.system.compose._yaml import read_yaml
from harness_core.tests.conformance.stack import sample_stack

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
        "llm": {"environment": {}, "x-harness": {"service": "gateway", "mode": "rehearsed"}},
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


def plain(path: Path) -> dict:
    """A compose file without anchors, and one service of each kind: parsing takes its time."""
    content = json.loads(json.dumps(read_yaml(path)))
    kinds = {}
    for name, service in content["services"].items():
        needs = service.get("depends_on", {}).keys()
        kinds.setdefault(service["x-harness"].get("service", f"needs {sorted(needs)}"), name)
    kept = {name: content["services"][name] for name in kinds.values()}
    return {**content, "services": kept}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(sample_stack(), id="sample"),
        pytest.param(MORE, id="more"),
        *(
            pytest.param(plain(path), id=path.parent.name)
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
