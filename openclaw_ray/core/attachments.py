"""Attachments of a spawn: names, counts, sizes, and what is told of them (SPEC.md C, stage 4).

A file's content is a private copy, made before the child is asked for. The order in which a call is judged:

1. Attachments must be allowed at all (``forbidden`` if not); everything else that is wrong is an ``error``.
2. How many there are.
3. Each file: its name, then its size. Of base64 the size is worked out from the length, before anything is decoded.
4. The bytes of all together.

A program may give an object reference as content. It travels as it is; its size is judged where it is written to disk.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from openclaw_ray.core.admission import Refusal
from openclaw_ray.core.compact import compact
from openclaw_ray.core.protocol.parts import Payload
from openclaw_ray.core.results import camel_dict

__all__ = [
    "MANIFEST",
    "ROOT_PATH",
    "Attached",
    "AttachedFile",
    "AttachmentLimits",
    "FileFacts",
    "WithFiles",
    "attached",
    "bad_name",
    "mask_contents",
    "over_limits",
    "read_files",
    "relative_dir",
]

ROOT_PATH: Final = "tools.sessions_spawn.attachments"
"""Where attachments are configured."""
MANIFEST: Final = ".manifest.json"
"""The file beside the attachments that lists them."""
_NAME_BYTES: Final = 255  # what file systems take
_BAD: Final = frozenset('/\\<>')
_SHOWN: Final = 64


@dataclass(frozen=True, slots=True)
class AttachmentLimits:
    """``tools.sessions_spawn.attachments`` where it is enabled.

    Attributes:
        max_total_bytes, max_files, max_file_bytes: of one spawn, of one spawn, of one file.
        retain: the files of a kept session stay when it is archived.
    """

    max_total_bytes: int = 5_242_880
    max_files: int = 50
    max_file_bytes: int = 1_048_576
    retain: bool = False


@compact
@dataclass(frozen=True, slots=True)
class AttachedFile:
    """One file on its way: ``content`` is bytes, or an object reference that is opaque here."""

    name: str
    content: Any


@compact
@dataclass(frozen=True, slots=True)
class FileFacts:
    """What is told of one file; ``bytes`` and ``sha256`` are `None` for a reference that nobody has read."""

    name: str
    bytes: int | None = None
    sha256: str | None = None


@compact
@dataclass(frozen=True, slots=True)
class Attached:
    """The receipt of all files of a child.

    Attributes:
        files: in the order of the call.
        rel_dir: their folder below the runtime's state dir.
        mount_path: where the caller would have them appear; a hint for prompts.
    """

    files: tuple[FileFacts, ...]
    rel_dir: str
    mount_path: str | None = None

    @property
    def total_bytes(self) -> int:
        """Bytes of all whose size is known."""
        return sum(file.bytes or 0 for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """``{count, totalBytes, files[{name, bytes, sha256}], relDir}``."""
        files = [{"name": file.name, "bytes": file.bytes, "sha256": file.sha256} for file in self.files]
        return camel_dict(
            {"count": len(files), "total_bytes": self.total_bytes, "files": files, "rel_dir": self.rel_dir}
        )


@compact
@dataclass(frozen=True, slots=True)
class WithFiles:
    """An input with attachments: what travels in its place.

    Attributes:
        input: the input's own payload, `None` if there is none.
        files: the files, or an opaque reference to them: who finds the snapshot need not have them.
    """

    input: Payload | None
    files: Any


def relative_dir(agent_id: str, session_id: str) -> str:
    """The folder of a session's attachments, below the state dir."""
    return f"agents/{agent_id}/attachments/{session_id}"


def read_files(
    given: Sequence[tuple[str, Any, str]], limits: AttachmentLimits | None
) -> tuple[AttachedFile, ...] | Refusal:
    """The files of one call, decoded, or the first rule that is broken.

    Args:
        given: (name, content, encoding) of each; the content is a text, bytes, or a reference.
        limits: `None` where attachments are not enabled.
    """
    if not given:
        return ()
    if limits is None:
        text = f"attachments are not enabled ({ROOT_PATH}.enabled); put their text into the task"
        return Refusal("forbidden", text, "attachments", path=f"{ROOT_PATH}.enabled")
    if len(given) > limits.max_files:
        return _over("attachments", len(given), limits.max_files, "maxFiles", "files")
    files: list[AttachedFile] = []
    names: set[str] = set()
    for name, content, encoding in given:
        if (why := bad_name(name)) is not None:
            return Refusal("error", f"attachment name {_quote(name)}: {why}", "attachments")
        if name in names:
            return Refusal("error", f"attachment name {_quote(name)}: two files have it", "attachments")
        names.add(name)
        read = _content(name, content, encoding, limits)
        if isinstance(read, Refusal):
            return read
        files.append(AttachedFile(name, read))
    return over_limits([len(f.content) for f in files if isinstance(f.content, bytes)], limits) or tuple(files)


def bad_name(name: str) -> str | None:
    """Why a name is none for a file, or `None` if it is one."""
    if not name.strip():
        return "it is empty"
    if name in (".", "..", MANIFEST):
        return "it is taken"
    for char in name:
        if char in _BAD or unicodedata.category(char) in ("Cc", "Zl", "Zp", "Cs"):
            return f"it has {char!a} in it; no / \\ < > and no control characters or line breaks"
    size = len(name.encode())
    return f"it has {size} bytes; the limit is {_NAME_BYTES}" if size > _NAME_BYTES else None


def over_limits(sizes: Sequence[int], limits: AttachmentLimits) -> Refusal | None:
    """Whether files of these sizes are too large, one of them or all together."""
    largest = max(sizes, default=0)
    if largest > limits.max_file_bytes:
        return _over("an attachment", largest, limits.max_file_bytes, "maxFileBytes", "bytes")
    if sum(sizes) > limits.max_total_bytes:
        return _over("attachments", sum(sizes), limits.max_total_bytes, "maxTotalBytes", "bytes")
    return None


def attached(files: Sequence[AttachedFile], rel_dir: str, mount_path: str | None = None) -> Attached:
    """The receipt of files that were read."""
    return Attached(tuple(_facts(file) for file in files), rel_dir, mount_path)


def mask_contents(given: Mapping[str, Any]) -> dict[str, Any]:
    """A call of ``sessions_spawn`` as a transcript may keep it: contents of files are left out."""
    items = given.get("attachments")
    if not isinstance(items, list | tuple):
        return dict(given)
    return {**given, "attachments": [_masked(item) for item in items]}


# --------------------------------------------------------------------------- inside


def _content(name: str, content: Any, encoding: str, limits: AttachmentLimits) -> Any:
    if isinstance(content, str) and encoding == "base64":
        return _decoded(name, content, limits)
    if isinstance(content, str):
        try:
            return content.encode()
        except UnicodeEncodeError:
            return Refusal("error", f"attachment {_quote(name)} is not valid Unicode", "attachments")
    return content


def _decoded(name: str, content: str, limits: AttachmentLimits) -> Any:
    packed = "".join(content.split())
    about = len(packed) // 4 * 3 - packed.count("=", -2)
    if about > limits.max_file_bytes:
        return _over(f"attachment {_quote(name)}", about, limits.max_file_bytes, "maxFileBytes", "bytes")
    if not packed:
        return Refusal("error", f"attachment {_quote(name)}: its base64 is empty", "attachments")
    try:
        return base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError) as error:
        return Refusal("error", f"attachment {_quote(name)} is not base64: {error}", "attachments")


def _over(what: str, value: int, maximum: int, key: str, unit: str) -> Refusal:
    path = f"{ROOT_PATH}.{key}"
    text = f"{what}: {value} {unit} of {maximum} at most ({path})"
    return Refusal("error", text, "attachments", value, maximum, path)


def _facts(file: AttachedFile) -> FileFacts:
    if not isinstance(file.content, bytes):
        return FileFacts(file.name)
    return FileFacts(file.name, len(file.content), hashlib.sha256(file.content).hexdigest())


def _masked(item: Any) -> Any:
    if not isinstance(item, Mapping) or "content" not in item:
        return item
    content = item["content"]
    size = f"{len(content)} {'characters' if isinstance(content, str) else 'bytes'}" if (
        isinstance(content, str | bytes)
    ) else "a reference"
    return {**item, "content": f"[{size} left out]"}


def _quote(text: str) -> str:
    return ascii(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
