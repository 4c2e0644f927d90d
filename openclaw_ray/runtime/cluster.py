"""Being a good guest on Ray: use the one that is there, start one only if there is none, leave it as it was found
(DESIGN.md 5)."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from openclaw_ray.core.errors import RayClientUnsupported, RayUnreachable
from openclaw_ray.forking import forked_workers
from openclaw_ray.runtime.ray_reaper import RayReaper

__all__ = ["Guest", "attach", "has_auth_token", "in_ray_worker"]

_REACH_WITHIN = 5.0
_AT_ONCE, _STARTS = "RAY_worker_maximum_startup_concurrency", 16


@dataclass(frozen=True, slots=True)
class Guest:
    """How this process came to Ray. ``own`` is True if `attach` called ``ray.init`` and `leave` is to undo it."""

    own: bool
    address: str
    reaper: RayReaper | None = None
    left: threading.Event = field(default_factory=threading.Event)

    def leave(self) -> None:
        """Shut down, or disconnect from, a Ray that `attach` started or connected to."""
        import ray

        if self.own and ray.is_initialized():
            ray.shutdown()
        if self.reaper is not None:
            self.reaper.dismiss()
        self.left.set()


def attach(*, start: bool = True, near: str = "") -> Guest:
    """Have Ray initialised: the host's if it is, else by ``RAY_ADDRESS``, else an embedded local one.

    Args:
        start: without it no Ray is started; the one that runs on this machine is looked for.
        near: the address of a Ray to go to if ``RAY_ADDRESS`` names none.

    Raises:
        RayClientUnsupported: ``RAY_ADDRESS`` is a ``ray://`` address.
        RayUnreachable: there is no Ray at the address, or it could not be started.
    """
    import ray
    from ray.exceptions import RayError

    if ray.is_initialized():
        if _is_ray_client():
            raise RayClientUnsupported("ray://")
        return Guest(False, _gcs_address())
    address = os.environ.get("RAY_ADDRESS", "") or near or ("" if start else "auto")
    if address.startswith("ray://"):
        raise RayClientUnsupported(address)
    if address == "auto":
        address = _latest()
    _probe(address)
    left = threading.Event()
    try:
        if address or threading.current_thread() is threading.main_thread():
            _init(address)
        else:
            _init_in_a_thread_that_stays(left)
    except (AssertionError, ConnectionError, RuntimeError, ValueError, OSError, RayError) as error:
        raise RayUnreachable(address or "local", f"{error}{_token_hint()}") from error
    return Guest(True, _gcs_address(), None if address else RayReaper(_session_dir()), left)


def _init(address: str) -> None:
    import ray

    with nullcontext() if address else forked_workers(), nullcontext() if address else _many_workers():
        ray.init(
            address=address or "local",
            include_dashboard=None if address else False,
            logging_level=logging.ERROR,
            log_to_driver=True,
        )


@contextmanager
def _many_workers() -> Iterator[None]:
    """The raylet of a local Ray warns of four times as many workers as may start at once; sessions are to be many
    (DESIGN.md 15). How many may is said in the environment that it is started with, if the user does not."""
    if _AT_ONCE in os.environ:
        yield
        return
    os.environ[_AT_ONCE] = str(max(_STARTS, os.cpu_count() or 1))
    try:
        yield
    finally:
        del os.environ[_AT_ONCE]


def _init_in_a_thread_that_stays(left: threading.Event) -> None:
    """Start a local Ray for a thread that may end sooner: the kernel ends Ray's processes with the very thread that
    started them (``PR_SET_PDEATHSIG``), not with its process."""
    begun: Future[None] = Future()

    def stay() -> None:
        try:
            _init("")
        except BaseException as error:  # noqa: BLE001 - it belongs to the thread that waits
            begun.set_exception(error)
            return
        begun.set_result(None)
        left.wait()

    threading.Thread(target=stay, name="openclaw-ray-host", daemon=True).start()
    begun.result()


_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""What an HTTP/2 client says first: its preface and empty settings."""
_SETTINGS = 4


def _latest() -> str:
    """The address that Ray takes for ``auto``: that of a cluster of before may still be noted on this machine, and is
    to be probed as any other."""
    try:
        from ray._private.services import get_ray_address_from_environment

        return str(get_ray_address_from_environment("auto", None))
    except ConnectionError as error:
        raise RayUnreachable("auto", str(error)) from error
    except (ImportError, TypeError):  # another version of Ray: it finds its way itself, and may take longer
        return "auto"


def _probe(address: str) -> None:
    """Fail soon if nobody listens, or somebody who is no Ray, or one that does not let us in: Ray itself tries for up
    to a minute.

    Raises:
        RayUnreachable: with the reason.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        return  # "", "auto" and "local" answer at once
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH_WITHIN) as wire:
            if os.environ.get("RAY_USE_TLS", "0").lower() not in ("1", "true"):
                wire.sendall(_PREFACE)
                first = wire.recv(9)
                if len(first) < 4 or first[3] != _SETTINGS:
                    raise OSError("what listens there is no Ray")
    except TimeoutError as error:
        raise RayUnreachable(address, f"no answer within {_REACH_WITHIN:g} s") from error
    except (OSError, OverflowError) as error:
        raise RayUnreachable(address, str(error)) from error
    _knock(address)


def _knock(address: str) -> None:
    """See that the cluster takes our token, or that it wants none."""
    from ray import _raylet
    from ray.exceptions import RayError

    _as_ray_itself_does()
    if _token_hint() and not has_auth_token(os.environ):
        # Ray's own client ends the whole process at this, from native code
        raise RayUnreachable(address, f"there is no authentication token here{_token_hint()}")
    knock = getattr(_raylet, "GcsClient", None)
    if knock is None:  # Ray's own; without it (another version) Ray itself is asked, and takes longer
        return
    try:
        knock(address=address)
    except RayError as error:
        raise RayUnreachable(address, " ".join(str(error).split())[:500] + _token_hint()) from error


def in_ray_worker() -> bool:
    """True in a process that Ray runs tasks or actors in: it may end as soon as they have."""
    import ray

    return bool(ray.get_runtime_context().worker.mode == ray.WORKER_MODE)


def _as_ray_itself_does() -> None:
    """Where no mode is set, ``ray.init`` uses the token that a local Ray has left, and knocking must, too."""
    try:
        from ray._private.authentication.authentication_token_setup import maybe_enable_token_auth_if_token_available
    except ImportError:  # a Ray without this habit
        return
    maybe_enable_token_auth_if_token_available(warn_if_disabled=False)


def has_auth_token(env: Mapping[str, str]) -> bool:
    """Whether a token is in one of the places that Ray's documentation names."""
    if env.get("RAY_AUTH_TOKEN"):
        return True
    path = env.get("RAY_AUTH_TOKEN_PATH")
    return (Path(path) if path else Path.home() / ".ray" / "auth_token").is_file()


def _token_hint() -> str:
    """With token authentication Ray tells of a token that is missing or wrong in several ways, some of them unclear."""
    if os.environ.get("RAY_AUTH_MODE", "").lower() != "token":
        return ""
    return (
        " (RAY_AUTH_MODE=token: this process needs the cluster's token, in RAY_AUTH_TOKEN, "
        "in the file RAY_AUTH_TOKEN_PATH, or in ~/.ray/auth_token)"
    )


def _is_ray_client() -> bool:
    from ray._private.client_mode_hook import is_client_mode_enabled
    from ray.util.client import ray as client

    return bool(is_client_mode_enabled and client.is_connected())  # type: ignore[no-untyped-call]


def _session_dir() -> str:
    import ray

    node = ray._private.worker.global_worker.node
    assert node is not None  # this process has just started it
    return os.path.realpath(str(node.get_session_dir_path()))


def _gcs_address() -> str:
    import ray

    return str(ray.get_runtime_context().gcs_address)
