"""``read``, ``write`` and ``edit``: kept inside of the workspace whatever is asked for, and whole or not at all."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.agents.tools.read import MOST_BYTES, MOST_LINES
from openclaw_ray.agents.tools.workspace import PathRefused, Workspace
from openclaw_ray.agents.tools.write import MOST_BYTES as MOST_WRITTEN
from openclaw_ray.testing import run_turn

SECRET = "the secret"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace; beside it, a folder with a secret."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text(SECRET)
    inside = tmp_path / "inside"
    (inside / "sub").mkdir(parents=True)
    (inside / "a.txt").write_text("one\ntwo\nthree\n")
    monkeypatch.chdir(inside)
    return inside


def call(name: str, **params: Any) -> oc.ToolResult:
    """One call of a file tool by a turn."""
    results: list[oc.ToolResult] = []

    @oc.agent(id="w", tools=["read", "write", "edit"])
    def w(turn: oc.SyncTurn) -> None:
        results.append(turn.call(name, **params))

    run_turn(w, "x").result.raise_for_status()
    return results[0]


def untouched(place: Path) -> None:
    outside = place.parent / "outside"
    assert os.listdir(outside) == ["secret"]
    assert (outside / "secret").read_text() == SECRET
    assert not [name for name in os.listdir(place) if name.endswith(".tmp")]


# ---------------------------------------------------------------------- ways out


def link(inside: Path) -> str:
    (inside / "link").symlink_to("../outside/secret")
    return "link"


def link_to_a_folder(inside: Path) -> str:
    (inside / "out").symlink_to("../outside")
    return "out/secret"


def link_that_stays_inside(inside: Path) -> str:
    (inside / "again").symlink_to("a.txt")
    return "again"


def link_deep_down(inside: Path) -> str:
    (inside / "sub" / "out").symlink_to(inside.parent)
    return "sub/out/outside/secret"


def broken_link(inside: Path) -> str:
    (inside / "broken").symlink_to("../outside/new")
    return "broken"


def link_loop(inside: Path) -> str:
    (inside / "loop").symlink_to("loop")
    return "loop/secret"


def pipe(inside: Path) -> str:
    os.mkfifo(inside / "pipe")
    return "pipe"


def unix_socket(inside: Path) -> str:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")
    return "socket"


WAYS: dict[str, Callable[[Path], str]] = {
    "..": lambda inside: "../outside/secret",
    ".. after a folder": lambda inside: "sub/../../outside/secret",
    ".. that stays inside": lambda inside: "sub/../a.txt",
    ".. in an absolute path": lambda inside: f"{inside}/../outside/secret",
    "absolute": lambda inside: str(inside.parent / "outside" / "secret"),
    "absolute with a name that begins the same": lambda inside: f"{inside}2/secret",
    "doubled slashes": lambda inside: "//etc/passwd",
    "/proc": lambda inside: "/proc/self/cwd/../outside/secret",
    "home": lambda inside: "~/secret",
    "NUL": lambda inside: "a.txt\0.png",
    "not UTF-8": lambda inside: "a\udc80",
    "too long": lambda inside: "x/" * 3_000,
    "link": link,
    "link to a folder": link_to_a_folder,
    "link that stays inside": link_that_stays_inside,
    "link deep down": link_deep_down,
    "broken link": broken_link,
    "link loop": link_loop,
    "pipe": pipe,
    "socket": unix_socket,
}


@pytest.mark.parametrize("way", WAYS)
def test_no_path_leads_out_of_the_workspace(place: Path, way: str) -> None:
    path = WAYS[way](place)
    for name, params in (
        ("read", {}),
        ("write", {"content": "x"}),
        ("edit", {"oldText": "secret", "newText": "x"}),
    ):
        result = call(name, path=path, **params)
        assert (result.status, result.ok) == ("forbidden", False), (name, result)
        assert SECRET not in json.dumps(result.to_json())
        untouched(place)


def test_a_file_in_the_place_of_a_folder_and_a_folder_in_that_of_a_file_are_errors(place: Path) -> None:
    for path in ("a.txt/b", "sub", "", ".", "sub/", "missing/"):
        assert call("read", path=path).status == "error", path
        assert call("write", path=path, content="x").status == "error", path
    assert call("read", path="x" * 300).status == "error"


def test_a_folder_that_becomes_a_link_while_it_is_walked_leads_nowhere(place: Path) -> None:
    (place / "real").mkdir()
    (place / "real" / "secret").write_text("harmless")
    (place / "out").symlink_to("../outside")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for there, away in (("real", "door"), ("door", "real"), ("out", "door"), ("door", "out")):
                os.rename(place / there, place / away)

    thread = threading.Thread(target=swap)
    thread.start()
    inside, read = Workspace(str(place)), []
    try:
        for _ in range(3_000):
            try:
                with inside.file("door/secret") as fd:
                    read.append(os.read(fd, 100))
            except PathRefused:
                continue
    finally:
        over.set()
        thread.join()
    assert set(read) <= {b"harmless"}


def test_a_device_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PathRefused, match="it is a device"), Workspace("/dev").file("null"):
        pass


def test_the_whole_file_system_is_no_workspace() -> None:
    with pytest.raises(PathRefused, match="no workspace"):
        Workspace("/")
    with pytest.raises(PathRefused, match="no working folder"):
        Workspace("")


def test_a_workspace_that_is_reached_by_a_link_has_both_names(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = place.parent / "other"
    other.symlink_to(place)
    inside = Workspace(str(other))
    assert inside.parts(f"{other}/a.txt") == inside.parts(f"{place}/a.txt") == ("a.txt",)
    assert call("read", path=str(place / "a.txt"))["text"].startswith("one")


# ---------------------------------------------------------------------- read


def test_a_file_is_read_whole_or_by_lines(place: Path) -> None:
    whole = call("read", path="./a.txt")
    assert whole.to_json() == {"text": "one\ntwo\nthree\n", "lines": 3, "size": 14}
    part = call("read", file_path="a.txt", offset=2, limit=1)
    assert part.to_json() == {"text": "two\n", "lines": 1, "size": 14, "truncated": True, "nextOffset": 3}
    assert call("read", path="a.txt", offset=4).error == "a.txt: there is no line 4; it has 3"
    (place / "empty").touch()
    assert call("read", path="empty")["text"] == ""
    assert call("read", path="none").error == "none: there is no such file"


def test_what_is_read_is_bounded(place: Path) -> None:
    (place / "lines").write_text("x\n" * (MOST_LINES + 5))
    cut = call("read", path="lines")
    assert (cut["lines"], cut["nextOffset"]) == (MOST_LINES, MOST_LINES + 1)
    assert call("read", path="lines", offset=cut["nextOffset"])["lines"] == 5
    (place / "wide").write_text(("y" * (MOST_BYTES - 1) + "\n") * 2)
    assert call("read", path="wide")["nextOffset"] == 2
    (place / "long").write_text("z" * (MOST_BYTES + 5))
    assert "line 1 alone" in (call("read", path="long").error or "")


def test_what_came_with_the_task_is_read_where_it_is_and_nothing_beside_it(place: Path) -> None:
    attached = place.parent / "kept" / "note.txt"
    attached.parent.mkdir()
    attached.write_text("attached")
    (attached.parent / "other").write_text(SECRET)

    @oc.agent(id="w", tools=["read", "write"])
    def w(turn: oc.SyncTurn) -> None:
        turn.session = dataclasses.replace(turn.session, attachments=(str(attached),))
        assert turn.tools.read(path=str(attached))["text"] == "attached"
        assert turn.tools.read(path=str(attached.parent / "other")).status == "forbidden"
        assert turn.tools.write(path=str(attached), content="x").status == "forbidden"

    run_turn(w, "x").result.raise_for_status()


def test_what_is_no_text_is_named(place: Path) -> None:
    (place / "data").write_bytes(b"abc\xff")
    assert call("read", path="data").error == "data: it is no UTF-8 text (byte 3 is 0xff)"
    assert call("edit", path="data", oldText="a", newText="b").error == "data: it is no UTF-8 text (byte 3 is 0xff)"


# ---------------------------------------------------------------------- write


def test_a_file_is_written_with_the_folders_on_its_way(place: Path) -> None:
    made = call("write", path="new/deep/b.txt", content="höre\r\n")
    assert made.to_json() == {"status": "ok", "path": "new/deep/b.txt", "bytes": 7, "created": True}
    assert (place / "new/deep/b.txt").read_bytes() == "höre\r\n".encode()
    assert call("write", path="new/deep/b.txt", content="")["created"] is False
    assert os.listdir(place / "new/deep") == ["b.txt"]


def test_a_file_that_is_replaced_keeps_its_mode_and_its_readers(place: Path) -> None:
    os.chmod(place / "a.txt", 0o750)
    with open(place / "a.txt") as before:
        call("write", path="a.txt", content="new")
        assert before.read() == "one\ntwo\nthree\n"
    assert (place / "a.txt").read_text() == "new"
    assert (place / "a.txt").stat().st_mode & 0o777 == 0o750


def test_a_hard_link_to_another_file_is_not_written_through(place: Path) -> None:
    os.link(place.parent / "outside" / "secret", place / "hard")
    call("write", path="hard", content="new")
    untouched(place)


def test_a_write_that_fails_leaves_what_was_there(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    assert call("write", path="a.txt", content="x").error == "No space left on device"
    assert (place / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert sorted(os.listdir(place)) == ["a.txt", "sub"]


def test_too_much_or_what_utf8_cannot_hold_is_refused_before_anything(place: Path) -> None:
    @oc.agent(id="w", tools=["write"])
    def w(turn: oc.SyncTurn) -> None:
        with pytest.raises(oc.ToolInputError, match=r"write: content: it has \d+ bytes, the limit is"):
            turn.tools.write(path="big", content="x" * (MOST_WRITTEN + 1))
        with pytest.raises(oc.ToolInputError, match="UTF-8 cannot hold character 1"):
            turn.tools.write(path="odd", content="a\ud800")
        with pytest.raises(oc.ToolInputError, match="write: content: it is required"):
            turn.tools.write(path="big")
        assert "read" not in turn.tools

    run_turn(w, "x").result.raise_for_status()
    assert sorted(os.listdir(place)) == ["a.txt", "sub"]


# ---------------------------------------------------------------------- edit


def test_a_text_that_is_there_once_is_replaced(place: Path) -> None:
    done = call("edit", path="a.txt", oldText="two\n", newText="2\n2\n")
    assert done.to_json() == {"status": "ok", "path": "a.txt", "line": 2, "bytes": 14}
    assert (place / "a.txt").read_text() == "one\n2\n2\nthree\n"
    assert call("edit", path="a.txt", old_string="one\n", new_string="").ok
    assert (place / "a.txt").read_text() == "2\n2\nthree\n"


@pytest.mark.parametrize(
    ("before", "old", "says"),
    [
        ("a\nb\n", "c", "oldText is not in it; read it"),
        ("a\nb\na\n", "a", r"2 times \(lines 1, 3\)"),
        ("aaa", "aa", "2 times"),
        ("a\r\nb\r\n", "a\nb", r"its lines end in \\r\\n"),
    ],
)
def test_a_text_that_is_not_there_just_once_changes_nothing(place: Path, before: str, old: str, says: str) -> None:
    (place / "b").write_bytes(before.encode())
    result = call("edit", path="b", oldText=old, newText="x")
    assert result.status == "error"
    assert __import__("re").search(says, result.error or ""), result.error
    assert (place / "b").read_bytes() == before.encode()


def test_edits_side_by_side_are_all_made(place: Path) -> None:
    import asyncio

    (place / "many").write_text("".join(f"<{n}>" for n in range(40)))

    @oc.agent(id="w", tools=["edit"])
    async def w(turn: oc.Turn) -> None:
        edits = [turn.tools.edit(path="many", oldText=f"<{n}>", newText=f"[{n}]") for n in range(40)]
        assert all(result.ok for result in await asyncio.gather(*edits))

    run_turn(w, "x").result.raise_for_status()
    assert (place / "many").read_text() == "".join(f"[{n}]" for n in range(40))


def test_calls_are_rows_of_the_transcript_bounded(place: Path) -> None:
    @oc.agent(id="w", tools=["read", "write"])
    def w(turn: oc.SyncTurn) -> None:
        turn.tools.write(path="b", content="x" * 100_000)
        turn.tools.read(path="b")
        turn.tools.read(path="../x")

    rows = [json.loads(row["text"]) for row in run_turn(w, "x").rows]
    assert [(row["tool"], row["status"]) for row in rows] == [("write", "ok"), ("read", "ok"), ("read", "forbidden")]
    assert all(len(json.dumps(row)) < 3_000 for row in rows)
