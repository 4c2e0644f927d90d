"""The clean check between two sessions of one process (PROTOCOL.md 7.6); hygiene, not a security boundary.

1. The turn's loop is tidied (`TurnLoop.tidy`); a task that will not end is a fault.
2. Environment, working directory, umask and ``sys.path`` are put back without a word: any program may set
   them.
3. Threads and child processes that were not there at the beginning are faults, after a moment for those that
   are just ending. Threads of the runtime are named ``openclaw-…``; threads that native code brought in
   are not counted.
4. Memory that grew beyond the limit since the beginning is a fault, once what is garbage has been collected.

A process with a fault is not used again; each reason names the culprit. Children that ended and were never
waited for are no fault.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
from dataclasses import dataclass

from openclaw_ray.agents.descendants import has_children, living_children, reap_orphans
from openclaw_ray.agents.turn_loop import TurnLoop
from openclaw_ray.core.protocol.messages import CleanCheck

__all__ = ["OWN_THREADS", "Baseline", "check", "private_bytes"]

OWN_THREADS = "openclaw-"
"""Prefix of the names of the runtime's own threads, which may come and go."""

_MOMENT = 0.05  # seconds
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a process looked like before the first session.

    Attributes:
        environ: as bytes, the way the process has it.
        cwd: working directory; `None` if it has none any more.
        umask: of new files.
        path: entries of ``sys.path``, and ``path_list`` the list itself.
        threads: idents of the Python threads.
        children: process ids.
        memory: private bytes.
        max_growth: bytes that the memory may grow by.
    """

    environ: dict[bytes, bytes]
    cwd: str | None
    umask: int
    path: tuple[str, ...]
    path_list: list[str]
    threads: frozenset[int]
    children: frozenset[int]
    memory: int
    max_growth: int

    @classmethod
    def take(cls, max_growth_mb: float = 64) -> Baseline:
        """Look at this process, in the thread of its turns, before any agent's code has run.

        Args:
            max_growth_mb: megabytes (``ray.pool.maxGrowthMb``).
        """
        umask = os.umask(0o077)
        os.umask(umask)
        return cls(
            environ=_environ(),
            cwd=_cwd(),
            umask=umask,
            path=tuple(sys.path),
            path_list=sys.path,
            threads=frozenset(thread.ident or 0 for thread in threading.enumerate()),
            children=frozenset(child.pid for child in living_children()) if has_children() else frozenset(),
            memory=private_bytes(),
            max_growth=int(max_growth_mb * _MB),
        )


def check(baseline: Baseline, loop: TurnLoop | None = None) -> CleanCheck:
    """Put back what can be, and name what cannot; in the thread of the turns, after each turn.

    About 50 µs when nothing is left over.
    """
    reasons = loop.tidy() if loop is not None else []
    reasons += _restore(baseline)
    moment_ends = time.monotonic() + _MOMENT
    reasons += _threads(baseline, moment_ends)
    reasons += _children(baseline, moment_ends)
    reasons += _memory(baseline)
    return CleanCheck(tuple(reasons))


def private_bytes() -> int:
    """Resident memory of this process that no file and no other process shares.

    Pages of Ray's object store that were read are resident, too, but nobody's growth.
    """
    fd = os.open("/proc/self/statm", os.O_RDONLY)
    try:
        _, resident, shared, *_ = os.read(fd, 128).split()
    finally:
        os.close(fd)
    return (int(resident) - int(shared)) * _PAGE


# --------------------------------------------------------------------------- the four steps


def _restore(baseline: Baseline) -> list[str]:
    reasons = []
    now = _environ()
    if now != baseline.environ:
        for name in now.keys() - baseline.environ.keys():
            os.environb.pop(name, None)
        for name, value in baseline.environ.items():
            if now.get(name) != value:
                os.environb[name] = value
    if _cwd() != baseline.cwd and baseline.cwd is not None:
        try:
            os.chdir(baseline.cwd)
        except OSError as exc:
            reasons.append(f"cwd: cannot go back to {baseline.cwd}: {exc.strerror}")
    os.umask(baseline.umask)
    if sys.path is not baseline.path_list:
        sys.path = baseline.path_list
    if tuple(sys.path) != baseline.path:
        sys.path[:] = baseline.path
    return reasons


def _threads(baseline: Baseline, moment_ends: float) -> list[str]:
    left = [
        thread
        for thread in threading.enumerate()
        if thread.ident not in baseline.threads
        and not thread.name.startswith(OWN_THREADS)
        and not isinstance(thread, threading._DummyThread)
        and thread is not threading.current_thread()
    ]
    for thread in left:
        with contextlib.suppress(RuntimeError):  # it is only just starting
            thread.join(max(0.0, moment_ends - time.monotonic()))
    return [f"thread: {thread.name}" for thread in left if thread.is_alive()]


def _children(baseline: Baseline, moment_ends: float) -> list[str]:
    if not has_children():
        return []
    reap_orphans(known=baseline.children)
    while True:
        left = [child for child in living_children() if child.pid not in baseline.children]
        if not left or time.monotonic() >= moment_ends:
            return [f"child process: {child.pid} ({child.name})" for child in left]
        time.sleep(0.005)


def _memory(baseline: Baseline) -> list[str]:
    grown = private_bytes() - baseline.memory
    if grown > baseline.max_growth:
        gc.collect()
        grown = private_bytes() - baseline.memory
    if grown <= baseline.max_growth:
        return []
    return [f"memory: grew by {grown // _MB} MB, the limit is {baseline.max_growth // _MB} MB"]


def _environ() -> dict[bytes, bytes]:
    # os.environ has them encoded in a dict of its own; going through the mapping would decode each
    raw = getattr(os.environ, "_data", None)
    return dict(raw) if isinstance(raw, dict) else dict(os.environb)


def _cwd() -> str | None:
    with contextlib.suppress(OSError):
        return os.getcwd()
    return None
