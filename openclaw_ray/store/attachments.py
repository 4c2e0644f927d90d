"""Snapshots of attachments on disk: one folder per session, private, with a manifest (SPEC.md C, stage 4).

``<state_dir>/agents/<agentId>/attachments/<sessionId>/``, directories with mode 0700, files with 0600.

1. `write` puts all files and the manifest into a folder beside the last one and renames that: it is there as a whole or
   not at all, and twice is once.
2. The session id is minted by who asks, and is nobody's until the ask is granted: to commit is to do nothing, `discard`
   is the answer to a refusal.
3. The runtime's state dir is on one node, or shared. Where it is not (`holds_state`), a process makes a folder of its
   own for the turn, and discards it after.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from openclaw_ray.core.attachments import MANIFEST, relative_dir
from openclaw_ray.core.errors import AttachmentError
from openclaw_ray.store._transcript_file import check_id
from openclaw_ray.store.places import JOURNAL

__all__ = ["discard", "files_in", "holds_state", "own_folder", "snapshot_dir", "write"]


def snapshot_dir(state_dir: str | Path, agent_id: str, session_id: str) -> Path:
    """The folder of a session's attachments, whether there is one or not.

    Raises:
        ValueError: an id that is no plain file name.
    """
    check_id("agent id", agent_id)
    check_id("session id", session_id)
    return Path(state_dir) / relative_dir(agent_id, session_id)


def holds_state(state_dir: str | Path) -> bool:
    """Whether the runtime's state is on a disk that this process sees (3)."""
    return os.path.exists(os.path.join(state_dir, JOURNAL))


def own_folder() -> Path:
    """A folder for the attachments of one turn, on a node without the state dir (3).

    Raises:
        AttachmentError: it cannot be made.
    """
    try:
        return Path(tempfile.mkdtemp(prefix="openclaw-attachments-")) / "files"
    except OSError as error:
        raise AttachmentError(tempfile.gettempdir(), error.strerror or str(error)) from error


def write(folder: Path, files: Sequence[tuple[str, bytes]]) -> None:
    """Write the files, whose names were checked, and their manifest (1).

    Raises:
        AttachmentError: a full disk, a folder that is not to be written to.
    """
    if folder.is_dir():
        return
    part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        _make(folder.parent)
        os.mkdir(part, 0o700)
        listed = []
        for name, content in files:
            _put(part / name, content)
            listed.append({"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()})
        manifest = {"count": len(listed), "totalBytes": sum(len(data) for _, data in files), "files": listed}
        _put(part / MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=1).encode())
        os.rename(part, folder)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        if folder.is_dir():  # another process was quicker with the same files
            return
        raise AttachmentError(str(folder), error.strerror or str(error)) from error


def files_in(folder: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Paths of those of the files that are there, in the order of ``names``."""
    return tuple(path for name in names if os.path.isfile(path := str(folder / name)))


def discard(folder: Path) -> None:
    """Remove a snapshot; harmless twice."""
    shutil.rmtree(folder, ignore_errors=True)


def _make(folder: Path) -> None:
    missing = [folder]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for one in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(one, 0o700)


def _put(path: Path, content: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
