"""store.pruning: archived transcripts go by the time in their names, and nothing else does."""

from __future__ import annotations

from pathlib import Path

from openclaw_ray.core.protocol.messages import Row
from openclaw_ray.store.pruning import prune_archives
from openclaw_ray.store.transcripts import Transcripts

DAY = 86_400.0
NOW = 1_800_000_000.0


def archived(state_dir: Path, session: str, at: float, agent: str = "w") -> Path:
    transcripts = Transcripts(state_dir)
    transcripts.append(agent, [Row(session, 1, 0, "user", "hello", at)])
    path = transcripts.archive(agent, session, at=at)
    transcripts.close()
    assert path is not None
    return path


def test_what_was_archived_before_the_time_goes(tmp_path: Path) -> None:
    old, young = archived(tmp_path, "old", NOW - 31 * DAY), archived(tmp_path, "young", NOW - 29 * DAY, "other")
    assert prune_archives(tmp_path, NOW - 30 * DAY) == 1
    assert (old.exists(), young.exists()) == (False, True)
    assert prune_archives(tmp_path, NOW - 30 * DAY) == 0


def test_transcripts_in_use_and_files_of_others_stay(tmp_path: Path) -> None:
    archived(tmp_path, "old", NOW - 31 * DAY)
    folder = tmp_path / "agents" / "w" / "sessions"
    names = ("live.jsonl", "live.log", "x.jsonl.deleted.", "x.jsonl.deleted.2001", "x.deleted.2001-01-01T00-00-00.000Z")
    for name in names:
        (folder / name).write_text("mine")
    assert prune_archives(tmp_path, NOW) == 1
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)


def test_a_second_one_of_the_same_moment_goes_too(tmp_path: Path) -> None:
    first, second = archived(tmp_path, "s", NOW - 31 * DAY), archived(tmp_path, "s", NOW - 31 * DAY)
    assert second.name == first.name + "+"
    assert prune_archives(tmp_path, NOW) == 2


def test_so_many_at_a_time(tmp_path: Path) -> None:
    for number in range(5):
        archived(tmp_path, f"s{number}", NOW - 31 * DAY)
    assert [prune_archives(tmp_path, NOW, most=2) for _ in range(4)] == [2, 2, 1, 0]


def test_a_state_dir_without_transcripts_is_nothing_to_do(tmp_path: Path) -> None:
    assert prune_archives(tmp_path / "none", NOW) == 0
