"""A tool's function as a Ray task, with resources of its own (DESIGN.md 7).

1. Function and arguments go by value where the task could not import them, with the folders of this process's
   ``sys.path``. The task is never retried: a tool may have done what it does.
2. What the function raises comes back as itself if it can be pickled, else as its type and text.
3. Cancelling the future kills the task's process at once. If this process dies, Ray ends the task: it owns it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import sys
from concurrent.futures import Future, InvalidStateError
from functools import lru_cache
from typing import Any

from openclaw_ray.agents._by_value import by_value
from openclaw_ray.agents._origin import is_installed, module_of
from openclaw_ray.agents.pickling import dumps
from openclaw_ray.agents.port import ToolTask
from openclaw_ray.agents.text import said

__all__ = ["run_as_task"]


def run_as_task(task: ToolTask) -> Future[Any]:
    """See `openclaw_ray.agents.port.TurnPort.task`."""
    future: Future[Any] = Future()
    try:
        ref = _remote().options(max_retries=0, name=f"tool {task.tool}", **task.options).remote(_packed(task))
    except Exception as error:  # noqa: BLE001 - options that Ray refuses, arguments that cannot travel
        future.set_exception(error)
        return future

    def given_up(ended: Future[Any]) -> None:
        import ray

        if ended.cancelled():
            with contextlib.suppress(Exception):  # Ray is going down: so is the task
                ray.cancel(ref, force=True)

    def came(answer: Future[Any]) -> None:
        error = answer.exception()
        with contextlib.suppress(InvalidStateError):
            if error is not None:
                future.set_exception(error)
                return
            raised, value = answer.result()
            if raised:
                future.set_exception(value)
            else:
                future.set_result(value)

    future.add_done_callback(given_up)
    ref.future().add_done_callback(came)
    return future


@lru_cache(maxsize=1)
def _remote() -> Any:
    import ray

    return ray.remote(_run)


def _packed(task: ToolTask) -> tuple[tuple[str, ...], bytes]:
    module = module_of(task.function)
    travels = [] if module is None or module.__name__ == "__main__" or is_installed(module) else [module.__name__]
    with by_value(travels):
        return tuple(sys.path), dumps((task.function, dict(task.values), task.waits))


def _run(packed: tuple[tuple[str, ...], bytes]) -> tuple[bool, Any]:
    """In the task: whether it raised, and what it returned or raised."""
    paths, data = packed
    before = list(sys.path)
    sys.path += [path for path in paths if path not in before and os.path.isdir(path)]
    try:
        function, values, waits = pickle.loads(data)
        returned = function(**values)
        return False, asyncio.run(returned) if waits else returned
    except Exception as error:  # noqa: BLE001 - the tool's own
        return True, _portable(error)
    finally:
        sys.path[:] = before


def _portable(error: Exception) -> Exception:
    try:
        pickle.loads(dumps(error))
        return error
    except Exception:  # noqa: BLE001 - whatever its class has against it
        return RuntimeError(f"{type(error).__name__}: {said(error, 4_000)}")
