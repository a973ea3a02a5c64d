"""What a person reads of a failure that was found by exploring."""

from __future__ import annotations

from harness_core.assertions.exploring._examples import Failed


def story(failed: Failed, *, repeat: str) -> str:
    """The steps, the last of which failed, where they come from, and the command.

    Args:
        failed: the smallest example that failed.
        repeat: the command.
    """
    count = len(failed.steps)
    counted = "1 step" if count == 1 else f"{count} steps"
    if failed.first_steps > count:
        counted += f", shrunk from {failed.first_steps}"
    lines = [f"Found by exploring with seed {failed.seed}, at the end of {counted}:"]
    lines += [f"    {line}" for step in (failed.made, *failed.steps) for line in step.splitlines()]
    if failed.broken:
        lines.append(f"    state.{failed.broken}()  # does not hold")
    if failed.stopped:
        lines.append("The time for shrinking was over: fewer steps may do.")
    if failed.flaky:
        lines.append(
            "Taken again the same steps did not fail in the same way: it is a matter of time, or "
            "the product remembers what earlier examples did."
        )
    lines.append(f"Repeat it: {repeat}")
    return "\n".join(lines)
