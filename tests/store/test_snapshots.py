"""store.attachments: snapshots that are private, whole, and there once."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from openclaw_ray.core.errors import AttachmentError
from openclaw_ray.store.attachments import discard, files_in, holds_state, own_folder, snapshot_dir, write
from openclaw_ray.store.places import JOURNAL

FILES = [("a.txt", b"hello"), ("ä", b"")]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_snapshot_is_private_and_lists_itself(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        folder = snapshot_dir(tmp_path / "state", "w", "s1")
        write(folder, FILES)
    finally:
        os.umask(old)
    assert folder == tmp_path / "state" / "agents" / "w" / "attachments" / "s1"
    assert {mode(place) for place in (folder, *folder.parents[:4])} == {0o700}
    assert {mode(path) for path in folder.iterdir()} == {0o600}
    manifest = json.loads((folder / ".manifest.json").read_text())
    assert (manifest["count"], manifest["totalBytes"], len(manifest["files"][0]["sha256"])) == (2, 5, 64)
    assert files_in(folder, ["a.txt", "gone"]) == (str(folder / "a.txt"),)


def test_twice_is_once_and_discarded_twice_is_gone(tmp_path: Path) -> None:
    folder = snapshot_dir(tmp_path, "w", "s1")
    write(folder, FILES)
    write(folder, [("a.txt", b"other")])
    assert (folder / "a.txt").read_bytes() == b"hello"
    discard(folder)
    discard(folder)
    assert list(folder.parent.iterdir()) == []


def test_what_the_disk_refuses_leaves_nothing(tmp_path: Path) -> None:
    folder = snapshot_dir(tmp_path, "w", "s1")
    with pytest.raises(AttachmentError, match="attachments in"):
        write(folder, [("a", b"x"), ("n" * 300, b"y")])
    assert list(folder.parent.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(AttachmentError):
        write(snapshot_dir(tmp_path / "file", "w", "s1"), FILES)


def test_a_state_dir_is_known_by_its_journal(tmp_path: Path) -> None:
    assert not holds_state(tmp_path)
    (tmp_path / JOURNAL).touch()
    assert holds_state(tmp_path)


def test_a_folder_of_a_turns_own_is_private_and_goes_whole() -> None:
    folder = own_folder()
    write(folder, FILES)
    assert mode(folder.parent) == 0o700
    discard(folder.parent)
    assert not folder.parent.exists()
