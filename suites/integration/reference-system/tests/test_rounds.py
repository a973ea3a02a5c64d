"""What a role that is asked once more goes on from."""

from workbench_contract.episodes import AgentRole
from workbench_contract.handover import FileBytes
from workbench_controller.rounds import resumed


def left(*paths):
    """Files that were handed over."""
    return [FileBytes(path=path, content=path.encode()) for path in paths]


def test_coder():
    """Its design and its list; not what it is given anew, nor what that round was about."""
    files = left(
        "context/review.md", "model.py", "plan.md", "plan_refusal.md", "todo.md", "environment/a.py"
    )
    fixed = {"plan.md", "todo.md", "environment/a.py"}

    kept = resumed(AgentRole.CODER, files, fixed=fixed)

    assert ["model.py", "todo.md"] == [each.path for each in kept]


def test_planner():
    """Its plan, and objectives that it may have made stricter; its list is issued anew."""
    files = left("environment/a.py", "objectives.yaml", "plan.md", "todo.md")

    kept = resumed(AgentRole.PLANNER, files, fixed={"objectives.yaml", "environment/a.py"})

    assert ["objectives.yaml", "plan.md"] == [each.path for each in kept]
