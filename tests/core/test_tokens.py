"""core.tokens: a fixed table; a real answer is never dropped (SCENARIOS.md 21)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_ray.core.tokens import Silence, Token, TokenContext, silence


@pytest.mark.parametrize("token", list(Token))
@pytest.mark.parametrize("spelling", ["{}", "  {}\n", "**{}**", "`{}`.", "“{}”", "{} {}", "_{}_", "[[{}]]"])
def test_every_token_ends_a_negotiation(token: Token, spelling: str) -> None:
    for text in (spelling.format(token, token), spelling.format(token, token).lower()):
        assert silence(text, "a2a") == Silence(True, token)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "...",
        "REPLY_SKIP, then",
        "REPLY-SKIP",
        "REPLY_SKIP_2",
        "REPLY_SKIP 👍",
        "REPLY_SKIP 42",
        "REPLY_SKIP." * 1000,
    ],
)
def test_anything_more_is_an_answer_in_a_negotiation(text: str) -> None:
    assert silence(text, "a2a") == Silence(False)


@pytest.mark.parametrize(
    "text", ["announce_skip", "ANNOUNCE_SKIP.", "**ANNOUNCE_SKIP**", "ANNOUNCE_SKIP ANNOUNCE_SKIP"]
)
def test_announce_skip_is_exact_with_letter_case(text: str) -> None:
    assert silence(text, TokenContext.ANNOUNCE) == Silence(False)
    assert silence(" ANNOUNCE_SKIP\n", TokenContext.ANNOUNCE) == Silence(True, Token.ANNOUNCE_SKIP)


@pytest.mark.parametrize("text", ["NO_REPLY", "No_Reply", "\tno_reply ", "<think>hm</think>\nNO_REPLY"])
def test_no_reply_is_exact_in_any_letter_case(text: str) -> None:
    assert silence(text, "announce") == Silence(True, Token.NO_REPLY)


@pytest.mark.parametrize(
    "text",
    [
        "NO_REPLY.",
        "no reply",
        "Done. NO_REPLY",
        "<think>x</think> Done. NO_REPLY",
        "HEARTBEAT_OK",
        "REPLY_SKIP",
    ],
)
def test_other_final_texts_are_answers(text: str) -> None:
    assert silence(text, "announce") == Silence(False)


@pytest.mark.parametrize("context", list(TokenContext))
def test_no_text_is_no_token(context: TokenContext) -> None:
    assert silence(None, context) == Silence(False)


def test_an_unknown_context_is_refused() -> None:
    with pytest.raises(ValueError, match="TokenContext"):
        silence("NO_REPLY", "chat")


@given(st.text(), st.sampled_from(list(TokenContext)))
def test_a_text_without_a_token_in_it_is_an_answer(text: str, context: TokenContext) -> None:
    if not any(token in text.upper() for token in Token):
        assert not silence(text, context).silent
