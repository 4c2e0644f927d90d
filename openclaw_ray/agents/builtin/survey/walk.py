"""Which files of a folder are read: every regular file, each once, in a fixed order.

Symbolic links, hidden folders (``.git``) and ``__pycache__`` are passed over and counted; pipes, sockets,
devices and folders that cannot be listed are findings. Hidden *files* are read like any other.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field

from openclaw_ray.agents.builtin.survey.analyse import Finding

__all__ = ["Listing", "list_files"]


@dataclass(slots=True)
class Listing:
    """What a walk found. Paths are relative to the root, with ``/`` between their parts.

    Attributes:
        files: regular files.
        folders: direct subfolders that were not entered (of a walk that is not recursive).
        findings: what could not be read.
        skipped: how many of each kind were passed over on purpose.
    """

    files: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


def list_files(root: str, folder: str = "", *, recursive: bool = True) -> Listing:
    """List the files under ``root``/``folder``, sorted.

    Args:
        root: the top; reported paths are relative to it.
        folder: the part of it to list, ``""`` for all.
        recursive: whether subfolders are entered; if not, they are in ``folders``.
    """
    listing = Listing()
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(os.path.join(root, here)) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            _find(listing, "unreadable", here or ".", error.strerror or str(error))
            continue
        below = []
        for entry in entries:
            path = f"{here}/{entry.name}" if here else entry.name
            if _take(entry, path, listing):
                below.append(path)
        if recursive:
            waiting.extend(reversed(below))
        else:
            listing.folders.extend(below)
    return listing


def _take(entry: os.DirEntry[str], path: str, listing: Listing) -> bool:
    """File one entry away; True for a folder to go into."""
    try:
        if entry.is_symlink():
            listing.skipped["symbolic links"] += 1
        elif entry.is_dir(follow_symlinks=False):
            if entry.name == "__pycache__":
                listing.skipped["__pycache__ folders"] += 1
            elif entry.name.startswith("."):
                listing.skipped["hidden folders"] += 1
            else:
                return True
        elif entry.is_file(follow_symlinks=False):
            listing.files.append(path)
        else:
            _find(listing, "special", path, "pipe, socket or device; not read")
    except OSError as error:
        _find(listing, "unreadable", path, error.strerror or str(error))
    return False


def _find(listing: Listing, kind: str, path: str, detail: str) -> None:
    listing.findings.append({"kind": kind, "path": path, "detail": detail})
