"""Where runtimes keep their state, and which ones there are (DESIGN.md 7, "Names and places").

A name stands for ``~/.openclaw/ray/<name>`` (``$OPENCLAW_STATE_DIR/ray/<name>`` if that is set), which stays.
Without a name a runtime gets one of its own, ``run-<8 hex>``, and a place in Ray's session directory, which
goes with it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from openclaw_ray.core.errors import RuntimeNotFound, StateDirError
from openclaw_ray.store.statelock import Owner, owner_of

__all__ = [
    "JOURNAL",
    "Place",
    "address_of",
    "base_dir",
    "check_name",
    "list_runtimes",
    "new_name",
    "newest_state_dir",
    "state_dir_for",
]

JOURNAL = "registry.sqlite"
"""File name of the journal in a state dir."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PROBE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Place:
    """A runtime's state on disk.

    Attributes:
        name: of the runtime.
        path: its state dir.
        changed: seconds since the epoch of the journal's last write.
        owner: the process that has it open now, as far as can be told from this host; else `None`.
    """

    name: str
    path: Path
    changed: float
    owner: Owner | None


def new_name() -> str:
    """A name for a runtime that was given none."""
    return f"run-{token_hex(4)}"


def check_name(name: str) -> str:
    """``name``, if it can name a runtime: it becomes a folder and a part of its actors' names.

    Raises:
        ValueError: it cannot.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"runtime name {name!r}: letters, digits and . _ - only, a letter or digit first, 64 at most"
        )
    return name


def base_dir() -> Path:
    """The folder of all named runtimes.

    Raises:
        StateDirError: there is no home directory to keep it in.
    """
    if root := os.environ.get("OPENCLAW_STATE_DIR"):
        return _absolute(root) / "ray"
    return _absolute("~/.openclaw") / "ray"


def state_dir_for(
    name: str | None, explicit: str | Path | None = None, ray_session_dir: str | Path | None = None
) -> Path:
    """The state dir of a runtime, made if it is not there (mode 0700) and known to be writable.

    Args:
        name: of the runtime; without one the folder's name, ``run-<8 hex>``, becomes it.
        explicit: a state dir that the user chose; goes before everything else.
        ray_session_dir: Ray's directory for this session; needed if neither of the others is given.

    Raises:
        StateDirError: it cannot be made or written to; the text says why.
        ValueError: ``name`` cannot name a runtime, or there is nothing to go by.
    """
    if name is not None:
        check_name(name)
    if explicit is not None:
        place = _absolute(explicit)
    elif name is not None:
        place = base_dir() / name
    elif ray_session_dir is not None:
        place = _absolute(ray_session_dir) / "openclaw_ray" / new_name()
    else:
        raise ValueError("a runtime without a name and a state dir needs Ray's session directory")
    _make(place)
    _probe(place)
    return place


def list_runtimes(*, ray_root: str | Path | None = None) -> list[Place]:
    """All runtimes with a journal on this host, the one written to last first.

    Those are the named ones, and those in the directories of Ray's sessions. What may not be looked into
    (other users' sessions) is left out.

    Args:
        ray_root: the folder of Ray's sessions; ``$RAY_TMPDIR/ray`` or ``/tmp/ray`` by default.
    """
    root = Path(ray_root) if ray_root is not None else Path(os.environ.get("RAY_TMPDIR") or "/tmp") / "ray"
    folders = _inside(base_dir())
    for session in _inside(root):
        # session_latest is another name for one of them
        if session.name.startswith("session_") and not session.is_symlink():
            folders += _inside(session / "openclaw_ray")
    places = [place for folder in folders if (place := _place(folder))]
    return sorted(places, key=lambda place: (-place.changed, place.name))


def address_of(name: str, *, ray_root: str | Path | None = None) -> str:
    """The address of the Ray that this machine's runtime of this name is in; empty if there is none, or it is not
    known. Several Rays on one machine are usual: each start without ``RAY_ADDRESS`` brings up its own."""
    for place in list_runtimes(ray_root=ray_root):
        if place.name == name and place.owner is not None and place.owner.address:
            return place.owner.address
    return ""


def newest_state_dir(name: str | None = None, *, ray_root: str | Path | None = None) -> Path:
    """The state dir of a runtime on this host, alive or not: of this name, or the one written to last.

    Raises:
        RuntimeNotFound: there is none; the text names those there are.
    """
    places = list_runtimes(ray_root=ray_root)
    for place in places:
        if name in (None, place.name):
            return place.path
    raise RuntimeNotFound(name or "(any)", (), tuple(place.name for place in places))


def _absolute(path: str | Path) -> Path:
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError as error:
        raise StateDirError(str(path), f"no home directory: {error}") from error


def _make(place: Path) -> None:
    """``place`` and what is missing above it; `Path.mkdir` would give the mode to the last one only."""
    missing = [place]
    try:
        while not missing[-1].parent.exists():
            missing.append(missing[-1].parent)
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError as error:
        raise StateDirError(str(place), f"{error.filename} is not a directory") from error
    except OSError as error:
        raise StateDirError(str(place), f"cannot be made: {error.strerror} ({error.filename})") from error


def _probe(place: Path) -> None:
    """Write a page and remove it: permission bits say nothing of read-only or full disks."""
    probe = place / f".probe-{token_hex(4)}"
    try:
        try:
            fd = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                if os.write(fd, bytes(_PROBE_BYTES)) < _PROBE_BYTES:
                    raise StateDirError(str(place), "the disk is full")
            finally:
                os.close(fd)
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        raise StateDirError(str(place), f"cannot be written to: {error.strerror}") from error


def _inside(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _place(folder: Path) -> Place | None:
    changed = 0.0
    for name in (JOURNAL, f"{JOURNAL}-wal"):
        try:
            changed = max(changed, (folder / name).stat().st_mtime)
        except OSError:
            if name == JOURNAL:
                return None
    return Place(folder.name, folder, changed, owner_of(folder))
