"""The task that a user names: a run id, or what one alone begins with."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from openclaw_ray.cli.exits import CommandError
from openclaw_ray.cli.view import StateView

__all__ = ["known_task"]

_NEWEST = 2_000
"""Tasks among which the beginning of an id is looked for."""
_SHOWN = 4


def known_task(view: StateView, task: str) -> Mapping[str, Any]:
    """The row of the run that TASK names.

    Raises:
        CommandError: there is none, or there are several.
    """
    row = view.run(task)
    if row is not None:
        return row
    hint = "`openclaw-ray tasks list` lists the ids"
    fitting = [row for row in itertools.islice(view.runs(), _NEWEST) if task and str(row["runId"]).startswith(task)]
    if not fitting:
        raise CommandError(f"no task {task!r} in {view.source}; {hint}")
    if len(fitting) > 1:
        more = f" (+{len(fitting) - _SHOWN})" if len(fitting) > _SHOWN else ""
        named = ", ".join(str(row["runId"]) for row in fitting[:_SHOWN])
        raise CommandError(f"{task!r} begins {len(fitting)} task ids in {view.source}: {named}{more}")
    return fitting[0]
