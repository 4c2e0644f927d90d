"""Transcripts: each row once, fenced by activation, whatever tore or filled up in between."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from openclaw_ray.core.branching import FORK_ROW_CHARS
from openclaw_ray.core.errors import JournalError
from openclaw_ray.core.protocol.messages import Row
from openclaw_ray.store import transcripts as module
from openclaw_ray.store.transcripts import Transcripts, transcript_path

AT = 1_750_000_000.25


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Transcripts]:
    opened = Transcripts(tmp_path)
    yield opened
    opened.close()


def row(seq: int, *, session: str = "s1", activation: int = 1, text: str = "", key: str | None = None) -> Row:
    return Row(session, activation, seq, "assistant", text or f"text {seq}", AT + seq, key)


def texts(kept: Transcripts, session: str = "s1", limit: int = 1000, offset: int = 0) -> list[str]:
    return [found.text for found in kept.read("worker", session, limit=limit, offset=offset)]


def test_rows_come_back_as_they_were_written(kept: Transcripts) -> None:
    rows = [
        Row(
            "s1",
            1,
            0,
            "user",
            "Größe – 日本\u2028zwei\u0085Zeilen\nund\x00",
            AT,
            None,
            {"from": "agent:main:main", "n": [1, None]},
        ),
        Row("s1", 1, 1, "tool", "undecodable \udcff name", AT + 1),
        Row("s1", 1, -1, "system", "announce", AT + 2, "announce:v1:k:r"),
    ]
    assert kept.append("worker", rows) == 3
    assert kept.read("worker", "s1", limit=10) == rows


def test_the_file_is_one_json_object_a_line_in_its_place(kept: Transcripts, tmp_path: Path) -> None:
    kept.append("worker", [row(0), row(1, key="k")])
    path = tmp_path / "agents" / "worker" / "sessions" / "s1.jsonl"
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert json.loads(lines[0]) == {
        "activation": 1,
        "seq": 0,
        "role": "assistant",
        "text": "text 0",
        "at": AT,
    }
    assert json.loads(lines[1])["key"] == "k"


def test_files_and_directories_are_private(kept: Transcripts, tmp_path: Path) -> None:
    kept.append("worker", [row(0)])
    for path in (tmp_path / "agents").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert stat.S_IMODE((tmp_path / "agents").stat().st_mode) == 0o700


# ------------------------------------------------------------------ each row once


def test_a_row_given_again_is_written_once(kept: Transcripts) -> None:
    rows = [row(0), row(1), row(-1, key="announce:v1:k:r"), row(2)]
    assert kept.append("worker", rows) == 4
    assert kept.append("worker", [*rows, row(3)]) == 1
    assert kept.append("worker", [row(4), row(4)]) == 1
    assert texts(kept) == ["text 0", "text 1", "text -1", "text 2", "text 3", "text 4"]
    assert kept.statistics().repeated == 5


def test_a_row_given_again_after_reopening_is_written_once(tmp_path: Path) -> None:
    rows = [row(0), row(1), row(-1, key="announce:v1:k:r"), row(-1, text="neither key nor seq")]
    for _ in range(3):
        kept = Transcripts(tmp_path)
        kept.append("worker", rows)
        assert len(texts(kept)) == 4
        kept.close()


def test_rows_that_come_out_of_order_are_told_apart(kept: Transcripts) -> None:
    assert kept.append("worker", [row(2), row(0)]) == 2
    assert kept.append("worker", [row(0), row(1), row(2), row(3)]) == 2
    assert texts(kept) == ["text 2", "text 0", "text 1", "text 3"]
    assert kept.statistics().remembered == 0


def test_the_same_seq_of_two_activations_is_two_rows(kept: Transcripts) -> None:
    assert kept.append("worker", [row(0, activation=1), row(0, activation=2)]) == 2


def test_the_key_decides_where_there_is_one(kept: Transcripts) -> None:
    assert kept.append("worker", [row(0, key="k"), row(7, key="k"), row(0)]) == 2


def test_a_row_with_neither_is_known_by_what_it_says_and_when(kept: Transcripts) -> None:
    one, other = Row("s1", 1, -1, "system", "x", AT), Row("s1", 1, -1, "system", "x", AT + 1)
    assert kept.append("worker", [one, other, one]) == 2


# ------------------------------------------------------------------ the fence


def test_rows_of_a_lower_activation_than_the_highest_begun_are_refused(kept: Transcripts) -> None:
    kept.append("worker", [row(0, activation=1)])
    kept.begin("s1", 2)
    kept.begin("s1", 1)
    assert (
        kept.append("worker", [row(1, activation=1, key="k"), row(1, activation=1), row(0, activation=2)])
        == 1
    )
    assert kept.statistics().refused == 2
    assert kept.append("worker", [row(0, session="s2", activation=1)]) == 1


def test_a_row_of_a_higher_activation_is_a_fence_too_also_after_reopening(tmp_path: Path) -> None:
    kept = Transcripts(tmp_path)
    assert kept.append("worker", [row(0, activation=3), row(5, activation=2)]) == 1
    kept.close()
    again = Transcripts(tmp_path)
    assert again.append("worker", [row(6, activation=2)]) == 0
    again.close()


def test_what_the_registry_writes_by_key_alone_is_not_fenced_and_fences_nothing(kept: Transcripts) -> None:
    kept.begin("s1", 2)
    assert kept.append("worker", [row(-1, activation=1, key="announce:v1:k:r")]) == 1
    assert kept.append("worker", [row(-1, activation=9, key="announce:v1:k:q"), row(0, activation=2)]) == 2


# ------------------------------------------------------------------ torn, full, damaged


@pytest.mark.parametrize("tail", [b'{"activation": 1, "seq": 2, "ro', b"\x00" * 70_000, b'{"activation":1}'])
def test_a_torn_last_line_is_cut_on_opening_and_its_row_can_come_again(tmp_path: Path, tail: bytes) -> None:
    kept = Transcripts(tmp_path)
    kept.append("worker", [row(0), row(1)])
    kept.close()
    path = transcript_path(tmp_path, "worker", "s1")
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    assert texts(kept) == ["text 0", "text 1"]
    again = Transcripts(tmp_path)
    assert again.append("worker", [row(1), row(2)]) == 1
    assert texts(again) == ["text 0", "text 1", "text 2"]
    assert path.read_bytes().startswith(whole + b"{")
    assert again.statistics().cut == 1
    again.close()


def test_a_file_with_nothing_but_a_torn_line_begins_anew(tmp_path: Path) -> None:
    path = transcript_path(tmp_path, "worker", "s1")
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"activation": 1')
    kept = Transcripts(tmp_path)
    assert texts(kept) == []
    assert kept.append("worker", [row(0)]) == 1
    assert texts(kept) == ["text 0"]
    kept.close()


def test_a_damaged_line_in_the_middle_is_passed_over(tmp_path: Path) -> None:
    kept = Transcripts(tmp_path)
    kept.append("worker", [row(0), row(1)])
    kept.close()
    path = transcript_path(tmp_path, "worker", "s1")
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + b"\xff\xfe[1,2\n[]\nnull\n" + second)
    assert texts(kept) == ["text 0", "text 1"]
    assert kept.append("worker", [row(0), row(1), row(2)]) == 1
    kept.close()


FULL = """
import resource, sys
from openclaw_ray.core.errors import JournalError
from openclaw_ray.core.protocol.messages import Row
from openclaw_ray.store.transcripts import Transcripts

kept = Transcripts(sys.argv[1])
rows = [Row("s1", 1, n, "user", "x" * 100, 1.0) for n in range(100)]
kept.append("worker", [Row("s0", 1, 0, "user", "before", 1.0), *rows[:5]])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (3_333, hard))
try:
    kept.append("worker", [Row("s0", 1, 1, "user", "first", 1.0), *rows])
except JournalError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
partly = len(kept.read("worker", "s1", limit=1000))
assert 5 < partly < 100, partly
assert kept.append("worker", [Row("s0", 1, 1, "user", "first", 1.0), *rows]) == 100 - partly
assert kept.read("worker", "s1", limit=1000) == rows
assert [r.text for r in kept.read("worker", "s0", limit=9)] == ["before", "first"]
kept.close()
"""


def test_after_a_full_disk_the_same_rows_given_again_make_it_whole(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "s1.jsonl: transcript cannot be written: File too large" in done.stdout


APPENDER = """
import sys
from openclaw_ray.core.protocol.messages import Row
from openclaw_ray.store.transcripts import Transcripts

kept = Transcripts(sys.argv[1])
n = 0
while True:
    kept.append("worker", [Row(f"s{n % 7}", 1, n // 7 + k, "user", "x" * 300, 1.0) for k in range(5)])
    n += 7 * 5 if n % 7 == 6 else 1
    print(n, flush=True)
"""


def test_after_a_killed_writer_the_same_rows_given_again_make_it_whole(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", APPENDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        for _ in range(50):
            writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
    kept = Transcripts(tmp_path)
    for session in (f"s{n}" for n in range(7)):
        there = [found.seq for found in kept.read("worker", session, limit=1_000_000)]
        assert len(set(there)) == len(there) > 0
        rows = [Row(session, 1, n, "user", "x" * 300, 1.0) for n in range(max(there) + 10)]
        kept.append("worker", rows)
        after = [found.seq for found in kept.read("worker", session, limit=1_000_000)]
        assert after[: len(there)] == there
        assert sorted(after) == list(range(max(there) + 10))
    kept.close()


# ------------------------------------------------------------------ many sessions


def test_thousands_of_sessions_go_through_few_files_and_each_row_stays_one(tmp_path: Path) -> None:
    kept = Transcripts(tmp_path)
    rows = [row(n, session=f"s{k}") for k in range(2000) for n in range(2)]
    assert kept.append("worker", rows) == 4000
    assert kept.statistics().open_files == 64
    assert kept.statistics().opened == 2000
    assert kept.append("worker", rows) == 0
    assert kept.statistics().opened == 2000, "known rows need no file"
    kept.close()
    again = Transcripts(tmp_path, open_files=8)
    assert again.append("worker", [*rows, row(2, session="s7")]) == 1
    assert again.statistics().open_files == 8
    again.close()
    assert sum(1 for _ in tmp_path.rglob("*.jsonl")) == 2000
    assert len(texts(again, "s7")) == 3
    assert len(texts(again, "s1999")) == 2


def test_what_is_remembered_is_bounded_and_read_again_when_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SESSIONS_REMEMBERED", 10)
    monkeypatch.setattr(module, "_ROWS_REMEMBERED", 100)
    kept = Transcripts(tmp_path, open_files=4)
    rows = [row(-1, session=f"s{k}", key=f"key {n}") for k in range(50) for n in range(30)]
    assert kept.append("worker", rows) == 1500
    seen = kept.statistics()
    assert (seen.remembered, seen.sessions) == (90, 3)
    assert kept.append("worker", rows) == 0
    assert kept.statistics().reread == 50
    kept.close()


def test_begun_activations_are_remembered_for_the_sessions_named_last(
    kept: Transcripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BEGUN_REMEMBERED", 2)
    for session in ("a", "b", "c"):
        kept.begin(session, 2)
    rows = [row(0, session=session, activation=1) for session in ("a", "b", "c")]
    assert kept.append("worker", rows) == 1


def test_threads_append_side_by_side(kept: Transcripts) -> None:
    def write(session: str) -> None:
        for n in range(100):
            kept.append("worker", [row(n, session=session)])

    threads = [threading.Thread(target=write, args=(f"s{k}",)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(texts(kept, f"s{k}")) for k in range(4)] == [100] * 4


# ------------------------------------------------------------------ reading


def test_a_page_counts_its_offset_from_the_newest(kept: Transcripts) -> None:
    kept.append("worker", [row(n) for n in range(10)])
    assert texts(kept, limit=3) == ["text 7", "text 8", "text 9"]
    assert texts(kept, limit=3, offset=8) == ["text 0", "text 1"]
    assert texts(kept, limit=3, offset=10) == []
    assert texts(kept, limit=0) == []
    assert texts(kept, "unknown") == []
    with pytest.raises(ValueError, match="count rows"):
        texts(kept, limit=-1)


def test_a_page_of_a_long_transcript_is_the_same_wherever_its_blocks_end(kept: Transcripts) -> None:
    rows = [row(n, text=f"{n}:" + "é" * (n * 37 % 5000)) for n in range(300)]
    kept.append("worker", rows)
    for limit, offset in ((1, 0), (5, 3), (50, 0), (120, 77), (300, 0), (1000, 250), (7, 299)):
        end = len(rows) - offset
        assert kept.read("worker", "s1", limit=limit, offset=offset) == rows[max(0, end - limit) : end]


# ------------------------------------------------------------------ archive


def test_an_archived_transcript_is_renamed_and_takes_no_more_rows(kept: Transcripts, tmp_path: Path) -> None:
    kept.append("worker", [row(0)])
    target = kept.archive("worker", "s1", at=AT)
    assert target == transcript_path(tmp_path, "worker", "s1").with_name(
        "s1.jsonl.deleted.2025-06-15T15-06-40.250Z"
    )
    assert target.read_bytes().count(b"\n") == 1
    assert texts(kept) == []
    assert kept.append("worker", [row(1), row(-1, key="k")]) == 0
    assert kept.archive("worker", "s1") is None
    assert len(list(target.parent.iterdir())) == 1


def test_an_archive_never_replaces_another(kept: Transcripts, tmp_path: Path) -> None:
    path = transcript_path(tmp_path, "worker", "s1")
    for _ in range(2):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")
        kept.archive("worker", "s1", at=AT)
    assert len(list(path.parent.iterdir())) == 2


def test_rows_and_orders_that_come_again_to_a_new_process_begin_nothing_anew(tmp_path: Path) -> None:
    first = Transcripts(tmp_path)
    first.append("worker", [row(0), row(1)])
    assert not first.archived_before("worker", "s1", AT)
    target = first.archive("worker", "s1", at=AT)
    assert target is not None
    again = Transcripts(tmp_path)  # after a crash, before the order was acknowledged
    assert again.archived_before("worker", "s1", AT)
    assert again.append("worker", [row(0), row(1), row(-1, key="k")]) == 0
    assert again.archive("worker", "s1", at=AT) is None
    assert [path.name for path in target.parent.iterdir()] == [target.name]
    assert target.read_bytes().count(b"\n") == 2


def test_a_crash_between_rows_and_rename_ends_in_one_file(tmp_path: Path) -> None:
    Transcripts(tmp_path).append("worker", [row(0)])
    again = Transcripts(tmp_path)
    assert not again.archived_before("worker", "s1", AT)
    assert again.append("worker", [row(0), row(1)]) == 1
    target = again.archive("worker", "s1", at=AT)
    assert target is not None
    assert target.read_bytes().count(b"\n") == 2


# ------------------------------------------------------------------ names and other refusals


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "a\\b", ".hidden", "a\x00", "a\n", "x" * 129, "-x"]
)
def test_ids_that_are_no_plain_file_names_are_refused_before_anything_is_written(
    kept: Transcripts, tmp_path: Path, name: str
) -> None:
    for use in (
        lambda: kept.append("worker", [row(0), row(0, session=name)]),
        lambda: kept.append(name, [row(0)]),
        lambda: kept.read("worker", name, limit=1),
        lambda: kept.archive(name, "s1"),
    ):
        with pytest.raises(ValueError, match="cannot name a file"):
            use()
    assert list(tmp_path.iterdir()) == []


def test_a_symbolic_link_in_place_of_a_transcript_is_not_followed(kept: Transcripts, tmp_path: Path) -> None:
    path = transcript_path(tmp_path, "worker", "s1")
    path.parent.mkdir(parents=True)
    (tmp_path / "secret").write_text("{}\n")
    path.symlink_to(tmp_path / "secret")
    with pytest.raises(JournalError, match="cannot be written"):
        kept.append("worker", [row(0)])
    with pytest.raises(JournalError, match="cannot be read"):
        texts(kept)
    assert (tmp_path / "secret").read_text() == "{}\n"


def test_full_sync_writes_the_same(tmp_path: Path) -> None:
    kept = Transcripts(tmp_path, sync="full")
    assert kept.append("worker", [row(0), row(0, session="s2")]) == 2
    assert kept.append("worker", [row(0), row(1)]) == 1
    assert texts(kept) == ["text 0", "text 1"]
    kept.close()
    kept.close()


# ---------------------------------------------------------------------- pages with their total


def test_a_page_says_how_many_rows_there_are(kept: Transcripts) -> None:
    assert kept.page("worker", "s1", limit=5).total == 0
    for count in (3, 7):
        kept.append("worker", [row(n) for n in range(count)])
        found = kept.page("worker", "s1", limit=2, offset=1)
        assert (found.total, found.offset, [each.seq for each in found.rows]) == (count, 1, [count - 3, count - 2])


def test_a_transcript_that_was_archived_and_begun_anew_is_counted_anew(kept: Transcripts, tmp_path: Path) -> None:
    kept.append("worker", [row(n) for n in range(5)])
    assert kept.page("worker", "s1", limit=1).total == 5
    kept.archive("worker", "s1", at=AT)
    assert kept.page("worker", "s1", limit=1).total == 0
    other = Transcripts(tmp_path)
    other.append("worker", [row(0, activation=2)])
    other.close()
    assert kept.page("worker", "s1", limit=1).total == 1


def test_a_page_is_found_by_a_message_in_it(kept: Transcripts) -> None:
    kept.append("worker", [*(row(n) for n in range(9)), row(9, key="announce:v1:k:r")])
    for name, seqs, offset in (
        ("1:4", [2, 3, 4, 5], 4),
        ("1:0", [0, 1, 2, 3], 6),
        ("announce:v1:k:r", [8, 9], 0),
    ):
        found = kept.page("worker", "s1", limit=4, anchor=name)
        assert found.offset == offset
        assert [each.seq for each in found.rows][-len(seqs) :] == seqs
    assert not kept.page("worker", "s1", limit=4, anchor="9:9").found


# ------------------------------------------------------------------ branches


def test_a_branch_begins_a_transcript_with_all_rows_of_another_as_a_whole(kept: Transcripts, tmp_path: Path) -> None:
    kept.append("worker", [row(0), row(1), row(0, activation=2, text="later"), row(-1, key="k", text="of the host")])
    assert kept.branch("worker", "s2", "s1")
    assert texts(kept, "s2") == texts(kept) == ["text 0", "text 1", "later", "of the host"]
    kept.append("worker", [row(0, session="s2", text="own")])
    assert texts(kept, "s2")[-1] == "own"
    assert transcript_path(tmp_path, "worker", "s2").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / "agents" / "worker" / "sessions").iterdir() if ".part" in path.name] == []


def test_a_branch_is_made_once_however_much_the_source_says_after_it(kept: Transcripts, tmp_path: Path) -> None:
    kept.append("worker", [row(0)])
    assert kept.branch("worker", "s2", "s1")
    kept.append("worker", [row(1), row(0, session="s2", text="own")])
    assert not kept.branch("worker", "s2", "s1")
    again = Transcripts(tmp_path)  # a hub that remembers nothing gets the same order again
    assert not again.branch("worker", "s2", "s1")
    again.append("worker", [row(0, session="s2", text="own")])
    assert texts(again, "s2") == ["text 0", "own"]
    again.close()


def test_a_branch_of_nothing_is_empty_and_an_archived_transcript_is_not_begun_again(kept: Transcripts) -> None:
    assert kept.branch("worker", "s2", "s1")
    assert texts(kept, "s2") == []
    kept.archive("worker", "s2")
    assert not kept.branch("worker", "s2", "s1")


def test_a_branched_row_says_where_it_is_from_and_a_long_one_is_cut(kept: Transcripts) -> None:
    kept.append("worker", [row(0, text="x" * (FORK_ROW_CHARS + 5))])
    kept.branch("worker", "s2", "s1")
    [copied] = kept.read("worker", "s2", limit=9)
    assert copied.meta == {"branchedFrom": "s1"}
    assert copied.text.endswith("\n[5 more characters were cut]")
    kept.branch("worker", "s3", "s2")
    assert [one.meta for one in kept.read("worker", "s3", limit=9)] == [{"branchedFrom": "s2"}]


@pytest.mark.parametrize("name", ["", "../x", "a/b"])
def test_a_branch_stays_where_transcripts_are(kept: Transcripts, name: str) -> None:
    for ids in (("worker", name, "s1"), ("worker", "s2", name), (name, "s2", "s1")):
        with pytest.raises(ValueError, match="cannot name a file"):
            kept.branch(*ids)
