"""How many threads are inside a call to Ray: it must not be shut down under them."""

from __future__ import annotations

import threading
from types import TracebackType

__all__ = ["Watching"]


class Watching:
    """A count that threads enter and leave, and that the closing thread waits out."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    def __enter__(self) -> Watching:
        with self._changed:
            self._count += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def wait_for_none(self, timeout: float) -> bool:
        """Wait until nobody is inside; False if that took longer than ``timeout`` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._count == 0, timeout)
