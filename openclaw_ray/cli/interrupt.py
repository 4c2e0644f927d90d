"""Ctrl-C, SIGTERM, SIGHUP and a broken pipe: what they do to a command that has a runtime.

1. Before the runtime is attached, the first signal raises `KeyboardInterrupt` in the main thread; starting is
   undone.
2. After that the first signal stops the tree gracefully. Nothing is raised: the source of items ends
   (`stopping`, `stop_fd`), results drain, their rows are written, the command ends with exit code 130.
3. The second signal, 0.3 s or more later, or 30 s without an end after the first, ends by force: ``force()``
   gets 3 s, then the process exits at once.
4. When the reader of standard output goes away, the same happens as at the first signal, with exit code 141;
   a signal after that is a second one.

All of it is done by threads of its own, which read the signals from a wake-up socket: a main thread that is
stuck in native code cannot hold it up, and no lock of the runtime is ever taken inside a signal handler.
SIGINT counts even where a shell has set it to be ignored (background jobs of scripts), for ``kill -INT`` is
how such a job is stopped; SIGHUP does not (``nohup``).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

import click

from openclaw_ray.cli.exits import BROKEN_PIPE, INTERRUPTED, Interrupted

__all__ = ["DRAIN_SECONDS", "FORCE_SECONDS", "SAME_PRESS_SECONDS", "Interrupt"]

DRAIN_SECONDS = 30.0
"""How long stopping and draining may take."""
FORCE_SECONDS = 3.0
"""How long closing by force may take."""
SAME_PRESS_SECONDS = 0.3
"""Signals closer than this are one: ``timeout`` and terminals may send two at once."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_END = b"\0"


def _note(text: str) -> None:
    click.echo(text, err=True)


class Interrupt:
    """A context in which signals stop the attached runtime; see the module's steps.

    Must be entered in the main thread. A failure that follows from the interruption leaves the context as
    `Interrupted`.

    Args:
        exit: ends the process at once.
        clock: seconds, for telling two presses apart.
        output_fd: watched for the end of its reader if it is a pipe or a socket; ``None`` watches nothing.

    Attributes:
        note: says something to the user; a command with a progress display puts its own here.
        stopping: set once no more items are wanted.
    """

    def __init__(
        self,
        *,
        exit: Callable[[int], object] = os._exit,
        clock: Callable[[], float] = time.monotonic,
        output_fd: int | None = 1,
    ) -> None:
        self.note: Callable[[str], None] = _note
        self.stopping = threading.Event()
        self._exit_now = exit
        self._clock = clock
        self._output_fd = output_fd
        self._code: int | None = None
        self._first_at = 0.0
        self._stop: Callable[[], object] | None = None
        self._force: Callable[[], object] | None = None
        self._raised = False
        self._forcing = False
        self._over = threading.Event()
        self._lock = threading.Lock()

    @property
    def exit_code(self) -> int | None:
        """130 or 141 once the command is to end, else `None`."""
        return self._code

    @property
    def stop_fd(self) -> int:
        """A file descriptor that becomes readable once no more items are wanted."""
        return self._stop_reader.fileno()

    def attach(self, *, stop: Callable[[], object], force: Callable[[], object]) -> None:
        """From now on signals stop this runtime.

        Args:
            stop: stops the tree and returns when it is stopped.
            force: ends everything without waiting.

        Raises:
            KeyboardInterrupt: a signal came while the runtime was starting.
        """
        with self._lock:
            self._stop, self._force = stop, force
        self._install()  # Ray puts its own handler on SIGTERM while it starts
        if self._code is not None:
            raise KeyboardInterrupt

    def end_input(self) -> None:
        """No more items are wanted, whatever the reason; a source that waits for input ends."""
        if not self.stopping.is_set():
            self.stopping.set()
            self._stop_writer.send(_END)

    def __enter__(self) -> Self:
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._stop_reader, self._stop_writer = socket.socketpair()
        self._wake_writer.setblocking(False)
        self._old_handlers = {number: signal.getsignal(number) for number in _SIGNALS}
        self._old_wakeup = signal.set_wakeup_fd(self._wake_writer.fileno(), warn_on_full_buffer=False)
        self._install()
        self._watcher = threading.Thread(target=self._watch, name="interrupt", daemon=True)
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        signal.set_wakeup_fd(self._old_wakeup)
        for number, handler in self._old_handlers.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._wake_writer.setblocking(True)
        self._wake_writer.sendall(_END)
        self._watcher.join()
        for end in (self._wake_reader, self._wake_writer, self._stop_reader, self._stop_writer):
            end.close()
        if self._code is None and isinstance(error, KeyboardInterrupt):
            self._code = INTERRUPTED
        if error is not None and self._code is not None:
            raise Interrupted(self._code) from error

    def _install(self) -> None:
        for number in _SIGNALS:
            if number != signal.SIGHUP or self._old_handlers[number] is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """The wake-up socket has the signal already; here only the start, which nothing else could end."""
        if self._force is None and not self._raised:
            self._raised = True
            raise KeyboardInterrupt

    def _watch(self) -> None:
        poller = select.poll()
        poller.register(self._wake_reader, select.POLLIN)
        if self._output_fd is not None and _is_pipe(self._output_fd):
            poller.register(self._output_fd, 0)  # nothing but the end of its reader is told
        while True:
            for fd, _ in poller.poll():
                if fd == self._output_fd:
                    poller.unregister(fd)
                    self._begin(BROKEN_PIPE, "the reader of the output is gone: stopping")
                    continue
                data = self._wake_reader.recv(256)
                for number in data:
                    if number in _SIGNALS:
                        self._press(signal.Signals(number).name)
                if _END in data or not data:
                    return

    def _press(self, name: str) -> None:
        if self._code is None:
            self._begin(INTERRUPTED, f"{name}: stopping the sessions; once more ends at once")
        elif self._clock() - self._first_at >= SAME_PRESS_SECONDS:
            self._start(self._end_by_force)

    def _begin(self, code: int, text: str) -> None:
        if self._code is not None:
            return
        self._code, self._first_at = code, self._clock()
        self.end_input()
        self.note(text)
        self._start(self._end_gracefully)

    def _end_gracefully(self) -> None:
        self._start(self._stop_tree)
        if not self._over.wait(DRAIN_SECONDS):
            self.note(f"not at an end {DRAIN_SECONDS:g} s after the stop: ending by force")
            self._end_by_force()

    def _stop_tree(self) -> None:
        with self._lock:
            stop = self._stop
        if stop is not None:
            try:
                stop()
            except Exception as error:  # noqa: BLE001 - the end by force follows
                self.note(f"the stop failed: {error}")

    def _end_by_force(self) -> None:
        with self._lock:
            if self._forcing:
                return
            self._forcing = True
            force = self._force
        if force is not None:
            closing = threading.Thread(target=_quietly, args=(force,), name="force", daemon=True)
            closing.start()
            closing.join(FORCE_SECONDS)
        if not self._over.is_set():
            if sys.stderr is not None and sys.stderr.isatty():
                sys.stderr.write("\x1b[?25h\n")  # a progress display hides the cursor
                sys.stderr.flush()
            self._exit_now(INTERRUPTED if self._code is None else self._code)

    def _start(self, step: Callable[[], None]) -> None:
        threading.Thread(target=step, name="interrupt-step", daemon=True).start()


def _quietly(step: Callable[[], object]) -> None:
    with contextlib.suppress(Exception):
        step()


def _is_pipe(fd: int) -> bool:
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
