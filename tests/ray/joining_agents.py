"""A module of a client's own, whose agents a connected client brings along."""

from __future__ import annotations

from dataclasses import dataclass

import openclaw_ray as oc


@dataclass
class Parcel:
    """What is sent to an agent of this module."""

    weight: int


@oc.agent(id="weigher", spawns=False)
def weigher(turn: oc.SyncTurn) -> list[object]:
    """Whether what it got is of the class that it knows."""
    return [isinstance(turn.input, Parcel), type(turn.input).__name__, turn.input.weight]


class Hanging(oc.Agent):
    """Cannot be made."""

    def __init__(self) -> None:
        import threading

        threading.Event().wait()

    def on_turn(self, turn: oc.SyncTurn) -> None: ...
