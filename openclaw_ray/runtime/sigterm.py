"""What SIGTERM does to a program that has come to Ray: it ends as `sys.exit` ends it, its runtime is closed on the way.

1. ``ray.init`` puts a handler of its own on SIGTERM. That of a Ray which this process has started itself ends the
   raylet and the GCS first, from under all that is to be closed in order: no stop is journaled, and Ray's own code in
   this process aborts for want of them. Ray is ended after us by its `atexit` hook, and by the kernel after a crash.
2. So where a program had no handler, SIGTERM raises `SystemExit` with the signal's number, on every Ray. A program's
   own handler is put back: it was there first.
3. Handlers belong to the main thread; a Ray that another thread starts sets none.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["keep_sigterm", "orderly_sigterm"]


def _leave(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, _leaving)
    sys.exit(number)


def _leaving(number: int, frame: FrameType | None) -> None:
    """A second one must not break off what the first has begun."""


@contextmanager
def orderly_sigterm() -> Iterator[None]:
    """Around ``ray.init`` (2)."""
    before = _handler()
    yield
    if _handler() is not before and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _leave if before is signal.SIG_DFL else before)


def keep_sigterm() -> Callable[[], None]:
    """Gives what puts SIGTERM back as it was before, if it is ours then, and this is the main thread."""
    before = _handler()

    def put_back() -> None:
        if _handler() in (_leave, _leaving) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)

    return put_back


def _handler() -> Any:
    return signal.getsignal(signal.SIGTERM)
