"""Running one turn body as both kinds of turn: what holds for `Turn` holds for `SyncTurn`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from fake_port import FakePort, make_spec

from openclaw_ray.agents import SyncTurn, agent
from openclaw_ray.agents.run_turn import Ended, TurnRunner
from openclaw_ray.agents.tools.calling import ToolSet
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.policy import ToolView

Body = Callable[[Any], Awaitable[Any]]


class Awaited:
    """A `SyncTurn` whose waiting calls can be awaited; they never suspend."""

    def __init__(self, turn: SyncTurn) -> None:
        self._turn = turn

    def __getattr__(self, name: str) -> Any:
        return getattr(self._turn, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_turn":
            super().__setattr__(name, value)
        else:
            setattr(self._turn, name, value)

    async def spawn(self, *args: Any, **kwargs: Any) -> Any:
        return self._turn.spawn(*args, **kwargs)

    async def join(self, *args: Any, **kwargs: Any) -> Any:
        return self._turn.join(*args, **kwargs)

    async def map(self, *args: Any, **kwargs: Any) -> Any:
        return self._turn.map(*args, **kwargs)

    async def call(self, *args: Any, **kwargs: Any) -> Any:
        return self._turn.call(*args, **kwargs)

    async def send(self, *args: Any, **kwargs: Any) -> Any:
        return self._turn.send(*args, **kwargs)

    @property
    def tools(self) -> ToolSet[Awaitable[Any]]:
        return ToolSet(self.call, self._turn._catalog(), self._turn._view_here)

    async def tool_view(self) -> ToolView:
        return self._turn.tool_view()

    async def history(self, *args: Any, **kwargs: Any) -> Any:
        return self._turn.history(*args, **kwargs)


def as_agent(kind: str, body: Body, **settings: Any) -> Any:
    """The body as an agent function of one kind."""
    if kind == "async":

        @agent(id="worker", **settings)
        async def of_async(turn: Any) -> Any:
            return await body(turn)

        return of_async

    @agent(id="worker", **settings)
    def of_sync(turn: SyncTurn) -> Any:
        coroutine: Coroutine[Any, Any, Any] = body(Awaited(turn))  # type: ignore[assignment]
        try:
            coroutine.send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("a plain turn cannot be suspended")

    return of_sync


class Drive:
    """Runs bodies as turns of one kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.runner = TurnRunner()

    def __call__(
        self,
        body: Body,
        port: FakePort | None = None,
        *,
        input: Any = None,
        completions: Any = (),
        tools: Any = (),
        **spec: Any,
    ) -> Ended:
        """Run a turn; whatever the body raises is its outcome."""
        ended = self.runner.run(
            make_spec(**spec),
            as_agent(self.kind, body, tools=tools),
            port or FakePort(),
            input=input,
            completions=completions,
        )
        if port is not None:
            port.join_threads()
        return ended

    def ok(self, body: Body, port: FakePort | None = None, **kwargs: Any) -> Ended:
        """Run a turn that is to succeed; assertions in the body count."""
        ended = self(body, port, **kwargs)
        assert ended.outcome.state is RunState.SUCCEEDED, ended.outcome.error and ended.outcome.error.traceback
        return ended
