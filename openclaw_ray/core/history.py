"""``sessions_history`` as its reader sees it: a masked, bounded view of transcript rows; its pages (SPEC.md B6, N10).

1. Tool rows are left out unless they are asked for. Of each row goes what is no message: details, usage and cost,
   signatures of thinking, reasoning that is only to be replayed, the data of inline images (their size stays).
2. Credentials are masked, in texts, in arguments of tools however nested, and over the seam of two blocks.
3. Only then is each text cut at 4,000 characters: a cut shows no half of a credential.
4. The rows have 81,920 bytes of JSON; the oldest go first. If the newest alone has more, one row says so in its place.
5. What is stored stays as it is: the view is made anew, and nothing of what it was made from is changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openclaw_ray.core.redaction import is_secret_name, mask, redact, redact_pieces

__all__ = [
    "BLOCK_MAX",
    "BYTES_MAX",
    "LIMIT_MAX",
    "OMITTED",
    "View",
    "json_bytes",
    "masked",
    "page",
    "redact",
    "view",
]

BLOCK_MAX = 4_000
"""Characters of one text."""
BYTES_MAX = 81_920
"""Bytes of JSON of all rows."""
LIMIT_MAX = 1_000
"""Rows of one page."""
OMITTED = "[sessions_history omitted: message too large]"
_CUT = "\n…(truncated)…"
_LOOKED_AT = 262_144  # characters of one text that are read; what lies beyond is cut off in any case
_DEEPEST = 64
_TOOL_ROLES = frozenset({"tool", "toolresult", "tool_result", "function"})
_NO_MESSAGE = frozenset({"details", "usage", "cost"})
_SIGNATURES = frozenset({"thinkingsignature", "textsignature", "thoughtsignature", "signature"})
_REPLAYED = frozenset({"encryptedcontent", "encrypted_content", "reasoningreplay", "redactedthinking", "replay"})
_REASONING = frozenset({"redacted_thinking", "redactedthinking", "reasoning_replay", "reasoning"})
_TEXTS = ("text", "thinking", "content")


@dataclass(frozen=True, slots=True)
class View:
    """Rows as they are shown, oldest first.

    Attributes:
        bytes: of their compact JSON, UTF-8.
        dropped: rows are missing that were too many, or too large.
        cut: a text was cut, or an image's data left out.
        redacted: a credential was kept back in what is shown.
        first: which of the rows that were given is the oldest in it; 0 if none had to go.
    """

    messages: list[dict[str, Any]]
    bytes: int
    dropped: bool = False
    cut: bool = False
    redacted: bool = False
    first: int = 0

    def to_json(self) -> dict[str, Any]:
        """``messages`` and the flags by OpenClaw's names."""
        return {
            "messages": self.messages,
            "truncated": self.dropped or self.cut,
            "droppedMessages": self.dropped,
            "contentTruncated": self.cut,
            "contentRedacted": self.redacted,
            "bytes": self.bytes,
        }


def view(messages: Sequence[Mapping[str, Any]], *, include_tools: bool = False, most: int = BYTES_MAX) -> View:
    """The view of ``messages``, which come oldest first."""
    rows: list[dict[str, Any]] = []
    total, cut, redacted = 2, False, False
    for number in range(len(messages) - 1, -1, -1):  # newest first: what will not fit is not even looked at
        if not include_tools and _is_tool_row(messages[number]):
            continue
        look = _Look()
        row = look.row(messages[number])
        size = json_bytes(row) + (1 if rows else 0)
        if total + size <= most:
            rows.append(row)
            total, cut, redacted = total + size, cut or look.cut, redacted or look.redacted
            oldest = number
            continue
        if not rows:
            rows, oldest = [{"role": "assistant", "content": OMITTED}], number
            total += json_bytes(rows[0])
        return View(rows[::-1], total, True, cut, redacted, oldest)
    return View(rows[::-1], total, False, cut, redacted)


def masked(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows with their credentials masked, and whole otherwise: nothing is cut or left out for its size."""
    look = _Look(whole=True)
    return [look.row(row) for row in messages]


def _is_tool_row(row: Mapping[str, Any]) -> bool:
    return str(row.get("role", "")).lower() in _TOOL_ROLES


def page(total: int, limit: int, offset: int = 0) -> tuple[range, int | None]:
    """The numbers of a page of rows numbered from 1, oldest first, and the offset of the next one back in time.

    Args:
        total: rows that there are.
        limit: rows of the page, 1 to 1,000.
        offset: rows left out, counted from the newest.

    Raises:
        ValueError: ``limit`` or ``offset`` is no such whole number.
    """
    for name, value, least, most in (("limit", limit, 1, LIMIT_MAX), ("offset", offset, 0, None)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least or (most and value > most):
            bounds = f"from {least}" if most is None else f"from {least} to {most}"
            raise ValueError(f"{name} is a whole number {bounds}, not {value!r}")
    newest = max(0, total - offset)
    oldest = max(0, newest - limit)
    return range(oldest + 1, newest + 1), total - oldest if oldest > 0 else None


def json_bytes(value: Any) -> int:
    """Bytes of compact JSON."""
    return len(_COMPACT.encode(value).encode("utf-8", "surrogatepass"))


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


class _Look:
    """One making of a view: notes what it had to leave out."""

    def __init__(self, *, whole: bool = False) -> None:
        self.whole = whole
        self.cut = False
        self.redacted = False

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row as it is shown (1 to 3)."""
        out: dict[str, Any] = {}
        for name, value in row.items():
            if name in _NO_MESSAGE:
                if name == "details" and _Look().hides(value):
                    self.redacted = True
                continue
            if name.lower() in _SIGNATURES | _REPLAYED:
                continue
            if name == "content" and _is_list(value):
                out[name] = self._blocks(value)
            else:
                out[name] = self._value(value, name, 0)
        return out

    def hides(self, value: Any) -> bool:
        """Whether something in it would be masked."""
        self._value(value, "", 0)
        return self.redacted

    def _blocks(self, blocks: Sequence[Any]) -> list[Any]:
        """The content of a row; texts of neighbours are read as one (2)."""
        texts = [(number, name, text) for number, block in enumerate(blocks) for name, text in _texts_of(block)]
        whole = self._pieces([text for _, _, text in texts])
        shown = {(number, name): text for (number, name, _), text in zip(texts, whole, strict=True)}
        return [self._block(number, block, shown) for number, block in enumerate(blocks)]

    def _block(self, number: int, block: Any, shown: Mapping[tuple[int, str], str]) -> Any:
        if isinstance(block, str):
            return self._short(shown[number, ""])
        if not isinstance(block, Mapping):
            return self._value(block, "", 0)
        out: dict[str, Any] = {}
        replayed = str(block.get("type", "")).lower() in _REASONING
        for name, value in block.items():
            low = str(name).lower()
            if name in _NO_MESSAGE or low in _SIGNATURES or low in _REPLAYED or (replayed and low == "data"):
                continue
            if (number, name) in shown:
                out[name] = self._short(shown[number, name])
            else:
                out[name] = self._value(value, name, 0)
        return self._image(block, out)

    def _image(self, block: Mapping[str, Any], out: dict[str, Any]) -> dict[str, Any]:
        """Without an inline image's data; its size stays."""
        source = block.get("source")
        held: Any = block if str(block.get("type", "")).lower() == "image" else None
        inner = isinstance(source, Mapping) and isinstance(source.get("data"), str)
        data = source["data"] if isinstance(source, Mapping) and inner else (held or {}).get("data")
        url = _data_url(block)
        if data is None and url is None:
            return out
        for name in ("data", "image_url", "imageUrl", "url"):
            if name == "data" or (url is not None and name in block):
                out.pop(name, None)
        if inner:
            out["source"] = {name: part for name, part in out["source"].items() if name != "data"}
        out["omitted"] = True
        out["bytes"] = len(data if isinstance(data, str | bytes) else url or "")
        self.cut = True
        return out

    def _value(self, value: Any, name: str, depth: int) -> Any:
        """Anything below a row, new (2, 5)."""
        if isinstance(value, str):
            if name and is_secret_name(name) and value:
                return self._masked(value)
            return self._short(self._pieces([value], depth)[0])
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            return self._masked(str(value)) if name and _is_figure_secret(name) else value
        if depth >= _DEEPEST:
            return self._short(self._pieces([str(value)])[0])
        if isinstance(value, Mapping):
            pair = _pair_name(value)
            return {
                self._pieces([str(key)])[0]: self._value(
                    part, _name_of(pair if pair and key == "value" else str(key), name), depth + 1
                )
                for key, part in value.items()
            }
        if isinstance(value, list | tuple | set | frozenset):
            return self._list(list(value), name, depth)
        if name and is_secret_name(name):
            return self._masked(str(value))
        return self._short(self._pieces([str(value)])[0])

    def _list(self, parts: list[Any], name: str, depth: int) -> list[Any]:
        """A list's items: texts of neighbours are read as one; what follows an option's name is its value."""
        names = [_name_of(_named_before(parts, number), name) for number in range(len(parts))]
        texts = [number for number, part in enumerate(parts) if isinstance(part, str)]
        plain = [number for number in texts if not is_secret_name(names[number])]
        shown = dict(zip(plain, self._pieces([parts[number] for number in plain], depth), strict=True))
        return [
            self._short(shown[number]) if number in shown else self._value(part, names[number], depth + 1)
            for number, part in enumerate(parts)
        ]

    def _masked(self, value: str) -> str:
        shown = mask(value)
        self.redacted = self.redacted or shown != value
        return shown

    def _pieces(self, texts: Sequence[str], depth: int = 0) -> list[str]:
        if not texts:
            return []
        most = None if self.whole else _LOOKED_AT
        looked_at = [self._json(text[:most], depth) for text in texts]
        self.cut = self.cut or any(most is not None and len(text) > most for text in texts)
        shown, redacted = redact_pieces(looked_at)
        self.redacted = self.redacted or redacted
        return shown

    def _json(self, text: str, depth: int) -> str:
        """JSON that was written as text: what its fields' names say is heeded, too; else the text as it is."""
        if depth >= _DEEPEST or text[:1] not in ("{", "["):
            return text
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
        look = _Look(whole=self.whole)
        shown = look._value(value, "", depth + 1)
        if not look.redacted:
            return text
        self.redacted, self.cut = True, self.cut or look.cut
        return json.dumps(shown, ensure_ascii=False)

    def _short(self, text: str) -> str:
        if self.whole or len(text) <= BLOCK_MAX or (text.endswith(_CUT) and len(text) == BLOCK_MAX + len(_CUT)):
            return text
        self.cut = True
        return text[:BLOCK_MAX] + _CUT


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _texts_of(block: Any) -> list[tuple[str, str]]:
    """The texts of a block that a reader sees as such, by the name of their field."""
    if isinstance(block, str):
        return [("", block)]
    if not isinstance(block, Mapping):
        return []
    return [(name, block[name]) for name in _TEXTS if isinstance(block.get(name), str)]


def _data_url(block: Mapping[str, Any]) -> str | None:
    for name in ("image_url", "imageUrl", "url"):
        value = block.get(name)
        if isinstance(value, Mapping):
            value = value.get("url")
        if isinstance(value, str) and value.startswith("data:"):
            return value
    return None


def _name_of(key: str, outer: str) -> str:
    """What a value's name says of it: its own, or that of what it is in, if that one says that it is a credential."""
    return outer if outer and is_secret_name(outer) else key


def _pair_name(value: Mapping[Any, Any]) -> str:
    """Of a pair such as ``{"name": "API_KEY", "value": …}``: the name that its value has."""
    names = (value.get(word) for word in ("name", "key"))
    return next((name for name in names if isinstance(name, str) and is_secret_name(name)), "")


def _named_before(parts: Sequence[Any], number: int) -> str:
    """The name that the item before gives to this one: an option of a command, or the first of a pair."""
    before = parts[number - 1] if number else None
    if isinstance(before, str) and (before.startswith("-") or len(parts) == 2):
        return before.lstrip("-")
    return ""


def _is_figure_secret(name: str) -> bool:
    low = name.lower()
    return any(word in low for word in ("password", "passwd", "passcode", "otp")) and is_secret_name(name)
