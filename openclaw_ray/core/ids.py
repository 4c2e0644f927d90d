"""Ids as an argument: random ones, and a reproducible series for tests and the simulator (PROTOCOL.md 1.3).

All of them are UUIDs of version 4 in their usual spelling of 36 characters.
"""

from __future__ import annotations

from os import urandom
from random import Random
from typing import Protocol

__all__ = ["Ids", "RandomIds", "SeededIds"]

_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def _spell(digits: str) -> str:
    """32 random hex digits as a version 4 UUID."""
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANT[digits[16]]}{digits[17:20]}-{digits[20:]}"


class Ids(Protocol):
    """Where new ids come from."""

    def run_id(self) -> str:
        """A new id for one run."""
        ...

    def session_id(self) -> str:
        """A new id for one session record and its transcript."""
        ...

    def uuid(self) -> str:
        """A new id for anything else, e.g. the last part of a child's session key."""
        ...


class RandomIds:
    """Ids from the system's randomness; about a microsecond each, safe over threads and forks."""

    __slots__ = ()

    def uuid(self) -> str:
        """A new random id."""
        return _spell(urandom(16).hex())

    run_id = uuid
    session_id = uuid


class SeededIds:
    """The same ids in the same order for the same seed; for tests, never for production."""

    __slots__ = ("_random",)

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def uuid(self) -> str:
        """The next id of the series."""
        return _spell(f"{self._random.getrandbits(128):032x}")

    run_id = uuid
    session_id = uuid
