"""The worker program that a raylet starts: has the parent of workers fork one, or becomes Ray's own (see the package).

It is run as a file, once for each worker, and imports next to nothing: its own start is what is left to pay for.
"""

import _socket
import marshal
import os
import struct
import sys

_WARM_WITHIN = 60.0
"""Seconds in which the parent is to be ready: it imports while others want the processor, too."""
_RAYLET = "--raylet-name="


def _main() -> None:
    try:
        if _handed_over():
            os._exit(0)
    except Exception as error:  # noqa: BLE001 - whatever it is, the worker is to start
        print(f"openclaw-ray: this worker starts by itself: {error!r}", file=sys.stderr, flush=True)
    _become_rays_own()


def _handed_over() -> bool:
    raylet = next(word for word in sys.argv if word.startswith(_RAYLET)).removeprefix(_RAYLET)
    path = os.path.join(os.path.dirname(raylet), "forks")
    _start_parent(path)
    wire = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    wire.settimeout(_WARM_WITHIN)
    wire.connect(path)
    if wire.recv(1) != b"r":  # ready
        return False
    wire.settimeout(None)  # from here on the parent answers, or the connection ends
    body = marshal.dumps(
        {
            "argv": sys.argv[1:],
            "environment": dict(os.environ),
            "folder": os.getcwd(),
            "niceness": os.getpriority(os.PRIO_PROCESS, 0),
            "oom": _oom_score(),
            "session": os.getsid(0) == os.getpid(),
            "group": os.getpgid(0) == os.getpid(),
        }
    )
    files = struct.pack("3i", 0, 1, 2)
    wire.sendmsg([struct.pack("!I", len(body))], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
    wire.sendall(body)
    return wire.recv(1) == b"f"  # forked


def _start_parent(path: str) -> None:
    """Who can bind the socket starts the parent, with the socket for it to listen on; nobody else does (2)."""
    listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        listener.bind(path)
    except OSError:  # it is there
        listener.close()
        return
    listener.listen(1024)
    if os.fork() == 0:
        try:
            os.setsid()
            fd = os.dup(listener.fileno())
            os.set_inheritable(fd, True)
            parent = os.path.join(os.path.dirname(os.path.abspath(__file__)), "parent.py")
            # Ray writes a worker's title over its arguments: a fork has the room that its parent was given
            os.execv(sys.executable, [sys.executable, parent, str(fd), *sys.argv[1:]])
        finally:
            os._exit(1)
    listener.close()


def _oom_score() -> str:
    with open("/proc/self/oom_score_adj") as score:
        return score.read().strip()


def _become_rays_own() -> None:
    from importlib.util import find_spec

    spec = find_spec("ray")
    assert spec is not None
    assert spec.origin is not None
    worker = os.path.join(os.path.dirname(spec.origin), "_private", "workers", "default_worker.py")
    os.execv(sys.executable, [sys.executable, worker, *sys.argv[1:]])


if __name__ == "__main__":
    _main()
