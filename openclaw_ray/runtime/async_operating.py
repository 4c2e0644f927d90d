"""The half of an `AsyncRuntime` that asks in a thread of its own: operating, and looking."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from openclaw_ray.core.audience import Audience
from openclaw_ray.core.lifecycle import DeliveryState
from openclaw_ray.core.policy import Sender, ToolView
from openclaw_ray.core.results import Receipt, StopReport
from openclaw_ray.runtime.awaiting import Awaiting
from openclaw_ray.runtime.runtime import Runtime
from openclaw_ray.runtime.stats import RuntimeStats

if TYPE_CHECKING:
    from openclaw_ray.channels import Channel
    from openclaw_ray.config import Change, Config

__all__ = ["AsyncOperating"]

T = TypeVar("T")


class AsyncOperating:
    """What `Runtime` does at once, or waits for in a way that a loop need not watch."""

    _sync: Runtime
    _waits: Awaiting

    @abstractmethod
    async def _in_thread(self, call: Callable[..., T], *args: Any) -> T:
        """What ``call`` gives, called beside the loop."""

    async def clear_tombstones(self, key: str = "") -> tuple[str, ...]:
        """See `Runtime.clear_tombstones`."""
        return await self._in_thread(lambda: self._sync.clear_tombstones(key))

    async def stop(self, key: str, *, timeout: float | None = None) -> StopReport:
        """Stop a session and everything below it; see `Runtime.stop`."""
        return await self._waits.outcome(self._sync._stopping(key=key), timeout)

    async def stop_run(self, run_id: str, *, timeout: float | None = None) -> StopReport:
        """Stop one run and everything below it."""
        return await self._waits.outcome(self._sync._stopping(run=run_id), timeout)

    async def steer(self, target: str, message: str) -> Receipt:
        """Interrupt a sub-agent, and have it go on with a message; see `Runtime.steer`."""
        return await self._in_thread(lambda: self._sync.steer(target, message))

    async def serve(self, channel: Channel) -> None:
        """See `Runtime.serve`."""
        await self._in_thread(lambda: self._sync.serve(channel))

    async def threads(self) -> list[dict[str, Any]]:
        """See `Runtime.threads`."""
        return await self._in_thread(self._sync.threads)

    async def unbind(self, key: str) -> int:
        """See `Runtime.unbind`."""
        return await self._in_thread(lambda: self._sync.unbind(key))

    async def patch(
        self, key: str, *, label: str | None, session_id: str | None = None, lifecycle_revision: int | None = None
    ) -> dict[str, Any]:
        """Change a session's label; see `Runtime.patch`."""
        return await self._in_thread(
            lambda: self._sync.patch(
                key, label=label, session_id=session_id, lifecycle_revision=lifecycle_revision
            )
        )

    async def delete(
        self,
        key: str,
        *,
        timeout: float | None = None,
        session_id: str | None = None,
        lifecycle_revision: int | None = None,
    ) -> StopReport:
        """Stop a session, then delete it; see `Runtime.delete`."""
        return await self._in_thread(
            lambda: self._sync.delete(
                key, timeout=timeout, session_id=session_id, lifecycle_revision=lifecycle_revision
            )
        )

    async def reset(
        self,
        key: str,
        *,
        timeout: float | None = None,
        session_id: str | None = None,
        lifecycle_revision: int | None = None,
    ) -> StopReport:
        """Stop a session, then begin it anew; see `Runtime.reset`."""
        return await self._in_thread(
            lambda: self._sync.reset(
                key, timeout=timeout, session_id=session_id, lifecycle_revision=lifecycle_revision
            )
        )

    async def call(
        self, name: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> dict[str, Any]:
        """One of OpenClaw's RPC calls by its name; see `Runtime.call`."""
        return await self._in_thread(lambda: self._sync.call(name, params, timeout=timeout))

    async def redeliver(self, run_id: str) -> DeliveryState:
        """Deliver a completion again that was given up; see `Runtime.redeliver`."""
        return await self._in_thread(lambda: self._sync.redeliver(run_id))

    async def dismiss(self, run_id: str) -> DeliveryState:
        """Give a delivery up; see `Runtime.dismiss`."""
        return await self._in_thread(lambda: self._sync.dismiss(run_id))

    async def maintain(self, *, apply: bool = False) -> list[dict[str, Any]]:
        """Upkeep of the ledger; see `Runtime.maintain`."""
        return await self._in_thread(lambda: self._sync.maintain(apply=apply))

    async def reload_config(self, config: Config | str | Path | Mapping[str, Any] | None = None) -> tuple[Change, ...]:
        """New limits from now on, all or none; see `Runtime.reload_config`."""
        return await self._in_thread(self._sync.reload_config, config)

    async def auth(self, target: str) -> dict[str, Any]:
        """Which credentials an agent has in reach; see `Runtime.auth`."""
        return await self._in_thread(self._sync.auth, target)

    async def session(self, key: str) -> dict[str, Any] | None:
        """One session's row; see `Runtime.session`."""
        return await self._in_thread(self._sync.session, key)

    async def run(self, run_id: str) -> dict[str, Any] | None:
        """One run's row; see `Runtime.run`."""
        return await self._in_thread(self._sync.run, run_id)

    async def runs(self, *, limit: int = 100, offset: int = 0, **filters: Any) -> list[dict[str, Any]]:
        """Runs, newest first; see `Runtime.runs`."""
        return await self._in_thread(lambda: self._sync.runs(limit=limit, offset=offset, **filters))

    async def sessions(self, *, limit: int = 100, offset: int = 0, **filters: Any) -> list[dict[str, Any]]:
        """Sessions, newest first; see `Runtime.sessions`."""
        return await self._in_thread(lambda: self._sync.sessions(limit=limit, offset=offset, **filters))

    async def tools(self, key: str, *, sender: Sender | Mapping[str, Any] | None = None) -> ToolView:
        """What a session may call, and which rule decided; see `Runtime.tools`."""
        return await self._in_thread(lambda: self._sync.tools(key, sender=sender))

    async def history(self, key: str, limit: int = 100, offset: int = 0) -> list[dict[str, Any]]:
        """A page of a session's transcript, newest last; see `Runtime.history`."""
        return await self._in_thread(self._sync.history, key, limit, offset)

    async def audience(self, key: str) -> Audience:
        """See `Runtime.audience`."""
        return await self._in_thread(self._sync.audience, key)

    async def agents(self) -> dict[str, str]:
        """The agents that the runtime knows; see `Runtime.agents`."""
        return await self._in_thread(self._sync.agents)

    async def facts(self) -> dict[str, Any]:
        """What the runtime is; see `Runtime.facts`."""
        return await self._in_thread(self._sync.facts)

    async def stats(self) -> RuntimeStats:
        """Figures of the runtime."""
        return await self._in_thread(self._sync.stats)
