"""Running one command: its output as text, its failure as an exception, its processes ended with it.

1. The command starts in the process group of this process, so that it ends with it, however that ends; its
   standard input is empty.
2. Both outputs are read as they come. Of standard output the first `KEPT_OUTPUT` bytes are kept, of standard
   error the last `KEPT_ERRORS`; the latter also goes to this process's own standard error, which is the
   session's log.
3. ``check`` is called at least every 0.1 s. If it raises, the command and all below it get SIGTERM, and after
   0.5 s SIGKILL.
4. When the command has ended, what it left behind is ended, too, as far as it can be found (`end_tree`).
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence

from openclaw_ray.agents.builtin.command_tree import adopts_orphans, birth, end_tree
from openclaw_ray.agents.descendants import has_children

__all__ = ["KEPT_ERRORS", "KEPT_OUTPUT", "CommandFailed", "run_command"]

KEPT_OUTPUT = 128 << 10
"""Bytes; a little over what a result's text may have, so that the runtime sees and says that it cut."""

KEPT_ERRORS = 3 << 10
"""Bytes; with the exit status before it they fit into an error's message."""

_TICK = 0.1
_LEFT_BEHIND = 0.2
_CHUNK = 64 << 10


class CommandFailed(Exception):
    """A command could not start, or ended with a status other than 0.

    Attributes:
        exit_status: as a shell has it: 126 or 127 if it could not start, 128 + n if signal n ended it.
    """

    def __init__(self, message: str, exit_status: int) -> None:
        super().__init__(message, exit_status)
        self.exit_status = exit_status

    def __str__(self) -> str:
        return str(self.args[0])


def run_command(argv: Sequence[str], *, cwd: str | None, check: Callable[[], object]) -> str:
    """Run ``argv`` to its end and return its standard output, without the newline at its end.

    Args:
        argv: the program and its arguments; no shell is involved.
        cwd: where it runs.
        check: raises when the command is to end.

    Raises:
        CommandFailed: with the exit status, and the last lines of standard error.
    """
    process = _start(argv, cwd)
    since = birth(process.pid)
    try:
        output, errors = _read(process, since, check)
        status = process.wait()
        if has_children() and adopts_orphans():
            end_tree(None, since=since)
    except BaseException:
        end_tree(process.pid if process.poll() is None else None, since=since)
        process.wait()
        raise
    finally:
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    if status != 0:
        raise _failure(status, errors)
    text = output.decode("utf-8", errors="replace")
    return text.removesuffix("\n").removesuffix("\r")


def _start(argv: Sequence[str], cwd: str | None) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(argv, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except FileNotFoundError as error:
        if cwd is not None and not os.path.isdir(cwd):
            message = f"the folder {cwd} is not there, or not on this node; commands run where the map was started"
        else:
            message = f"command not found: {error.filename or argv[0]}"
        raise CommandFailed(message, 127) from None
    except (OSError, ValueError) as error:
        # ValueError: a NUL byte; OSError: not executable, or arguments too long
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CommandFailed(f"cannot run {argv[0]}: {reason}", 126) from None


def _read(process: subprocess.Popen[bytes], since: int | None, check: Callable[[], object]) -> tuple[bytes, bytes]:
    """What the command wrote: the head of its output, the tail of its errors."""
    output, errors = bytearray(), bytearray()
    assert process.stdout is not None
    assert process.stderr is not None
    ended_at: float | None = None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, output)
        selector.register(process.stderr, selectors.EVENT_READ, errors)
        while selector.get_map():
            ready = selector.select(_TICK)
            check()
            for key, _ in ready:
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.data is output:
                    output += chunk[: KEPT_OUTPUT - len(output)]
                else:
                    errors += chunk
                    del errors[:-KEPT_ERRORS]
                    _log(chunk)
            if process.poll() is not None:
                now = time.monotonic()
                ended_at = now if ended_at is None else ended_at
                if selector.get_map() and now - ended_at > _LEFT_BEHIND:
                    end_tree(None, since=since)
                    break
    while process.poll() is None:
        # it closed its outputs and goes on
        check()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_TICK)
    return bytes(output), bytes(errors)


def _log(chunk: bytes) -> None:
    with contextlib.suppress(OSError):
        os.write(2, chunk)


def _failure(status: int, errors: bytes) -> CommandFailed:
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        message, exit_status = f"ended by {name} (exit status {128 - status})", 128 - status
    else:
        message, exit_status = f"exit status {status}", status
    tail = errors.decode("utf-8", errors="replace").strip()
    return CommandFailed(f"{message}: {tail}" if tail else message, exit_status)
