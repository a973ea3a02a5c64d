"""Roles of agents: the system prompt of each, and the tools it may use."""

from __future__ import annotations

from workbench_contract.episodes import AgentRole, Purpose

_ALL = ("fs_ls", "fs_read", "fs_grep", "write_journal")
_WRITING = (*_ALL, "fs_write", "fs_edit", "fs_delete", "git_init", "git_commit")

TOOLS: dict[AgentRole, tuple[str, ...]] = {
    AgentRole.PLANNER: (*_WRITING, "search_catalogue", "validate_costing_and_price", "submit"),
    AgentRole.CODER: (
        *_WRITING, "execute", "lint", "validate", "analyze",
        "validate_and_price", "simulate", "preview", "render", "video", "submit",
    ),  # fmt: skip
    AgentRole.REVIEWER: (
        *_ALL, "fs_view", "fs_write", "execute", "lint", "validate", "simulate",
        "preview", "render", "video", "submit",
    ),  # fmt: skip
}

_PROMPTS = {
    AgentRole.PLANNER: (
        "You plan the engineering of a part. plan.md, objectives.yaml and "
        "preliminary_cost_estimation.yaml in your workspace are templates to be filled in (objectives "
        "that you were given stay as they are); todo.md is your list: tick `[x]` what is done, skip "
        "with `[-]` and a reason, delete nothing. validate_costing_and_price computes what the estimate "
        "costs and weighs; `features` of its parts, boxes and cylinders in order, say their geometry. "
        "Hand over with submit; correct all that it finds."
    ),
    AgentRole.CODER: (
        "You engineer a part. Write a build123d script that leaves the solid in `part`, check it "
        "with lint, validate, analyze and simulate, and put what is to be kept below assets/. Hand over "
        "model.py and todo.md with submit. Of a plan leave all parts in `parts`, by their ids; "
        "validate_and_price has to pass before simulate and submit. preview, render and video show what was made. When the plan cannot be carried "
        "out, hand over a plan_refusal.md with proof. Nothing of environment/ may change, nor be shadowed."
    ),
    AgentRole.REVIEWER: (
        "You review the engineering of a part. Look at its files, write review.md, and hand it "
        "over with submit: front matter with your decision, its evidence and your comments. "
        "`optimal: true` beside an approval says that you expect no design that is materially cheaper."
    ),
}

_PROMPTS_OF_BENCHMARK = {
    AgentRole.PLANNER: (
        "You plan a benchmark for engineers: what is to be moved where, and within which caps. plan.md "
        "and objectives.yaml in your workspace are templates to be filled in; todo.md is your list: "
        "tick `[x]` what is done, skip with `[-]` and a reason, delete nothing. Hand over with submit; "
        "correct all that it finds."
    ),
    AgentRole.CODER: (
        "You make the environment of a benchmark. environment/geometry.py is a build123d script that "
        "leaves its solids in `parts`, by their names; it needs nothing outside of environment/. "
        "validate, with it as model and objectives.yaml as objectives, says what is wrong over the whole "
        "randomization. Hand it over with todo.md by submit; plan and objectives stay as they are."
    ),
    AgentRole.REVIEWER: (
        "You review a benchmark: its objectives and the geometry of its environment. Look at its "
        "files, write review.md, and hand it over with submit: front matter with your decision, its "
        "evidence and your comments."
    ),
}


def system_prompt(role: AgentRole, purpose: Purpose, *, task: str, skills: str = "") -> str:
    """The system prompt of a role."""
    prompts = _PROMPTS_OF_BENCHMARK if purpose is Purpose.BENCHMARK else _PROMPTS
    told = f"\n\n{skills}" if skills else ""
    return (
        f"{prompts[role]}\nPaths are relative to your workspace; events.jsonl there is the record "
        f"of what you did. Use one tool at a time and end with a short report.{told}\n\nTask: {task}"
    )
