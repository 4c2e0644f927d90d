"""What a child takes over of its requester's tools, for good (SPEC.md D5, E6).

1. At the spawn the child is given all that its requester has taken over itself, then what holds for the requester's
   sender, then what the spawn asks for. Nothing is ever taken away again, so a child has no more than its requester
   was allowed to hand on. Each session carries the whole of it: nobody has to walk up a lineage.
2. A turn without a sender goes by all of it, whatever the configuration says of senders by then.
3. A turn that answers a sender goes by the configuration's word on that sender, not by the stored one. What a spawn
   has asked for holds all the same: nobody who writes to a child can widen it.
4. A snapshot of a version that is not known here allows nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from openclaw_ray.core.compact import compact
from openclaw_ray.core.policy.rules import Names, ToolLists

__all__ = ["SNAPSHOT_VERSION", "Inherited", "Layer", "Origin", "handed_on"]

SNAPSHOT_VERSION: Final = 1


class Origin(StrEnum):
    """Why a layer was laid."""

    SENDER = "sender"
    """It held for the sender of the turn that spawned."""
    SPAWN = "spawn"
    """The spawn asked for it."""


@compact
@dataclass(frozen=True, slots=True)
class Layer:
    """Lists that were laid on a session and all below it.

    Attributes:
        origin: why.
        source: session key of who spawned so.
        allow: entries, of which a tool must be one; empty for no opinion.
        deny: entries that are denied.
    """

    origin: Origin
    source: str
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@compact
@dataclass(frozen=True, slots=True)
class Inherited:
    """The snapshot that a session carries; a tool has to get through each of its layers."""

    layers: tuple[Layer, ...]
    version: int = SNAPSHOT_VERSION

    def to_json(self) -> dict[str, Any]:
        """The fields of OpenClaw's session entry; ``inheritedToolAllow`` has a list for each layer that has one."""
        deny = dict.fromkeys(entry for layer in self.layers for entry in layer.deny)
        allow = [list(layer.allow) for layer in self.layers if layer.allow]
        return {
            "inheritedToolPolicyVersion": self.version,
            "inheritedToolAllow": allow or None,
            "inheritedToolDeny": list(deny) or None,
        }


def handed_on(
    own: Inherited | None, requester: str, sender: ToolLists | None = None, asked: ToolLists | None = None
) -> Inherited | None:
    """The snapshot of a child (1); `None` if there is nothing to take over.

    Args:
        own: the requester's snapshot.
        requester: its session key.
        sender: what holds for the sender of its turn, if it has one.
        asked: what the spawn asks for.
    """
    layers = list(own.layers) if own is not None else []
    for origin, lists in ((Origin.SENDER, sender), (Origin.SPAWN, asked)):
        layer = Layer(origin, requester, *_entries(lists))
        if (layer.allow or layer.deny) and not any(_same(layer, one) for one in layers):
            layers.append(layer)
    if not layers:
        return None
    return Inherited(tuple(layers), own.version if own is not None else SNAPSHOT_VERSION)


def _same(layer: Layer, other: Layer) -> bool:
    return (layer.origin, layer.allow, layer.deny) == (other.origin, other.allow, other.deny)


def _entries(lists: ToolLists | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if lists is None:
        return (), ()

    def of(names: Names | None) -> tuple[str, ...]:
        return names.entries if names is not None else ()

    return (*of(lists.allow), *(of(lists.also_allow) if of(lists.allow) else ())), of(lists.deny)
