"""What an agent has in reach, read from its stores, for people: a store that cannot be read is shown with its fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from openclaw_ray.core.auth import AuthRules, Ref, StoreName, auth_view
from openclaw_ray.core.errors import CredentialStoreError
from openclaw_ray.store.credentials import read_store

__all__ = ["view_stores"]


def view_stores(
    agent: str,
    rules: AuthRules,
    *,
    now: int,
    resolves: Callable[[Ref], bool],
    pin: str | None = None,
    read: Callable[[str | None], Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """`auth_view` of the stores as they are now, with ``stores``: path, mode, whether there is one, its fault.

    Args:
        read: gives a store in place of its file.
    """
    stores: list[dict[str, Any]] = []
    found: dict[StoreName, Mapping[str, Any]] = {}
    for name, path in ((StoreName.AGENT, rules.own), (StoreName.SHARED, rules.shared)):
        found[name] = {}
        if path is None:
            continue
        row: dict[str, Any] = {"store": name.value, "path": path}
        stores.append(row)
        try:
            file = read_store(path)
            found[name] = file.profiles if read is None else read(path)
            row["present"] = bool(found[name]) or file.data is not None
            if file.mode is not None:
                row["mode"] = f"{file.mode:04o}"
        except CredentialStoreError as error:
            row |= {"present": True, "error": error.detail}
    shown = auth_view(
        agent,
        rules,
        agent_store=found[StoreName.AGENT],
        shared_store=found[StoreName.SHARED],
        now=now,
        pin=pin,
        resolves=resolves,
    )
    return {**shown, "stores": stores}
