"""core.attachments: which files a spawn may hand on, and what is told of them (SPEC.md C, stage 4)."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from openclaw_ray.core import attachments
from openclaw_ray.core.admission import Refusal
from openclaw_ray.core.attachments import (
    AttachedFile,
    AttachmentLimits,
    attached,
    mask_contents,
    read_files,
    relative_dir,
)

LIMITS = AttachmentLimits(max_total_bytes=30, max_files=3, max_file_bytes=20)


def refusal_of(*files: tuple[str, Any, str], limits: AttachmentLimits | None = LIMITS) -> Refusal:
    refusal = read_files(files, limits)
    assert isinstance(refusal, Refusal), refusal
    return refusal


def test_nothing_needs_no_leave_and_something_does() -> None:
    assert read_files((), None) == ()
    refusal = refusal_of(("a", "x", "utf8"), limits=None)
    assert (refusal.status, refusal.path) == ("forbidden", "tools.sessions_spawn.attachments.enabled")


def test_every_bound_is_named_with_value_maximum_and_path() -> None:
    for files, key, value, maximum in (
        ([(f"f{n}", "x", "utf8") for n in range(4)], "maxFiles", 4, 3),
        ([("a", "x" * 21, "utf8")], "maxFileBytes", 21, 20),
        ([("a", b"x" * 21, "utf8")], "maxFileBytes", 21, 20),
        ([("a", "x" * 16, "utf8"), ("b", "x" * 16, "utf8")], "maxTotalBytes", 32, 30),
    ):
        refusal = refusal_of(*files)
        assert (refusal.value, refusal.maximum) == (value, maximum)
        assert refusal.path == f"tools.sessions_spawn.attachments.{key}"
        assert refusal.path in refusal.error


def test_base64_that_is_too_long_is_refused_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> bytes:
        raise AssertionError("it was decoded")

    monkeypatch.setattr(attachments.base64, "b64decode", never)
    assert refusal_of(("a", "A" * 28, "base64")).value == 21
    assert refusal_of(("a", "!" * 400, "base64")).maximum == 20


@pytest.mark.parametrize("size", range(18, 21))
def test_the_estimate_is_exact_for_each_padding(size: int) -> None:
    written = base64.b64encode(b"x" * size).decode()
    assert read_files([("a", written, "base64")], LIMITS) == (AttachedFile("a", b"x" * size),)
    tight = AttachmentLimits(max_file_bytes=size - 1)
    assert refusal_of(("a", written, "base64"), limits=tight).value == size


@pytest.mark.parametrize("name", ["", " ", ".", "..", ".manifest.json", "a/b", "a\\b", "a<b", "a>b", "a\nb", "a\0b"])
def test_names_that_are_none(name: str) -> None:
    refusal = refusal_of((name, "x", "utf8"))
    assert (refusal.status, refusal.limit) == ("error", "attachments")


@pytest.mark.parametrize("name", ["a\x85b", "a\u2028b", "a\u2029b", "\ud800", "ä" * 128])
def test_names_that_no_file_system_or_prompt_could_take(name: str) -> None:
    assert refusal_of((name, "x", "utf8")).limit == "attachments"


@pytest.mark.parametrize("name", ["a", "A", "ä" * 127, "100%.txt", "wow!.txt", "...", ".hidden", "a b"])
def test_names_that_are_taken_and_told_apart_by_case(name: str) -> None:
    assert read_files([(name, "x", "utf8")], LIMITS) == (AttachedFile(name, b"x"),)
    assert refusal_of((name, "x", "utf8"), (name, "y", "utf8")).limit == "attachments"


def test_an_empty_text_is_a_file_and_an_empty_base64_is_none() -> None:
    empty = (AttachedFile("a", b""), AttachedFile("b", b""))
    assert read_files([("a", "", "utf8"), ("b", b"", "utf8")], LIMITS) == empty
    assert refusal_of(("a", " \n", "base64")).limit == "attachments"


def test_a_reference_is_told_without_a_size() -> None:
    reference = object()
    files = read_files([("a", reference, "utf8"), ("b", "x", "utf8")], LIMITS)
    assert isinstance(files, tuple)
    assert files[0].content is reference
    told = attached(files, relative_dir("w", "s1"), "in/").to_json()
    assert (told["count"], told["totalBytes"], told["relDir"]) == (2, 1, "agents/w/attachments/s1")
    assert told["files"][0] == {"name": "a", "bytes": None, "sha256": None}


def test_contents_are_left_out_of_a_call_that_is_stored() -> None:
    call = {"task": "x", "attachments": [{"name": "a", "content": "s3cret"}, {"name": "b", "content": b"s3cret"}, 7]}
    masked = mask_contents(call)
    assert "s3cret" not in repr(masked)
    assert [item["name"] for item in masked["attachments"][:2]] == ["a", "b"]
    assert call["attachments"][0] == {"name": "a", "content": "s3cret"}
    assert mask_contents({"task": "x"}) == {"task": "x"}
