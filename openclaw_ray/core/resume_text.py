"""The one message that a session gets when its run goes on after a restart (SPEC.md H5)."""

from __future__ import annotations

from typing import Final

__all__ = ["TASK_MAX", "resume_text"]

TASK_MAX: Final = 2000
"""Characters of the task that the message repeats."""


def resume_text(task: str) -> str:
    """What was going on, and what is to be done now."""
    shown = task if len(task) <= TASK_MAX else f"{task[: TASK_MAX - 1]}…"
    return (
        "[Resumed] The runtime went down in the middle of this task and is up again. What you had done by then is "
        f"done, in part or whole: look before you do it again, then go on.\n\n[Task]\n{shown}"
    )
