"""Where runtimes live, and finding them again."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from openclaw_ray.core.errors import RuntimeNotFound, StateDirError
from openclaw_ray.store.places import (
    JOURNAL,
    base_dir,
    check_name,
    list_runtimes,
    newest_state_dir,
    state_dir_for,
)
from openclaw_ray.store.statelock import StateLock


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("OPENCLAW_STATE_DIR", raising=False)
    return folder


def journal_in(folder: Path, written: float) -> Path:
    folder.mkdir(parents=True)
    (folder / JOURNAL).touch()
    os.utime(folder / JOURNAL, (written, written))
    return folder


def test_a_name_stands_for_a_lasting_folder_below_home(home: Path) -> None:
    place = state_dir_for("nightly", None, "/unused")
    assert place == home / ".openclaw" / "ray" / "nightly"
    assert state_dir_for("nightly") == place


def test_every_folder_made_on_the_way_is_private(home: Path) -> None:
    place = state_dir_for("nightly")
    for folder in (place, place.parent, place.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(place.iterdir()) == []


def test_the_environment_moves_the_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path / "elsewhere"))
    assert base_dir() == tmp_path / "elsewhere" / "ray"
    assert state_dir_for("nightly") == tmp_path / "elsewhere" / "ray" / "nightly"


def test_without_a_name_each_runtime_gets_its_own_place_in_rays_session(tmp_path: Path) -> None:
    places = {state_dir_for(None, None, tmp_path / "session_1") for _ in range(3)}
    assert len(places) == 3
    for place in places:
        assert place.parent == tmp_path / "session_1" / "openclaw_ray"
        assert re.fullmatch(r"run-[0-9a-f]{8}", place.name)
    with pytest.raises(ValueError, match="session directory"):
        state_dir_for(None)


def test_an_explicit_state_dir_goes_before_all_and_may_begin_with_a_tilde(home: Path) -> None:
    assert state_dir_for("nightly", "~/mine", "/unused") == home / "mine"


@pytest.mark.parametrize("name", ["", ".", "..", "../up", "a/b", "-x", "_x", "a b", "ü", "x" * 65, "a\n"])
def test_a_name_that_cannot_be_a_folder_and_an_actor_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="letters, digits"):
        state_dir_for(name)


def test_usual_names_are_fine() -> None:
    for name in ("a", "nightly-2026.05.01", "Run_7", "x" * 64):
        assert check_name(name) == name


def test_a_file_in_the_way_is_an_error_that_names_it_and_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateDirError, match=r"file is not a directory; pass another state_dir="):
        state_dir_for(None, tmp_path / "file")
    with pytest.raises(StateDirError, match="Not a directory"):
        state_dir_for(None, tmp_path / "file" / "below")


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StateDirError, match="cannot be made"):
        state_dir_for(None, "/proc/openclaw_ray")

    def refuse(*args: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("openclaw_ray.store.places.os.write", refuse)
    with pytest.raises(StateDirError, match=r"cannot be written to: No space left on device"):
        state_dir_for(None, tmp_path / "full")
    assert list((tmp_path / "full").iterdir()) == []


def test_without_a_home_directory_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(self: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", homeless)
    with pytest.raises(StateDirError, match="no home directory"):
        state_dir_for("nightly")


# ------------------------------------------------------------------ finding them again


def test_runtimes_are_listed_the_one_written_to_last_first(home: Path, tmp_path: Path) -> None:
    root = tmp_path / "ray"
    old = journal_in(home / ".openclaw" / "ray" / "old", 100)
    run = journal_in(root / "session_1" / "openclaw_ray" / "run-11111111", 300)
    new = journal_in(home / ".openclaw" / "ray" / "new", 200)
    (root / "session_latest").symlink_to(root / "session_1")
    (root / "session_2").mkdir()
    (home / ".openclaw" / "ray" / "no journal in it").mkdir()
    found = list_runtimes(ray_root=root)
    assert [place.path for place in found] == [run, new, old]
    assert [place.changed for place in found] == [300, 200, 100]
    assert found[0].name == "run-11111111"
    assert newest_state_dir(ray_root=root) == run
    assert newest_state_dir("old", ray_root=root) == old


def test_the_log_counts_as_written_to(home: Path, tmp_path: Path) -> None:
    busy = journal_in(home / ".openclaw" / "ray" / "busy", 100)
    journal_in(home / ".openclaw" / "ray" / "idle", 200)
    (busy / f"{JOURNAL}-wal").touch()
    assert newest_state_dir(ray_root=tmp_path) == busy


def test_rays_own_folder_is_found_by_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    run = journal_in(tmp_path / "ray" / "session_1" / "openclaw_ray" / "run-11111111", 300)
    assert newest_state_dir() == run


def test_a_name_that_is_not_there_is_an_error_that_names_those_that_are(home: Path, tmp_path: Path) -> None:
    with pytest.raises(RuntimeNotFound, match="none"):
        newest_state_dir(ray_root=tmp_path)
    journal_in(home / ".openclaw" / "ray" / "daily", 100)
    with pytest.raises(RuntimeNotFound, match=r"'nightly'.*daily") as caught:
        newest_state_dir("nightly", ray_root=tmp_path)
    assert (caught.value.known, caught.value.kept) == ((), ("daily",))


def test_a_list_tells_which_ones_are_open(home: Path, tmp_path: Path) -> None:
    place = journal_in(home / ".openclaw" / "ray" / "daily", 100)
    assert list_runtimes(ray_root=tmp_path)[0].owner is None
    with StateLock(place):
        owner = list_runtimes(ray_root=tmp_path)[0].owner
        assert owner is not None
        assert owner.pid == os.getpid()
    assert list_runtimes(ray_root=tmp_path)[0].owner is None
