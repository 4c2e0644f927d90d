"""The masked view of a transcript: nothing planted in it comes out, and nothing else is changed (SPEC.md B6)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_ray.core.history import BLOCK_MAX, BYTES_MAX, OMITTED, json_bytes, page, view
from openclaw_ray.core.redaction import is_secret_name, mask, redact, redact_pieces

_CORE = st.text("abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", min_size=24, max_size=60)
SECRETS = _CORE.map(lambda core: f"Q9z{core}7Zq")
LOOKS = st.sampled_from(["sk-proj-{}", "ghp_{}", "AKIAABCDEFGHIJKLMNOP{}", "xoxb-{}", "AIzaSy{}", "glpat-{}"])
PLACES = st.sampled_from(
    [
        "OPENAI_API_KEY={}",
        "export AWS_SECRET_ACCESS_KEY='{}'",
        "refresh_token: {}",
        'the answer was {{"id_token": "{}", "n": 1}}',
        '{{\\"client_secret\\":\\"{}\\"}}',
        "Authorization: Bearer {}",
        "curl -H 'X-Api-Key: {}' https://example.test",
        "https://bob:{}@example.test/x.git",
        "https://example.test/?access_token={}&page=2",
        "run --password {} --verbose",
        "<password>{}</password>",
        "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
        "postgres://app:{}@db:5432/x",
        "password = {}",
        "DB_PASS_2: '{}'",
        "client_secret: |\n  {}",
        "the password is {}, keep it",
        "access-key-id: {}",
    ]
)
PLANTED = st.one_of(
    st.builds(lambda place, secret: (place.format(secret), secret), PLACES, SECRETS),
    st.builds(lambda look, secret: (look.format(secret), secret), LOOKS, SECRETS),
)


def shows(secret: str, shown: Any) -> bool:
    """Whether more of it is to be seen than a mask leaves."""
    text = json.dumps(shown, ensure_ascii=False, default=str)
    return any(secret[i : i + 12] in text for i in range(6, len(secret) - 16))


# ---------------------------------------------------------------------- no credential comes out


@given(PLANTED, st.integers(min_value=0, max_value=2 * BLOCK_MAX), st.sampled_from(["x", "word ", "é", "\n"]))
@settings(max_examples=60, deadline=None)
def test_none_survives_wherever_the_cut_is(planted: tuple[str, str], before: int, filler: str) -> None:
    line, secret = planted
    text = (filler * before)[:before] + "\n" + line + "\n" + filler * 50
    seen = view([{"role": "assistant", "content": text}, {"role": "user", "content": [{"type": "text", "text": text}]}])
    assert not shows(secret, seen.messages)
    assert all(len(row["content"]) <= BLOCK_MAX + 20 for row in seen.messages[:1])


@given(PLANTED, st.data())
@settings(max_examples=60, deadline=None)
def test_none_survives_split_over_blocks(planted: tuple[str, str], data: st.DataObject) -> None:
    line, secret = planted
    cuts = sorted(data.draw(st.lists(st.integers(0, len(line)), min_size=1, max_size=3)))
    pieces = [line[a:b] for a, b in zip([0, *cuts], [*cuts, len(line)], strict=True)]
    blocks: list[Any] = [{"type": "text", "text": piece} for piece in pieces]
    seen = view([{"role": "assistant", "content": blocks}])
    joined = "".join(block["text"] for block in seen.messages[0]["content"])
    assert not any(secret[i : i + 12] in joined for i in range(6, len(secret) - 16))
    assert seen.redacted


def _nested(planted: st.SearchStrategy[tuple[str, str]]) -> st.SearchStrategy[tuple[Any, str]]:
    names = st.sampled_from(["input", "args", "env", "details", "x", "0"])
    leaves = planted | SECRETS.flatmap(
        lambda secret: st.sampled_from(
            [
                {"refresh_token": secret},
                {"id_token": [secret]},
                {"password": {"value": secret}},
                {"name": "OPENAI_API_KEY", "value": secret},
                ["--api-key", secret],
                ["Authorization", secret],
                {"headers": {"Authorization": f"Bearer {secret}"}},
                {"credentials": {"user": secret}},
            ]
        ).map(lambda leaf: (leaf, secret))
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(names, inner).map(lambda pair: ({pair[0]: pair[1][0]}, pair[1][1])),
            inner.map(lambda each: (["a", {"b": 1}, each[0]], each[1])),
            inner.map(lambda each: (json.dumps({"args": each[0]}), each[1])),
        ),
        max_leaves=4,
    )


@given(_nested(PLANTED))
@settings(max_examples=60, deadline=None)
def test_none_survives_in_arguments_of_tools_however_nested(planted: tuple[Any, str]) -> None:
    value, secret = planted
    rows = [
        {"role": "assistant", "content": [{"type": "toolCall", "name": "exec", "arguments": value}]},
        {"role": "toolResult", "content": "done", "meta": value},
    ]
    before = copy.deepcopy(rows)
    seen = view(rows, include_tools=True)
    assert not shows(secret, seen.messages)
    assert seen.redacted
    assert rows == before


@given(st.lists(PLANTED.map(lambda each: each[0]) | st.text(max_size=80), max_size=6).map(" ".join))
@settings(max_examples=100, deadline=None)
def test_masking_twice_is_as_masking_once(text: str) -> None:
    once = redact(text)
    assert redact(once.text) == (once.text, False)
    assert once.redacted == (once.text != text)


@given(st.lists(st.text(max_size=60) | PLANTED.map(lambda each: each[0]), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_pieces_stay_as_many_as_they_were(pieces: list[str]) -> None:
    shown, redacted = redact_pieces(pieces)
    assert len(shown) == len(pieces)
    assert redacted == (shown != pieces)


def test_a_credential_in_details_is_gone_with_them_and_the_flag_is_set() -> None:
    rows = [{"role": "toolResult", "content": "ok", "details": {"id_token": "abcdefghijklmnopqrstuvwxyz"}, "usage": {}}]
    seen = view(rows, include_tools=True)
    assert seen.messages == [{"role": "toolResult", "content": "ok"}]
    assert (seen.redacted, seen.cut, seen.dropped) == (True, False, False)


# ---------------------------------------------------------------------- and what is none is not touched


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 4096, total_tokens=12",
        "see https://example.test/a?page=2&sort=key",
        "basic authentication is off; a bearer of good news",
        "agent:main:subagent:0b9c8d7e-1111-2222-3333-444455556666",
        'sessionKey="agent:main:main" childSessionKey=agent:main:main SESSION_KEY=agent:main:main',
        "PWD=/root/work OLDPWD=/root",
        "the session of key agent:main:subagent:0b9c8d7e-1111-2222-3333-444455556666 ended",
        "the primary key is 0b9c8d7e-1111-2222-3333-444455556666, a key is agent:<agent id>:<name>",
        "announce:v1:agent:main:subagent:0b9c8d7e-1111-2222-3333-444455556666:run-1",
        "the tokenizer was trained; a secretary, a keyboard, a monkey",
        "for key, value in pairs.items(): total += 1",
        "password: null, token: none, secret=false",
        "mailto:bob@example.test, bob@example.test",
    ],
)
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert redact(text) == (text, False)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("refresh_token", True),
        ("id_token", True),
        ("apiKey", True),
        ("X-Api-Key", True),
        ("OPENAI_KEY", True),
        ("clientSecret", True),
        ("Authorization", True),
        ("cookies", True),
        ("db_pass", True),
        ("sessionKey", False),
        ("SESSION_KEY", False),
        ("maxTokens", False),
        ("tokenCount", False),
        ("key", False),
        ("compass", False),
        ("secretary", False),
    ],
)
def test_a_fields_name_says_whether_it_holds_a_credential(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


def test_a_mask_shows_six_and_four_of_what_is_longer_than_seventeen() -> None:
    assert mask("a" * 17) == "***"
    assert mask("abcdef-------wxyz!") == "abcdef…xyz!"
    assert mask(mask("abcdef-------wxyz!")) == "abcdef…xyz!"


def test_signatures_replayed_reasoning_and_image_data_are_left_out() -> None:
    row = {
        "role": "assistant",
        "usage": {"total": 1},
        "cost": 2,
        "content": [
            {"type": "thinking", "thinking": "plan", "thinkingSignature": "sig", "signature": "s"},
            {"type": "redacted_thinking", "data": "opaque"},
            {"type": "reasoning", "text": "why", "encrypted_content": "opaque"},
            {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
        ],
    }
    seen = view([row])
    assert seen.messages == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "plan"},
                {"type": "redacted_thinking"},
                {"type": "reasoning", "text": "why"},
                {"type": "image", "mimeType": "image/png", "omitted": True, "bytes": 12},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png"},
                    "omitted": True,
                    "bytes": 12,
                },
            ],
        }
    ]
    assert (seen.cut, seen.redacted, seen.dropped) == (True, False, False)


@pytest.mark.parametrize("role", ["tool", "toolResult"])
def test_tool_rows_are_left_out_unless_asked_for_and_that_is_no_loss(role: str) -> None:
    rows = [{"role": role, "content": "x"}, {"role": "user", "content": "y"}]
    assert view(rows).to_json() == {
        "messages": [{"role": "user", "content": "y"}],
        "truncated": False,
        "droppedMessages": False,
        "contentTruncated": False,
        "contentRedacted": False,
        "bytes": len('[{"role":"user","content":"y"}]'),
    }
    assert len(view(rows, include_tools=True).messages) == 2


@given(st.lists(st.integers(0, 30_000), max_size=12))
@settings(max_examples=60, deadline=None)
def test_a_view_has_as_many_of_the_newest_rows_as_fit(sizes: list[int]) -> None:
    rows = [{"role": "user", "content": ["ü" * min(3_900, n) for _ in range(n // 3_900 + 1)]} for n in sizes]
    seen = view(rows)
    assert seen.bytes == json_bytes(seen.messages) <= BYTES_MAX
    if seen.messages and seen.messages[0]["content"] == OMITTED:
        assert json_bytes(rows[-1:]) > BYTES_MAX
        assert seen.dropped
    else:
        assert seen.messages == rows[len(rows) - len(seen.messages) :]
        assert seen.dropped == (len(seen.messages) < len(rows))
        if seen.dropped:
            assert json_bytes(rows[len(rows) - len(seen.messages) - 1 :]) > BYTES_MAX


@given(st.integers(0, 50), st.integers(1, 20))
def test_pages_back_in_time_give_each_row_once(total: int, limit: int) -> None:
    seen: list[int] = []
    offset: int | None = 0
    while offset is not None:
        numbers, offset = page(total, limit, offset)
        seen = [*numbers, *seen]
    assert seen == list(range(1, total + 1))


@pytest.mark.parametrize(
    ("limit", "offset"), [(0, 0), (1001, 0), (-1, 0), (1.5, 0), (True, 0), ("4", 0), (4, -1), (4, 1.5), (4, None)]
)
def test_a_page_that_there_cannot_be_is_refused(limit: Any, offset: Any) -> None:
    with pytest.raises(ValueError, match="is a whole number from"):
        page(10, limit, offset)


def test_a_large_text_is_read_in_no_time() -> None:
    import time

    for text in ("A_" * 200_000, "-" * 400_000, "token=" * 60_000, '"token": "' * 30_000, "a" * 400_000, "0" * 400_000):
        began = time.process_time()
        view([{"role": "user", "content": text}])
        assert time.process_time() - began < 5
