"""Attachments in a process: the snapshot of who asks, and the files of who was asked for (SPEC.md C, stage 4).

1. Who asks packs the files with the input, as a private copy, and writes the snapshot if it sees the runtime's state
   dir. A refusal has it removed; there is nothing to commit.
2. A turn finds the snapshot, or makes it of what came with its input: then the state dir holds it, or, on a node that
   does not see that, a folder of the turn's own, which goes with the turn.
3. What came as an object reference is read and judged here.

A session process that never sees an attachment does not load the store for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openclaw_ray.core.attachments import AttachedFile, AttachmentLimits, over_limits
from openclaw_ray.core.errors import AttachmentError
from openclaw_ray.core.protocol.messages import Spec

__all__ = ["Placed", "place_files", "take_snapshot"]


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a turn's attachments are; ``own`` is to be discarded after it."""

    paths: tuple[str, ...] = ()
    own: Path | None = None

    def leave(self) -> None:
        """The turn is over."""
        if self.own is not None:
            from openclaw_ray.store.attachments import discard

            discard(self.own.parent)


def take_snapshot(state_dir: str, agent_id: str, session_id: str, files: Sequence[AttachedFile]) -> Path | None:
    """Write the files of a child that is to be asked for (1); the folder, `None` if it was left to the child.

    Raises:
        AttachmentError: the disk refuses.
    """
    from openclaw_ray.store.attachments import holds_state, snapshot_dir, write

    if not state_dir or not holds_state(state_dir) or not all(isinstance(file.content, bytes) for file in files):
        return None
    folder = snapshot_dir(state_dir, agent_id, session_id)
    write(folder, [(file.name, file.content) for file in files])
    return folder


def place_files(state_dir: str, spec: Spec, carried: Any) -> Placed:
    """Have the attachments of a turn on this node's disk (2).

    Args:
        carried: the files that came with the input, or a reference to them; empty if nothing did.

    Raises:
        AttachmentError: the disk refuses, or what is behind a reference is too large.
    """
    from openclaw_ray.store.attachments import files_in, holds_state, own_folder, snapshot_dir, write

    told = spec.facts.attachments if spec.facts is not None else None
    names = [file.name for file in told.files] if told is not None else []
    folder = snapshot_dir(state_dir, spec.agent_id, spec.session_id)
    if folder.is_dir() or carried == ():
        return Placed(files_in(folder, names))
    files: Sequence[AttachedFile] = carried if isinstance(carried, tuple) else _got(carried)
    contents = [(file.name, _read(file, folder)) for file in files]
    refusal = over_limits([len(content) for _, content in contents], spec.attachments or AttachmentLimits())
    if refusal is not None:
        raise AttachmentError(str(folder), refusal.error)
    own = None if holds_state(state_dir) else own_folder()
    write(own or folder, contents)
    return Placed(files_in(own or folder, names), own)


def _read(file: AttachedFile, folder: Path) -> bytes:
    """The bytes of a file (3)."""
    content = file.content
    if not isinstance(content, bytes):
        content = _got(content)
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content)
    what = type(content).__name__
    raise AttachmentError(str(folder), f"the reference given as {file.name!r} is of {what}, not of text or bytes")


def _got(reference: Any) -> Any:
    import ray

    return ray.get(reference)
