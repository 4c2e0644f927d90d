"""The asyncio loop on which the async turns of a process run, one at a time.

It is made at first use and kept while every turn leaves it as it was. One that was left with anything on it
is cleared and replaced: tasks are cancelled and awaited, async generators closed, and with the loop go
timers, open connections and the threads of its default executor (`asyncio.to_thread` is normal, not a leak).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

__all__ = ["TurnLoop"]

_PATIENCE = 1.0  # seconds for what was left behind to end


class TurnLoop:
    """A loop that outlives turns; used by the thread of the turns only."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(
        self,
        work: Awaitable[Any],
        started: Callable[[asyncio.AbstractEventLoop, asyncio.Task[Any]], None],
    ) -> Any:
        """Await ``work`` and return what it returns.

        Args:
            started: told of the loop and the task before it runs; cancelling the task is the way to end it.

        Raises:
            BaseException: what ``work`` raised, or a task of its that took the loop down (`SystemExit`).
        """
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        task = self._loop.create_task(_caught(work), name="turn")
        started(self._loop, task)
        try:
            value, error = self._loop.run_until_complete(task)
        except asyncio.CancelledError:
            if hasattr(work, "close"):  # cancelled before it began
                work.close()
            raise
        except BaseException:
            # another task raised through the loop, which is whole but stopped
            task.cancel()
            with contextlib.suppress(BaseException):
                self._loop.run_until_complete(asyncio.wait([task], timeout=_PATIENCE))
            raise
        if error is not None:
            raise error
        return value

    def tidy(self) -> list[str]:
        """Clear what the last turn left on the loop; names what would not go, else is empty."""
        loop = self._loop
        if loop is None:
            return []
        if getattr(loop, "_ready", None):
            _spin(loop)  # callbacks of things that have just ended
        tasks = asyncio.all_tasks(loop)
        if not tasks and not _is_used(loop):
            return []
        stubborn = _end_tasks(loop, time.monotonic() + _PATIENCE)
        self.close()
        return [f"task: {task.get_name()} ({_name(task)}) does not end" for task in stubborn]

    def close(self) -> None:
        """End the loop; the next turn makes a new one."""
        loop, self._loop = self._loop, None
        if loop is not None:
            executor = getattr(loop, "_default_executor", None)
            if executor is not None:
                executor.shutdown(wait=False, cancel_futures=True)
            loop.close()


async def _caught(work: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    # an exception that a task ends with goes through the loop if it is SystemExit; as a value it does not
    try:
        return await work, None
    except BaseException as exc:  # noqa: BLE001 - it is raised again outside of the loop
        return None, exc


def _is_used(loop: asyncio.AbstractEventLoop) -> bool:
    """True if anything but tasks is left on it.

    These are fields of its own; a loop without them counts as unused.
    """
    if getattr(loop, "_default_executor", None) is not None or getattr(loop, "_ready", None):
        return True
    if len(getattr(loop, "_asyncgens", ())) or any(not timer.cancelled() for timer in getattr(loop, "_scheduled", ())):
        return True
    selector = getattr(loop, "_selector", None)
    # one is the loop's own, by which other threads wake it
    return selector is not None and len(selector.get_map() or ()) > 1


def _spin(loop: asyncio.AbstractEventLoop) -> None:
    loop.call_soon(loop.stop)
    loop.run_forever()


def _end_tasks(loop: asyncio.AbstractEventLoop, deadline: float) -> list[asyncio.Task[Any]]:
    """Cancel tasks, and those that they start while they end; close generators; return those that stay."""
    while tasks := asyncio.all_tasks(loop):
        left = deadline - time.monotonic()
        if left <= 0:
            return list(tasks)
        for task in tasks:
            task.cancel()
        # what they end with is nobody's business any more
        with contextlib.suppress(BaseException):
            loop.run_until_complete(asyncio.wait(tasks, timeout=left))
        for task in tasks:
            if task.done() and not task.cancelled():
                task.exception()
    left = max(0.01, deadline - time.monotonic())
    with contextlib.suppress(BaseException):
        loop.run_until_complete(asyncio.wait_for(loop.shutdown_asyncgens(), left))
    return []


def _name(task: asyncio.Task[Any]) -> str:
    return getattr(task.get_coro(), "__qualname__", "?")
