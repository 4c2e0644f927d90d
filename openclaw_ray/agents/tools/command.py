"""One command of ``exec``, from its start to the end of all its processes (PROTOCOL.md 6.9).

1. A thread of its own opens the folder, starts the command there, reads its output and watches it. The command stays
   in this process's group, so that it ends with it, however that ends.
2. It ends by itself; or is ended: by a stop or timeout of the turn, its own time, too many processes, too much output.
   Then all its processes are killed at once.
3. When the command itself has ended, what still holds its output is given a moment, and what it left behind is ended.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from typing import IO

from openclaw_ray.agents.tools.kept_output import KeptOutput
from openclaw_ray.agents.tools.process_tree import ProcessTree, limit_processes, threads_there_are
from openclaw_ray.agents.tools.workspace import PathRefused, Workspace

__all__ = ["MOST_OUTPUT", "MOST_PROCESSES", "Command"]

MOST_PROCESSES = 512
"""Processes of one command; with more of them it is ended."""
MOST_OUTPUT = 256 << 20
"""Bytes that one command may write; then it is ended."""
MARK = "OPENCLAW_EXEC_ID"
"""The variable by which a command's processes are known."""

_TICK = 0.05
_LOOK = 0.5
_JUMP = 64  # new threads on the machine that make a look worth it
_LEFT_BEHIND = 0.2
_KILLED_WITHIN = 10.0
_CHUNK = 64 << 10
_DRAIN = 64  # chunks: more than a pipe holds
_INPUT = 1 << 20  # bytes that wait to be read by the command


class Command:
    """One command that runs or has run.

    Attributes:
        id: short, for ``process``.
        shown: the command as it was given.
        background: it has an input, and outlives its call.
        started: done when it runs, or with why it does not (`OSError`, `PathRefused`).
        ended: done when none of its processes is left; never fails.
        pid: of the command itself.
        exit_status: as a shell has it, 128 + n for signal n; `None` until it has ended.
        why: why it was ended, if it was.
        left_behind: processes that it left, and that were ended.
    """

    def __init__(
        self,
        id: str,
        argv: Sequence[str],
        shown: str,
        *,
        inside: Workspace,
        folder: tuple[str, ...],
        env: Mapping[str, str],
        timeout: float,
        background: bool,
    ) -> None:
        self.id = id
        self.shown = shown
        self.background = background
        self.started: Future[None] = Future()
        self.ended: Future[None] = Future()
        self.pid = 0
        self.exit_status: int | None = None
        self.why: str | None = None
        self.left_behind = 0
        self._argv = list(argv)
        self._inside = inside
        self._folder = folder
        self._mark = os.urandom(12).hex()
        self._env = {**env, MARK: self._mark}
        self._timeout = timeout
        self._lock = threading.Lock()
        self._output = KeptOutput()
        self._news: list[Future[None]] = []
        self._ending: str | None = None
        self._input = bytearray()
        self._input_ends = False
        self._wake, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._began = time.monotonic()
        self._over = 0.0
        self._thread = threading.Thread(target=self._work, name=f"tool exec {id}", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------ for others

    @property
    def runs(self) -> bool:
        """It has not ended."""
        return not self.ended.done()

    @property
    def runtime(self) -> float:
        """Seconds, so far."""
        return (self._over or time.monotonic()) - self._began

    def end(self, why: str) -> None:
        """Have it ended; from any thread, and without waiting. The first reason stays."""
        with self._lock:
            self._ending = self._ending or why
        self._stir()

    def join(self, seconds: float) -> bool:
        """Wait until it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def output(self) -> tuple[str, int, bool]:
        """What is kept of it, how many bytes it was, and whether some are left out."""
        with self._lock:
            return self._output.text(), self._output.total, self._output.cut

    def new_output(self) -> str:
        """What has come since it was asked for last."""
        with self._lock:
            return self._output.since_last()

    def news(self) -> Future[None]:
        """Done when there is new output, or it has ended."""
        told: Future[None] = Future()
        with self._lock:
            if self._output.news or self.ended.done():
                told.set_result(None)
            else:
                self._news.append(told)
        return told

    def write(self, data: bytes, end: bool) -> str | None:
        """Send it to the command's input; why it cannot be, or `None`."""
        with self._lock:
            if not self.background or self._input_ends or self.ended.done():
                return "its input is closed"
            if len(self._input) + len(data) > _INPUT:
                return f"{len(self._input)} bytes wait to be read by it already, the limit is {_INPUT}"
            self._input += data
            self._input_ends = end
        self._stir()
        return None

    def _stir(self) -> None:
        with self._lock, contextlib.suppress(OSError):  # full: it is awake; closed: it is over
            os.write(self._woken, b"x")

    # ------------------------------------------------------------------ its thread

    def _work(self) -> None:
        try:
            self._run()
        except (OSError, ValueError, PathRefused) as error:
            if self.started.done():
                self.why = str(error)
            else:
                self.started.set_exception(error)
        finally:
            self._over = time.monotonic()
            with self._lock:
                self.ended.set_result(None)
                told, self._news = self._news, []
                os.close(self._wake)
                os.close(self._woken)
                self._woken = -1
            for each in told:
                each.set_result(None)

    def _run(self) -> None:
        process = self._start()
        tree = ProcessTree(process.pid, f"{MARK}={self._mark}".encode())
        self.pid = process.pid
        limit_processes(process.pid, MOST_PROCESSES)
        self.started.set_result(None)
        try:
            self._watch(process, tree)
        finally:
            self.left_behind = tree.end(_KILLED_WITHIN)
            for _ in range(_DRAIN):
                if not self._take(process.stdout):
                    break
            status = process.wait()
            self.exit_status = status if status >= 0 else 128 - status
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()

    def _start(self) -> subprocess.Popen[bytes]:
        """In the folder that is open, whatever its path leads to by now."""
        with self._inside.folder(self._folder, "/".join(self._folder) or ".") as fd:
            return subprocess.Popen(
                self._argv,
                cwd=f"/proc/self/fd/{fd}",
                env=self._env,
                stdin=subprocess.PIPE if self.background else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
            )

    def _watch(self, process: subprocess.Popen[bytes], tree: ProcessTree) -> None:
        assert process.stdout is not None
        out = process.stdout.fileno()
        os.set_blocking(out, False)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
        deadline = self._began + self._timeout
        looked, threads, over_at = time.monotonic(), threads_there_are(), 0.0
        reads = True
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            selector.register(self._wake, selectors.EVENT_READ)
            while True:
                self._feed(process, selector)
                ready = {key.fd for key, _ in selector.select(_TICK)}
                if self._wake in ready:
                    with contextlib.suppress(OSError):
                        os.read(self._wake, _CHUNK)
                if out in ready and self._take(process.stdout) == b"":
                    reads = False
                    selector.unregister(out)
                now = time.monotonic()
                if process.poll() is not None:
                    over_at = over_at or now
                    if not reads or now - over_at > _LEFT_BEHIND:
                        break
                elif (why := self._why(now, deadline)) is not None:
                    self.why = why
                    break
                if now - looked > _LOOK or threads_there_are() - threads > _JUMP:
                    looked, threads = now, threads_there_are()
                    if (count := len(tree.living())) > MOST_PROCESSES:
                        self.why = f"it had {count} processes, the limit is {MOST_PROCESSES}"
                        break

    def _why(self, now: float, deadline: float) -> str | None:
        """Why it is to be ended, if it is."""
        if self._ending is not None:
            return self._ending
        if now > deadline:
            return f"it had not ended after {self._timeout:g} s (timeout)"
        if self._output.total > MOST_OUTPUT:
            return f"it had written {self._output.total} bytes, the limit is {MOST_OUTPUT}"
        return None

    def _take(self, out: IO[bytes] | None) -> bytes | None:
        """Read what is there: `None` if there is nothing, empty if there will be no more."""
        assert out is not None
        try:
            data = os.read(out.fileno(), _CHUNK)
        except BlockingIOError:
            return None
        if not data:
            return data
        with self._lock:
            self._output.add(data)
            told, self._news = self._news, []
        for each in told:
            with contextlib.suppress(InvalidStateError):
                each.set_result(None)
        return data

    def _feed(self, process: subprocess.Popen[bytes], selector: selectors.BaseSelector) -> None:
        """Write what its input takes; wait for room if there is more."""
        stream = process.stdin
        if stream is None or stream.closed:
            return
        with self._lock:
            data, ends = bytes(self._input), self._input_ends
        if data:
            try:
                sent = os.write(stream.fileno(), data)
            except BlockingIOError:
                sent = 0
            except OSError:  # nobody reads it any more
                sent, ends = len(data), True
            with self._lock:
                del self._input[:sent]
                data = bytes(self._input)
        waits = stream.fileno() in selector.get_map()
        if bool(data) != waits:
            if data:
                selector.register(stream.fileno(), selectors.EVENT_WRITE)
            else:
                selector.unregister(stream.fileno())
        if ends and not data:
            with contextlib.suppress(OSError):
                stream.close()
