"""Control tokens: texts by which an agent says that it has nothing to say (SPEC.md B2, F3).

A token counts only if it is the whole text; a real answer that mentions one is never dropped.

=============  ========================  ================================================================
context        tokens                    what counts as the whole text
=============  ========================  ================================================================
``a2a``        all four                  after punctuation at both ends is taken off, in any letter case,
                                         also repeated
``announce``   ``ANNOUNCE_SKIP``         after white space is taken off, in exactly this letter case
``announce``   ``NO_REPLY``              after white space and leading reasoning tags, in any letter case
=============  ========================  ================================================================
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Silence", "Token", "TokenContext", "silence"]


class Token(StrEnum):
    """The control tokens."""

    ANNOUNCE_SKIP = "ANNOUNCE_SKIP"
    """Nothing is to be announced."""
    HEARTBEAT_OK = "HEARTBEAT_OK"
    """A heartbeat turn found nothing to do."""
    NO_REPLY = "NO_REPLY"
    """No answer is wanted."""
    REPLY_SKIP = "REPLY_SKIP"
    """The ping-pong of a send ends here."""


class TokenContext(StrEnum):
    """Where a text was said."""

    A2A = "a2a"
    """As a reply inside a `sessions_send` negotiation."""
    ANNOUNCE = "announce"
    """As the final text of a child."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Whether a text is nothing but a control token, and which one."""

    silent: bool
    token: Token | None = None


_SPOKEN = Silence(False)
_SILENT = {token: Silence(True, token) for token in Token}
_MARKUP = "`~<>|="  # symbols by Unicode's lights, but punctuation to whoever writes markdown
_REASONING = re.compile(r"(?:\s*<think(?:ing)?\b[^>]*>.*?</think(?:ing)?>)+", re.IGNORECASE | re.DOTALL)
_LONGEST = 4_096  # characters; no text of only tokens is longer


def silence(text: str | None, context: TokenContext | str) -> Silence:
    """Whether ``text`` is a control token in this context; an empty text is none.

    Raises:
        ValueError: ``context`` is not a `TokenContext`.
    """
    where = TokenContext(context)
    if not text:
        return _SPOKEN
    if where is TokenContext.ANNOUNCE:
        return _in_announce(text)
    return _in_a2a(text)


def _in_announce(text: str) -> Silence:
    trimmed = text.strip()
    if trimmed == Token.ANNOUNCE_SKIP:
        return _SILENT[Token.ANNOUNCE_SKIP]
    if not trimmed.lower().endswith("no_reply"):
        return _SPOKEN
    if reasoning := _REASONING.match(trimmed):
        trimmed = trimmed[reasoning.end() :].strip()
    return _SILENT[Token.NO_REPLY] if trimmed.upper() == Token.NO_REPLY else _SPOKEN


def _in_a2a(text: str) -> Silence:
    if len(text) > _LONGEST:
        return _SPOKEN
    words = [word for word in map(_bare, text.split()) if word]
    if not words or any(word not in _SILENT for word in words):
        return _SPOKEN
    return _SILENT[Token(words[0])]


def _bare(word: str) -> str:
    start, end = 0, len(word)
    while start < end and _edge(word[start]):
        start += 1
    while start < end and _edge(word[end - 1]):
        end -= 1
    return word[start:end].upper()


def _edge(char: str) -> bool:
    return char in _MARKUP or unicodedata.category(char).startswith("P")
