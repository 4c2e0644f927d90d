"""Credential stores on disk: read whole or refused without a word of what is in them; written only to say how a profile
has done."""

from __future__ import annotations

import json
import os
import pickle
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from openclaw_ray.core.errors import CredentialStoreError
from openclaw_ray.store.credentials import STORE_FILE, change_usage, read_store, too_open

SECRET = "sk-do-not-show-0123456789"
STORE = {
    "version": 1,
    "profiles": {"anthropic:a": {"type": "api_key", "provider": "anthropic", "key": SECRET, "odd": [1]}},
    "unknown": {"kept": True},
    "usageStats": {"anthropic:b": {"lastUsed": 5, "odd": 1}},
}


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = tmp_path / "agent" / STORE_FILE
    path.parent.mkdir(mode=0o700)
    path.write_text(json.dumps(STORE))
    path.chmod(0o600)
    return str(path)


def used(entry: Any) -> dict[str, Any]:
    return {**entry, "lastUsed": entry.get("lastUsed", 0) + 1}


def test_a_store_that_is_not_there_is_empty(tmp_path: Path) -> None:
    read = read_store(str(tmp_path / "no" / STORE_FILE))
    assert (read.data, read.profiles, read.mode) == (None, {}, None)


@pytest.mark.parametrize(
    "text",
    [f'{{"profiles": {{"a": "{SECRET}"', f'["{SECRET}"]', f'"{SECRET}"', f'{{"profiles": ["{SECRET}"]}}', f"{SECRET}"],
)
def test_what_is_wrong_with_a_store_is_told_with_its_path_and_without_its_content(store: str, text: str) -> None:
    Path(store).write_text(text)
    with pytest.raises(CredentialStoreError) as refused:
        read_store(store)
    error: BaseException | None = refused.value
    assert store in str(error)
    while error is not None:
        assert SECRET not in f"{error} {error.args} {vars(error)}"
        error = error.__cause__ or error.__context__
    assert SECRET.encode() not in pickle.dumps(refused.value)


def test_what_was_read_does_not_show_itself(store: str) -> None:
    assert SECRET not in repr(read_store(store))


def test_a_word_on_one_profile_changes_nothing_else(store: str) -> None:
    change_usage(store, "anthropic:a", "anthropic", used, good=True)
    assert json.loads(Path(store).read_text()) == {
        **STORE,
        "usageStats": {"anthropic:b": {"lastUsed": 5, "odd": 1}, "anthropic:a": {"lastUsed": 1}},
        "lastGood": {"anthropic": "anthropic:a"},
    }
    assert sorted(os.listdir(os.path.dirname(store)))[-1] == STORE_FILE


@pytest.mark.parametrize(("before", "after"), [(0o600, 0o600), (0o644, 0o600), (0o400, 0o400)])
def test_a_store_is_never_opened_wider(store: str, before: int, after: int) -> None:
    os.chmod(store, before)
    change_usage(store, "anthropic:a", "anthropic", used, good=False)
    assert stat.S_IMODE(os.stat(store).st_mode) == after
    locks = [name for name in os.listdir(os.path.dirname(store)) if name.endswith(".lock")]
    assert all(stat.S_IMODE(os.stat(Path(store).with_name(name)).st_mode) == 0o600 for name in locks)


def test_words_at_the_same_time_are_all_kept(store: str) -> None:
    threads = [
        threading.Thread(target=change_usage, args=(store, "anthropic:a", "anthropic", used), kwargs={"good": False})
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert json.loads(Path(store).read_text())["usageStats"]["anthropic:a"] == {"lastUsed": 8}


def test_what_somebody_else_writes_meanwhile_is_not_lost(store: str) -> None:
    rotated = {**STORE, "profiles": {"anthropic:a": {"type": "api_key", "provider": "anthropic", "key": "new"}}}
    calls: list[None] = []

    def change(entry: Any) -> dict[str, Any]:
        calls.append(None)
        if len(calls) == 1:
            draft = Path(f"{store}.theirs")
            draft.write_text(json.dumps(rotated))
            draft.replace(store)
        return used(entry)

    change_usage(store, "anthropic:a", "anthropic", change, good=False)
    written = json.loads(Path(store).read_text())
    assert written["profiles"] == rotated["profiles"]
    assert written["usageStats"]["anthropic:a"] == {"lastUsed": 1}
    assert len(calls) == 2


def test_a_store_behind_a_link_stays_behind_it(store: str, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(store)
    change_usage(str(link), "anthropic:a", "anthropic", used, good=False)
    assert link.is_symlink()
    assert "anthropic:a" in json.loads(Path(store).read_text())["usageStats"]


def test_files_and_folders_that_others_can_read_are_found(store: str) -> None:
    assert too_open(store) == ()
    os.chmod(store, 0o640)
    os.chmod(os.path.dirname(store), 0o755)
    assert too_open(store) == ((store, 0o640, 0o600), (os.path.dirname(store), 0o755, 0o700))
    assert too_open(f"{store}.none") == ()
