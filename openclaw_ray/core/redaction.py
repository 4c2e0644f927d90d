"""Credentials in texts: where they are, and what is shown in their place (SPEC.md B6).

1. A credential is found by its own look (known prefixes, key blocks, web tokens), by where it stands (a header, a URL),
   or by the name that it is given (``api_key=``, ``"refresh_token": …``, ``--password …``), also inside JSON that was
   written as text.
2. Up to 17 characters become ``***``; longer ones keep the first 6 and the last 4 with ``…`` between. A private key
   shows nothing of itself.
3. What was masked is left as it is: masking twice is as masking once.
4. What runs over the end of a text without having been closed is masked to the end.
5. A text that goes on in the next piece is read as one with it: a credential that is split over two is masked in the
   first and gone from the second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

__all__ = ["MASK", "Redacted", "is_secret_name", "mask", "redact", "redact_pieces"]

MASK = "***"
_SHORT = 17
_HEAD, _TAIL = 6, 4
_MASKED = re.compile(r"\*{3}|[^\n]{6}…[^\n]{4}", re.S)


class Redacted(NamedTuple):
    """A text as it may be shown, and whether anything in it was masked."""

    text: str
    redacted: bool


class _Found(NamedTuple):
    """Where a credential is; ``whole``: nothing of it is shown."""

    start: int
    end: int
    whole: bool


# names that say what their value is; letter case does not count, and anything may stand before
_NAMES = (
    r"(?:api|access|secret|private|signing|signature|encryption|auth|account|master|service|license|deploy|webhook"
    r"|storage|shared|subscription|consumer|client)[_.\s-]?key"
    r"|token|secret|pass(?:word|wd|phrase|code)|credentials?|connection[_-]?string|sas[_-]?url|otp|jwt|bearer"
)
_QUOTE = r"(?:\\*[\"'`])"
_SEPARATOR = rf"{_QUOTE}?\s*(?:=>|:=|=|:)\s*(?:\[\s*|[|>][+-]?\s*\n\s*)*"
_QUOTED = r"(?P<quote>\\*[\"'`])(?:(?P<closed>.{0,8192}?)(?P=quote)|(?P<open>[^\n]*))"
_BARE = r"(?P<bare>[^\s\"'`,;&<>(){}\[\]|\\]+)"
_VALUE = rf"(?:{_QUOTED}|{_BARE})"
_PREFIXES = (
    r"(?:sk|rk|pk)-[A-Za-z0-9_-]{8,}",
    r"(?:sk|rk|pk|whsec)_(?:(?:live|test)_)?[A-Za-z0-9]{12,}",
    r"gh[opusr]_[A-Za-z0-9]{16,}",
    r"github_pat_[A-Za-z0-9_]{16,}",
    r"gl(?:pat|ptt|dt|rt)-[A-Za-z0-9_-]{12,}",
    r"xox[a-z]-[A-Za-z0-9-]{8,}",
    r"xapp-[A-Za-z0-9-]{8,}",
    r"(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}[A-Za-z0-9]*",
    r"AIza[A-Za-z0-9_-]{20,}",
    r"ya29\.[A-Za-z0-9_.-]{16,}",
    r"1//[A-Za-z0-9_-]{20,}",
    r"eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?",
    r"(?:npm|hf|gsk|lin_api|sbp|dop_v1|doo_v1|shpat|shpss|dckr_pat)_[A-Za-z0-9]{16,}",
    r"(?:xai|tvly|pplx|nvapi|pypi)-[A-Za-z0-9_-]{16,}",
    r"SG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    r"AGE-SECRET-KEY-[A-Z0-9]{16,}",
    r"[0-9]{8,10}:[A-Za-z0-9_-]{30,}",
)
_PATTERNS = {
    "pem": r"(?s)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?P<body>.*?)"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    "prefix": rf"(?<![A-Za-z0-9])(?P<bare>{'|'.join(_PREFIXES)})",
    "scheme": r"(?i)\b(?:bearer|basic)\s+(?=\S{0,200}\d|\S{20})(?P<bare>[A-Za-z0-9._~+/=-]{8,})",
    "url": r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://(?P<user>[^\s/@:\"'<>]{0,256})(?::(?P<bare>[^\s/@\"'<>]{1,4096}))?@",
    "query": r"(?i)[?&](?:sig|signature|x-amz-signature|x-goog-signature|key|code|auth)=(?P<bare>[^\s&\"'<>#\\]+)",
    "header": r"(?i)(?:cookie|authorization)\\*[\"']?\s*[:=]\s*(?:\\*[\"'`])?"
    r"(?:(?:bearer|basic|token|digest|apikey)\s+)?(?P<bare>[^\"'`\n\\]+)",
    "named": rf"(?is)(?:{_NAMES})(?:[_-]?\d{{1,4}}|[_-][a-z0-9]{{1,12}})?{_SEPARATOR}{_VALUE}",
    "key": rf"(?s)(?<![A-Z0-9])(?:[A-Z0-9]{{1,32}}_){{1,8}}KEY(?:_[A-Z0-9]{{1,12}})?{_SEPARATOR}{_VALUE}",
    "pwd": rf"(?is)(?:[_-]|\b)p(?:wd|ass)(?:[_-]?\d{{1,4}}|_[a-z0-9]{{1,12}})?{_SEPARATOR}"
    rf"(?:{_QUOTED}|(?![/~.]){_BARE})",
    "flag": rf"(?is)(?<![\w-])--?[\w-]{{0,32}}?(?:{_NAMES})\s+(?!-){_VALUE}",
    "user": r"(?:^|\s)(?:-u|--user|--proxy-user)\s+\\*[\"']?[^\s:\"']{1,256}:(?P<bare>[^\s\"'\\]+)",
    # in prose, only what looks like one: letters and digits, and no id of ours
    "prose": rf"(?i)\b(?:{_NAMES}|key|pw)\b(?:\s+(?:is|was|to|of)\b)?[ \t]*[:=]?[ \t]*[\"'`]?"
    r"(?=\S{0,200}\d)(?=\S{0,200}[A-Za-z])(?![0-9a-f]{8}-[0-9a-f]{4}-)(?P<bare>[A-Za-z0-9_+/=~.-]{16,})(?![\w:])",
    "xml": rf"(?i)<[\w:.-]{{0,32}}(?:{_NAMES})(?:\s[^<>]{{0,256}})?>\s*(?P<bare>[^<\s]+)",
}


@lru_cache(maxsize=1)
def _patterns() -> dict[str, re.Pattern[str]]:
    """Made when they are first needed: a session process that looks at no history does not pay for them."""
    return {name: re.compile(pattern) for name, pattern in _PATTERNS.items()}


_PUBLIC = re.compile(r"(?i)(?:session|public|primary|foreign|sort|partition|cache|idempotency)_?key(?:_\w+)?\Z")
_PLAIN = frozenset({"true", "false", "null", "none", "undefined", "nil", "yes", "no", "on", "off", "bearer", "basic"})
_LONGEST_NAME = 128
_ROUNDS = 6


@lru_cache(maxsize=1)
def _secret_names() -> tuple[re.Pattern[str], ...]:
    # a field's name ends with the word: 'maxTokens' and 'tokenCount' are figures, not credentials
    words = rf"{_NAMES}|cookies?|authorization|api[_-]?keys|secrets|passwords|access[_-]?key[_-]?id"
    last = r"(?:[_-]?\d{1,4}|[_-]?(?:value|text|plain|raw|hash))?\Z"
    return (
        re.compile(rf"(?i)(?:{words}){last}"),
        re.compile(rf"(?i)(?:\A|[^a-z0-9])p(?:wd|ass){last}"),
        re.compile(r"(?:[A-Z0-9]{1,32}_){1,8}KEY(?:_[A-Z0-9]+)?\Z"),
    )


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether a field of that name holds a credential (1)."""
    if not name or len(name) > _LONGEST_NAME or _PUBLIC.search(name):
        return False
    return any(pattern.search(name) for pattern in _secret_names())


def mask(value: str) -> str:
    """What is shown in place of a credential (2, 3)."""
    if _MASKED.fullmatch(value):
        return value
    return MASK if len(value) <= _SHORT else f"{value[:_HEAD]}…{value[-_TAIL:]}"


def redact(text: str) -> Redacted:
    """``text`` with its credentials masked."""
    [shown], redacted = redact_pieces([text])
    return Redacted(shown, redacted)


def redact_pieces(pieces: Sequence[str]) -> tuple[list[str], bool]:
    """Texts that follow each other without a gap, each with its credentials masked (5); and whether there were any."""
    shown, redacted = list(pieces), False
    for _ in range(_ROUNDS):  # what a mask has made shorter may be read in another way (3)
        spans = _spans(shown)
        if not spans:
            break
        shown, redacted = _shown(shown, spans), True
    return shown, redacted


def _spans(pieces: Sequence[str]) -> list[_Found]:
    """Where the credentials are in the pieces put together."""
    whole = "".join(pieces)
    found = list(_find(whole))
    if len(pieces) > 1:
        at = 0
        for piece in pieces:
            found += (_Found(each.start + at, each.end + at, each.whole) for each in _find(piece))
            at += len(piece)
    return [
        each
        for each in _merged(found)
        if whole[each.start : each.end] != MASK and (each.whole or not _MASKED.fullmatch(whole, each.start, each.end))
    ]


_WORDS = (
    "key",
    "token",
    "secret",
    "passw",
    "passp",
    "passc",
    "credential",
    "connection",
    "sas",
    "otp",
    "jwt",
    "bearer",
    "pw",
)
_HINTS = {
    "pem": ("private key",),
    "scheme": ("bearer", "basic"),
    "url": ("://",),
    "query": ("?", "&"),
    "header": ("cookie", "authorization"),
    "named": _WORDS,
    "key": ("_key",),
    "pwd": ("pwd", "pass"),
    "flag": _WORDS,
    "user": ("-u", "user"),
    "prose": _WORDS,
    "xml": ("<",),
}
"""Without one of these, in lower case, a pattern finds nothing: most texts have none."""


def _find(text: str) -> Iterator[_Found]:
    low = text.lower()
    for name, pattern in _patterns().items():
        if name in _HINTS and not any(word in low for word in _HINTS[name]):
            continue
        for match in pattern.finditer(text):
            found = _value_of(name, match)
            if found is not None:
                yield found


def _value_of(name: str, match: re.Match[str]) -> _Found | None:
    """The part of a match that is the credential."""
    if name == "pem":
        return _trimmed(match, "body", True) if match["body"].strip() else None
    if name == "url" and match["bare"] is None:
        # a user alone is a name, unless it is long enough to be a token
        return _trimmed(match, "user", False) if len(match["user"]) > _SHORT else None
    if name == "key" and _PUBLIC.search(re.split(r"[\"'`\\\s:=]", match[0], maxsplit=1)[0]):
        return None
    values = match.groupdict()
    for group in ("closed", "open", "bare"):
        if (value := values.get(group)) is not None:
            plain = value.strip().casefold()
            return _trimmed(match, group, False) if plain and plain not in _PLAIN else None
    return None


def _trimmed(match: re.Match[str], group: str, whole: bool) -> _Found:
    """Without blanks around it."""
    start, end = match.span(group)
    value = match[group]
    return _Found(start + len(value) - len(value.lstrip()), end - len(value) + len(value.rstrip()), whole)


def _merged(found: list[_Found]) -> list[_Found]:
    """Without overlaps, in order."""
    out: list[_Found] = []
    for each in sorted(found):
        if out and each.start < out[-1].end:
            last = out[-1]
            out[-1] = _Found(last.start, max(last.end, each.end), last.whole or each.whole)
        else:
            out.append(each)
    return out


def _shown(pieces: Sequence[str], spans: list[_Found]) -> list[str]:
    """The pieces, with a mask where each span begins and nothing of it after that."""
    whole = "".join(pieces)
    out: list[list[str]] = [[] for _ in pieces]
    begins = [sum(map(len, pieces[:number])) for number in range(len(pieces))]

    def put(start: int, end: int) -> None:
        for number, since in enumerate(begins):
            till = since + len(pieces[number])
            if start < till and end > since:
                out[number].append(whole[max(start, since) : min(end, till)])

    at = 0
    for span in spans:
        put(at, span.start)
        number = next(n for n, since in enumerate(begins) if span.start < since + len(pieces[n]))
        out[number].append(MASK if span.whole else mask(whole[span.start : span.end]))
        at = span.end
    put(at, len(whole))
    return ["".join(parts) for parts in out]
