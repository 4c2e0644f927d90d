"""The parent of a node's workers: imports what they need, forks one for each launcher, and ends with the raylet.

Run as a file by `launch`, with the number of the socket to listen on, and with a worker's arguments for their length.
"""

from __future__ import annotations

import contextlib
import gc
import marshal
import os
import runpy
import select
import signal
import socket
import struct
import sys
import types
from importlib import import_module
from pathlib import Path
from typing import Any

_SEND_WITHIN = 5.0
"""Seconds in which a launcher is to say what it wants: it holds up the others."""
_WORKERS_OWN = frozenset({"RAY_JOB_ID", "RAY_RAYLET_PID", "SHLVL", "_"})
"""Variables that may differ from one worker to the next: nothing of them is read before a worker begins."""
_LATER = ("ray._private.memory_monitor", "openclaw_ray.actors.session_actor")
"""What a worker imports later, at the latest for its first session."""


def _main() -> None:
    listener = socket.socket(fileno=int(sys.argv[1]))
    raylet = os.pidfd_open(int(os.environ["RAY_RAYLET_PID"]))
    program = _import()
    if not _may_fork():
        return  # the socket closes with this process, and each launcher helps itself
    request, wire = _serve(listener, raylet)
    _become(request, wire, program)


def _import() -> tuple[str, types.CodeType]:
    """Import what Ray's worker program imports, and what a session needs; gives that program."""
    import ray

    path = str(Path(ray.__file__).parent / "_private" / "workers" / "default_worker.py")
    sys.path[0] = str(Path(path).parent)  # as a worker's own
    runpy.run_path(path, run_name="openclaw_ray.forking.preload")  # its imports alone
    for name in _LATER:
        with contextlib.suppress(ImportError):
            import_module(name)
    return path, compile(Path(path).read_bytes(), path, "exec")


def _may_fork() -> bool:
    """Whether two forks would be two workers (3): one thread, and ids that do not repeat."""
    from ray._raylet import WorkerID

    if len(os.listdir("/proc/self/task")) != 1:
        return False
    ids = set()
    for _ in range(2):
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(writing, WorkerID.from_random().binary())
            os._exit(0)
        os.close(writing)
        ids.add(os.read(reading, 64))
        os.close(reading)
        os.waitpid(pid, 0)
    return len(ids) == 2 and b"" not in ids


def _serve(listener: socket.socket, raylet: int) -> tuple[dict[str, Any], socket.socket]:
    """Fork a worker for each launcher, until the raylet has ended; returns in the forks alone."""
    from openclaw_ray.actors.raylets import name_of_parent

    own = _name(name_of_parent(int(os.environ["RAY_RAYLET_PID"])))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks are reaped by the system
    gc.collect()
    gc.freeze()  # a collection would touch, and so copy, the memory that is shared
    while True:
        ready = select.select([listener.fileno(), raylet], [], [])[0]
        if raylet in ready:
            os._exit(0)
        wire, _ = listener.accept()
        with wire:
            request = _asked(wire)
            if request is None:
                continue
            if os.fork() == 0:
                _name(own)
                listener.close()
                os.close(raylet)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return request, socket.socket(fileno=wire.detach())
            for fd in request["files"]:
                os.close(fd)


def _asked(wire: socket.socket) -> dict[str, Any] | None:
    """What a launcher wants, if it is a worker that a fork can be (5)."""
    files: list[int] = []
    try:
        wire.settimeout(_SEND_WITHIN)
        wire.sendall(b"r")
        size, files, _, _ = socket.recv_fds(wire, 4, 3)
        wanted, body = struct.unpack("!I", size)[0], b""
        while len(body) < wanted:
            piece = wire.recv(wanted - len(body))
            if not piece:
                raise EOFError
            body += piece
        request: dict[str, Any] = marshal.loads(body)
        if len(files) == 3 and _same(request["environment"]):
            return {**request, "files": files}
    except (OSError, EOFError, ValueError, TypeError, KeyError, struct.error):
        pass
    for fd in files:
        os.close(fd)
    return None


def _same(environment: dict[str, str]) -> bool:
    """Whether what was imported here is what a worker with this environment would have imported."""
    theirs, own = ({k: v for k, v in each.items() if k not in _WORKERS_OWN} for each in (environment, os.environ))
    return theirs == own


def _become(request: dict[str, Any], wire: socket.socket, program: tuple[str, types.CodeType]) -> None:
    """Be the worker that the raylet has started (4)."""
    if request["session"]:
        os.setsid()
    elif request["group"]:
        os.setpgid(0, 0)
    os.setpriority(os.PRIO_PROCESS, 0, request["niceness"])
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(request["oom"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for number, fd in enumerate(request["files"]):
        os.dup2(fd, number)
        os.close(fd)
    wire.settimeout(None)
    try:
        wire.sendall(b"f")
    except OSError:  # the launcher was ended, and with it the worker
        os._exit(0)
    wire.close()
    path, code = program
    sys.argv = [path, *request["argv"]]
    main = types.ModuleType("__main__")
    main.__file__ = path
    sys.modules["__main__"] = main
    exec(code, main.__dict__)  # Ray's worker program, as it stands


def _name(new: bytes) -> bytes:
    """Have the system call this process so; gives what it was called."""
    own = Path("/proc/self/comm")
    before = own.read_bytes().strip()
    own.write_bytes(new)
    return before


if __name__ == "__main__":
    _main()
