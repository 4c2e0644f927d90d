"""Maps that have a name (``map_id``): who may work on one, which item is which, what a later try takes over.

1. An item is known by its position and by a digest of who runs it and of what it is. Plain data (text, numbers, lists,
   dicts, sets) has the digest of its content; anything else that of its pickle. What has no pickle, or has an object
   reference in it, has no digest and is run by each try. A pickle that differs from process to process (an object
   that keeps sets of strings, a class that goes by value) makes each try another item of it, which is run again.
2. One map of a name at a time: a try claims the name first. A claim ends with its map, with its client, or with the
   turn that maps. It is given to the next only when no run of an earlier try is left: nothing runs twice at a time.
3. Who asks for a name that is claimed waits while its holder is silent, for it may be dead and its lease not over yet
   (PROTOCOL.md 2.5). A holder that speaks is alive: the asker is refused.
4. Ends are kept in pages of `PAGE` positions, so that a try of any length holds one page in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from typing import Any

from openclaw_ray.core.compact import compact

__all__ = [
    "PAGE",
    "ClaimAnswer",
    "ClaimWait",
    "ItemRow",
    "MapItem",
    "check_map_id",
    "item_digest",
    "item_key",
    "page_key",
]

PAGE = 256
"""Positions whose ends are read at once."""
_LONGEST_ID = 128
_SIZE = 16
_OWNER_SPEAKS_WITHIN = 1.0
"""Seconds in which a map that has ended says so: an owner that holds a claim for longer is at work on it."""


@compact
@dataclass(frozen=True, slots=True)
class MapItem:
    """What a run is to its named map; its position is the run's ``index``.

    Attributes:
        map_id: the map's name.
        claim: the try's own id, under which it has claimed the name.
        digest: `item_digest`; empty if the item has none.
    """

    map_id: str
    claim: str
    digest: bytes


@compact
@dataclass(frozen=True, slots=True)
class ItemRow:
    """How an item ended in an earlier try.

    Attributes:
        index, digest: which item.
        ok: True if it succeeded, False if it failed, timed out or was lost. One that was stopped has no row.
        completed: the end, of one that succeeded; `None` if its value was too large to be journaled.
    """

    index: int
    digest: bytes
    ok: bool
    completed: Any = None


@compact
@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """The registry's answer to who claims a name (2).

    Attributes:
        word: ``ok``; ``busy``: another try holds it; ``wait``: runs of an earlier try have not ended, or the asker is
            not known yet.
        claim, client, host, pid, root: the try that holds it, its client, and where that lives.
        leased: False for the owner of the runtime, without whom nobody could ask.
        heard: number of the newest step of that client.
    """

    word: str
    claim: str = ""
    client: str = ""
    host: str = ""
    pid: int = 0
    root: str = ""
    leased: bool = True
    heard: int = 0


class ClaimWait:
    """What the answers to one asker, who asks again and again, mean (3). No clock of its own."""

    class Word(Enum):
        """What to do."""

        GO = "the name is claimed"
        WAIT = "ask again"
        REFUSE = "its holder is alive"

    def __init__(self, client: str) -> None:
        self._client = client
        self._first: ClaimAnswer | None = None
        self._since = 0.0

    def heard(self, answer: ClaimAnswer, now: float) -> Word:
        """What the newest answer means; ``now`` in seconds of any clock."""
        if answer.word == "ok":
            return self.Word.GO
        if answer.word != "busy" or answer.client == self._client:
            # a map of our own that goes on is known here: what is held for us has ended, and that is on its way
            return self.Word.WAIT
        first = self._first
        if first is None or first.claim != answer.claim:
            self._first, self._since = answer, now
            return self.Word.WAIT
        # one step may have been on its way when its sender died, or be the one that says that the map has ended
        alive = answer.heard >= first.heard + 2
        if alive or (not answer.leased and now - self._since >= _OWNER_SPEAKS_WITHIN):
            return self.Word.REFUSE
        return self.Word.WAIT


def check_map_id(map_id: Any) -> str:
    """A name that a map may have: 1 to 128 printable characters, no blank at its ends.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(map_id, str) or not map_id.isprintable() or map_id != map_id.strip() or not map_id:
        raise ValueError(f"map_id is a name of printable characters, not {map_id!r}")
    if len(map_id) > _LONGEST_ID:
        raise ValueError(f"map_id has {len(map_id)} characters; the limit is {_LONGEST_ID}")
    return map_id


def page_key(map_id: str, page: int) -> str:
    """The journal's name for one page of a map."""
    return f"{map_id}\n{page}"


def item_key(map_id: str, index: int, digest: bytes) -> str:
    """The journal's name for one item."""
    return f"{map_id}\n{index}\n{digest.hex()}"


def item_digest(agent_id: str, item: Any, pickled: Callable[[Any], bytes]) -> bytes:
    """What an item is known by besides its position (1); empty if it has nothing that would be the same again.

    Args:
        agent_id: who runs it: the same input for another agent is another item.
        pickled: makes the pickle of what is not plain data; it may raise.
    """
    try:
        return _hash(f"agent {agent_id}", _content(item, pickled))
    except Exception:  # noqa: BLE001 - the caller's own object: whatever its pickling raises, it has no digest
        return b""


def _content(value: Any, pickled: Callable[[Any], bytes]) -> bytes:
    kind = type(value)
    if kind is str:
        body = value.encode("utf-8", "surrogatepass")
    elif kind is bytes:
        body = value
    elif kind is int:
        body = f"{value:x}".encode()
    elif value is None or kind is bool or kind is float:
        body = repr(value).encode()
    elif kind is list or kind is tuple:
        body = b"".join([_content(each, pickled) for each in value])
    elif kind is dict:
        body = b"".join(sorted(_content(k, pickled) + _content(v, pickled) for k, v in value.items()))
    elif kind is set or kind is frozenset:
        body = b"".join(sorted(_content(each, pickled) for each in value))
    else:
        return _hash("pickle", pickled(value))
    return _hash(kind.__name__, body)


def _hash(kind: str, body: bytes) -> bytes:
    return blake2b(kind.encode() + b"\0" + body, digest_size=_SIZE).digest()
