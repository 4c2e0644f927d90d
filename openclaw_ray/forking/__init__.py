"""Workers of an embedded Ray are forked from a process that has Ray and the session actor imported already.

A worker of Ray's that starts by itself imports for most of its start, and keeps a copy of all that it has imported.
A fork has it all at once, and shares its memory.

1. `forked_workers` has a local ``ray.init`` give the raylet `launch` as its worker program, in place of Ray's own.
2. The first launcher of a node binds the socket ``forks`` beside the raylet's and starts the `parent` of workers, with
   its own environment: Ray reads some of it as it is imported. The raylet's process id is the parent's name.
3. The parent listens at once, imports, and goes on only if a fork of it would be a worker like any other: no second
   thread, and Ray's ids of two forks differ. It ends with the raylet.
4. A launcher connects, waits for the parent's word, and sends what it was given: arguments, environment, folder, the
   files it writes to, its place among processes. The parent forks. The child says so on the launcher's connection, and
   the launcher ends; from then on the child is what the raylet started. Only one of both ever goes on: the child if its
   word was sent, the launcher if the connection ends without it.
5. Whatever is not as expected (no socket, no word in time, another environment, a system that is not Linux), the
   launcher becomes Ray's own worker program, as if nothing of this were there. So does the one of a ``runtime_env``
   with variables of its own. Without the parent, workers start as Ray starts them.

``OPENCLAW_RAY_FORK=0`` in the environment of who starts Ray switches it off. A Ray that is there already is never
touched.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["SWITCH", "forked_workers"]

SWITCH = "OPENCLAW_RAY_FORK"
_LAUNCH = str(Path(__file__).with_name("launch.py"))


@contextmanager
def forked_workers() -> Iterator[bool]:
    """A ``ray.init`` of a local Ray in here has its workers forked; gives whether it will (1)."""
    if os.environ.get(SWITCH) == "0" or sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        yield False
        return
    try:
        from ray._private import parameter

        theirs: Any = parameter.RayParams
    except (ImportError, AttributeError):  # another version of Ray
        yield False
        return

    class Params(theirs):  # type: ignore[misc]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            if getattr(self, "worker_path", "") is None:
                self.worker_path = _LAUNCH

    parameter.RayParams = Params  # type: ignore[misc]
    try:
        yield True
    finally:
        parameter.RayParams = theirs  # type: ignore[misc]
