"""actors.attached_files: where a turn's attachments are on its node (SPEC.md C, stage 4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_port import make_spec

from openclaw_ray.actors import attached_files
from openclaw_ray.actors.attached_files import place_files, take_snapshot
from openclaw_ray.core.attachments import AttachedFile, AttachmentLimits, attached, relative_dir
from openclaw_ray.core.errors import AttachmentError
from openclaw_ray.core.protocol.messages import Spec
from openclaw_ray.core.session_facts import SessionFacts
from openclaw_ray.store.places import JOURNAL

FILES = (AttachedFile("a", b"one"), AttachedFile("b", b"two"))


class Reference:
    """Stands for an ObjectRef whose owner may be gone."""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state dir of a runtime on this disk."""
    (tmp_path / JOURNAL).touch()
    return tmp_path


def spec_of(files: tuple[AttachedFile, ...] = FILES, **changes: Any) -> Spec:
    told = attached(files, relative_dir("worker", "session"))
    return make_spec(facts=SessionFacts(attachments=told), attachments=AttachmentLimits(), **changes)


def test_a_snapshot_that_is_there_is_used_and_the_reference_to_its_bytes_is_not_read(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attached_files, "_got", lambda reference: pytest.fail("its owner may be gone"))
    folder = take_snapshot(str(state), "worker", "session", FILES)
    assert folder is not None
    placed = place_files(str(state), spec_of(), Reference())
    assert placed.paths == (str(folder / "a"), str(folder / "b"))
    placed.leave()
    assert folder.is_dir()


def test_what_is_not_there_is_made_of_what_came_along(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attached_files, "_got", lambda reference: FILES)
    placed = place_files(str(state), spec_of(), Reference())
    assert [Path(path).read_bytes() for path in placed.paths] == [b"one", b"two"]
    assert all(path.startswith(str(state)) for path in placed.paths)
    assert placed.own is None


def test_on_a_node_without_the_state_dir_the_files_are_the_turns_own(tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "not-here")
    assert take_snapshot(elsewhere, "worker", "session", FILES) is None
    placed = place_files(elsewhere, spec_of(), FILES)
    assert [Path(path).read_bytes() for path in placed.paths] == [b"one", b"two"]
    assert not (tmp_path / "not-here").exists()
    placed.leave()
    assert not any(Path(path).exists() for path in placed.paths)


@pytest.mark.parametrize("content", [b"new", bytearray(b"new"), memoryview(b"new"), "new"])
def test_a_reference_to_one_file_is_read_where_it_is_needed(
    state: Path, monkeypatch: pytest.MonkeyPatch, content: Any
) -> None:
    monkeypatch.setattr(attached_files, "_got", lambda reference: content)
    files = (AttachedFile("a", Reference()),)
    assert take_snapshot(str(state), "worker", "session", files) is None
    [path] = place_files(str(state), spec_of(files), files).paths
    assert Path(path).read_bytes() == b"new"


@pytest.mark.parametrize(("content", "why"), [(7, "of int"), (b"x" * (1 << 20) + b"x", "maxFileBytes")])
def test_a_reference_to_what_is_no_file_or_too_large_a_one_is_an_error(
    state: Path, monkeypatch: pytest.MonkeyPatch, content: Any, why: str
) -> None:
    monkeypatch.setattr(attached_files, "_got", lambda reference: content)
    files = (AttachedFile("a", Reference()),)
    with pytest.raises(AttachmentError, match=why):
        place_files(str(state), spec_of(files), files)
    assert not list(state.glob("agents/*/attachments/*"))


def test_files_that_are_gone_are_not_listed(state: Path) -> None:
    assert place_files(str(state), spec_of(), ()).paths == ()
