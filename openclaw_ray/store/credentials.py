"""Credential stores on disk: OpenClaw's ``auth-profiles.json`` of an agent's folder (SPEC.md A5, I1).

1. A store is read each time that it is needed, and what was read is not kept: a rotated key is seen at once, and no
   secret stays in memory longer than the answer takes.
2. What is wrong with a file is told with its path, never with what is in it.
3. Nothing here makes a store. Only usage statistics are written: under a lock, into a file of mode 0600 or less that
   takes the place of the old one; what others wrote meanwhile, and fields that we do not know, stay.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from filelock import FileLock, Timeout

from openclaw_ray.core.auth import env_refs
from openclaw_ray.core.errors import CredentialStoreError

__all__ = ["STORE_FILE", "StoreRead", "change_usage", "read_store", "referred_env", "too_open"]

STORE_FILE: Final = "auth-profiles.json"
"""Name of a store in an agent's folder."""
_LOCK: Final = ".auth-profiles.openclaw-ray.lock"
"""Not ``auth-profiles.json.lock``, which is OpenClaw's: one that lies there would keep it from its own store."""
_LOCK_WITHIN: Final = 2.0
_LARGEST: Final = 4 << 20
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class StoreRead:
    """A store as it was just now.

    Attributes:
        path: the file.
        data: what is in it, secrets included; `None` if there is no file.
        mode: its permission bits; `None` if there is no file.
        stamp: changes when the file does.
    """

    path: str
    data: Mapping[str, Any] | None = field(default=None, repr=False)
    mode: int | None = None
    stamp: tuple[int, int, int] = (0, 0, 0)

    @property
    def profiles(self) -> Mapping[str, Any]:
        """What is in it, an empty store if there is none."""
        return self.data if self.data is not None else {}


def read_store(path: str) -> StoreRead:
    """Read a store; one that is not there is an empty one.

    Raises:
        CredentialStoreError: it is there and cannot be read, or is not what it should be.
    """
    try:
        with open(path, "rb") as file:
            about = os.fstat(file.fileno())
            raw = file.read(_LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return StoreRead(path)
    except OSError as error:
        raise CredentialStoreError(path, f"cannot be read: {error.strerror}; correct its owner or mode") from None
    data = _parsed(path, raw)
    return StoreRead(path, data, about.st_mode & 0o7777, (about.st_mtime_ns, about.st_ino, about.st_size))


def _parsed(path: str, raw: bytes) -> Mapping[str, Any]:
    if len(raw) > _LARGEST:
        raise CredentialStoreError(path, f"has more than {_LARGEST >> 20} MB")
    where = ""
    try:
        found = json.loads(raw)
    except json.JSONDecodeError as error:
        where = f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    except (UnicodeDecodeError, RecursionError) as error:
        where = f"is not JSON: {type(error).__name__}"
    if where:  # not within the handler: the parser's own error holds the whole text
        raise CredentialStoreError(path, f"{where}; restore it, or log in again with OpenClaw")
    if not isinstance(found, dict):
        raise CredentialStoreError(path, f"must be an object, not {type(found).__name__}")
    for name in ("profiles", "order", "usageStats", "lastGood"):
        if not isinstance(found.get(name) or {}, dict):
            raise CredentialStoreError(path, f"{name} must be an object, not {type(found[name]).__name__}")
    return found


def change_usage(
    path: str, profile: str, provider: str, change: Callable[[Mapping[str, Any]], dict[str, Any]], *, good: bool
) -> None:
    """Write what has become of one profile's statistics (3).

    Args:
        change: makes the new entry of the old one.
        good: it is the provider's last good one from now on.

    Raises:
        CredentialStoreError: it cannot be written; it is as it was.
    """
    real = os.path.realpath(path)
    try:
        with FileLock(Path(real).with_name(_LOCK), timeout=_LOCK_WITHIN, mode=0o600):
            for _ in range(_TRIES):
                if _replaced(path, real, profile, provider, change, good):
                    return
    except Timeout:
        raise CredentialStoreError(path, f"is locked by another process for more than {_LOCK_WITHIN:g} s") from None
    except OSError as error:
        raise CredentialStoreError(path, f"usage cannot be written: {error.strerror}") from None
    raise CredentialStoreError(path, "is written by others all the time")


def _replaced(
    path: str,
    real: str,
    profile: str,
    provider: str,
    change: Callable[[Mapping[str, Any]], dict[str, Any]],
    good: bool,
) -> bool:
    """Put a changed copy in the file's place; False if somebody else has changed it meanwhile."""
    read = read_store(path)
    if read.data is None or read.mode is None:
        return True  # there is nothing that it could be said of any more
    stats = dict(read.data.get("usageStats") or {})
    entry = stats.get(profile)
    stats[profile] = change(entry if isinstance(entry, Mapping) else {})
    data = {**read.data, "usageStats": stats}
    if good:
        data["lastGood"] = {**(read.data.get("lastGood") or {}), provider: profile}
    draft = f"{real}.{token_hex(4)}.tmp"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(json.dumps(data, indent=2, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
            file.flush()
            os.fsync(fd)
            os.fchmod(fd, read.mode & 0o600)
        about = os.stat(real)
        if (about.st_mtime_ns, about.st_ino, about.st_size) != read.stamp:
            return False
        os.replace(draft, real)
        return True
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)


def referred_env(paths: Iterable[str]) -> tuple[str, ...]:
    """Names of the environment that these stores refer to, sorted. One that cannot be read says nothing here."""
    found: set[str] = set()
    for path in paths:
        with contextlib.suppress(CredentialStoreError):
            found |= set(env_refs(read_store(path).profiles))
    return tuple(sorted(found))


def too_open(path: str) -> tuple[tuple[str, int, int], ...]:
    """(path, mode, mode that it should have) of a store and its folder, where others can get at them; nothing if there
    is no store."""
    found = []
    if not os.path.exists(path):
        return ()
    for place, fitting in ((path, 0o600), (os.path.dirname(path), 0o700)):
        try:
            mode = os.stat(place).st_mode & 0o777
        except OSError:
            continue
        if mode & ~fitting & 0o077:
            found.append((place, mode, fitting))
    return tuple(found)
