"""`run_turn`: one turn of one agent, without a runtime."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from openclaw_ray.agents._cloudpickle import standing_in
from openclaw_ray.agents.info import agent_info
from openclaw_ray.agents.port import SpawnRequest
from openclaw_ray.agents.run_turn import Ended, TurnRunner
from openclaw_ray.agents.state import dump_state
from openclaw_ray.agents.text import short_repr
from openclaw_ray.channels import Channel
from openclaw_ray.core.lifecycle import RunKind
from openclaw_ray.core.policy import Sender
from openclaw_ray.core.protocol.messages import Row, Spec
from openclaw_ray.core.results import Completion, Result, Usage
from openclaw_ray.core.session_facts import SessionFacts
from openclaw_ray.core.thread_rules import Bindings
from openclaw_ray.testing.answering import AnsweringPort, ProgressSaid, result_of
from openclaw_ray.testing.auth import auth_store
from openclaw_ray.testing.local.memory import ProcessMemory
from openclaw_ray.testing.tool_stubs import stubbed_catalog

__all__ = ["TurnRun", "run_turn"]

_FACTS = {"cwd", "workspace", "model", "thinking", "context"}
_SESSION = {"key", "session_id", "depth", "role", "label", "requester_key", "attachments", *_FACTS}


@dataclass(frozen=True, slots=True)
class TurnRun:
    """What one turn did.

    Attributes:
        result: its outcome, as a requester would see it if the run ended with this turn; the value was pickled and made
            anew.
        spawned: what it asked for, in order; items of its maps, and what was refused, included.
        state: ``turn.state`` as the next turn would see it: unchanged if this one failed.
        rows: what it added to the transcript, as dicts of ``role`` and ``text``; its own outcome is not among them.
        progress: each call of ``turn.progress``.
        usage: the sum of its own ``turn.add_usage``; that of its children is not in it.
        yielded: it ended by ``turn.yield_()``. ``waits_for``: ``message`` if that waits for one, too.
        unheard: ends of children that it was not given. A wake turn is started with them: ``run_turn(agent,
            completions=ran.unheard, state=ran.state)``.
        stopped: run ids of children that it stopped.
    """

    result: Result[Any]
    spawned: tuple[SpawnRequest, ...]
    state: dict[str, Any]
    rows: tuple[dict[str, str], ...]
    progress: tuple[ProgressSaid, ...]
    usage: Usage
    yielded: bool
    unheard: tuple[Completion, ...]
    stopped: tuple[str, ...]
    waits_for: str = ""


def run_turn(
    agent: Any,
    text: str = "",
    *,
    input: Any = None,
    children: Mapping[str, Any] | None = None,
    state: Mapping[str, Any] | None = None,
    history: Iterable[tuple[str, str]] = (),
    session: Mapping[str, Any] | None = None,
    completions: Iterable[Completion] = (),
    kind: RunKind | str | None = None,
    index: int | None = None,
    tools: Mapping[str, Any] | None = None,
    auth: Mapping[str, Any] | None = None,
    sender: Sender | Mapping[str, Any] | None = None,
    steered: Iterable[str] = (),
    channel: Channel | None = None,
) -> TurnRun:
    """Run one turn of an agent in this thread: no Ray, no runtime, no limits; its children are made up by the test.

    Example::

        import openclaw_ray as oc
        from openclaw_ray.testing import run_turn

        @oc.agent
        async def lead(turn: oc.Turn) -> str:
            await turn.spawn("find sources", agent_id="finder")
            [found] = await turn.join()
            return f"found: {found.text}"

        ran = run_turn(lead, "go", children={"finder": "three papers"})
        assert ran.result.text == "found: three papers"
        assert [request.task for request in ran.spawned] == ["find sources"]

    The agent itself is run, not a copy, so mocks and breakpoints in it work. What it returns is pickled, ``turn.state``
    goes through JSON, as on a cluster. Depth, caps and allowlists are not looked at, and tools are
    those of such a session where nothing is configured: `LocalRuntime` has the rules.

    Args:
        agent: a function with `agent`, or an `Agent` class.
        text: ``turn.text``; a short repr of the input if empty, as for a spawn.
        input: ``turn.input``, as it is.
        children: for each task text, or agent id, what a child answers: what it returns (a `Result` counts as it is),
            an exception that it raises, or a function that is given the `SpawnRequest` and returns or raises either. A
            task text goes before an agent id. A message that the turn sends is answered so, too, by its text or by the
            key, label or agent that it is sent to. `SpawnForbidden` or `SpawnError` have the spawn itself refused. All
            have ended when they are asked for.
        state: ``turn.state`` at the beginning.
        history: rows of the transcript before this turn, as (role, text).
        session: fields of ``turn.session``: ``key``, ``session_id``, ``depth``, ``role``, ``label``, ``requester_key``,
            ``cwd``, ``workspace``, ``model``, ``thinking``, ``context``, ``attachments`` (paths).
        completions: ends of earlier children, for a turn that was started for them.
        kind: ``turn.kind``; ``wake`` with completions, else ``task``.
        index: ``turn.index``, for a map's item.
        tools: for each tool that is not to be called itself, what it returns, an exception that it raises, or a
            function that is given the call's parameters by name and returns or raises either. A call is read first, as
            ever; the other tools are real, those with Ray options run plainly.
        auth: credentials for ``turn.auth``: ``{"anthropic": "a made-up key"}``, or a whole store, see `LocalRuntime`.
        steered: texts of messages that ``turn.messages()`` finds, all of them with its first look.
        sender: who wrote the text, ``turn.sender``; there are no rules for senders here.
        channel: where children that are spawned with ``thread`` get a conversation, and what they answer is said.
            Nobody can be talked with there: they have ended when they are asked for.

    Raises:
        AssertionError: the turn spawned what ``children`` has no answer for, whatever the agent made of that; or an
            answer raised it.
        TypeError: ``agent`` is no agent, it has no tool of a name in ``tools``, or ``session`` has a field that there
            is not.
        StateTooLarge: ``state`` has more than 64 KB.
    """
    info = agent_info(agent)
    ends = tuple(completions)
    spec = _spec(info.id, text, input, session or {}, kind or (RunKind.WAKE if ends else RunKind.TASK), index)
    before = None if state is None else dump_state(dict(state), None)
    spec = replace(
        spec,
        state=before,
        sender=None if sender is None else Sender.of(sender),
        bindings=Bindings() if channel is not None and channel.binds else None,
    )
    rows = [Row(spec.session_id, 0, number, role, said, spec.created) for number, (role, said) in enumerate(history)]
    memory = ProcessMemory()
    port = AnsweringPort(spec, children or {}, rows, memory, auth_store(auth), tuple(steered), channel)
    for done in ends:
        port.adopt(done)

    stubs = stubbed_catalog(tools or {})
    stubs(info.tools)

    def run() -> tuple[Ended, Result[Any]]:
        with standing_in(memory):
            runner = TurnRunner(catalog=stubs)
            files = tuple((session or {}).get("attachments", ()))
            ended = runner.run(spec, agent, port, input=input, completions=ends, attachments=files)
            runner.loop.tidy()
            runner.loop.close()
            return ended, result_of(ended.outcome, ended.held, memory)

    ended, result = _beside_the_loop(run)
    if port.unexpected is not None:
        raise port.unexpected
    after = before if ended.state is None else ended.state
    return TurnRun(
        result=replace(
            result,
            usage=port.usage,
            run_id=spec.run,
            session_key=spec.session_key,
            runtime_ms=round(ended.runtime * 1000),
            index=index,
        ),
        spawned=tuple(port.spawned),
        state={} if after is None else json.loads(after),
        rows=tuple({"role": row.role, "text": row.text} for row in port.rows),
        progress=tuple(port.said),
        usage=port.usage,
        yielded=ended.yielded,
        unheard=port.unheard(),
        stopped=tuple(port.stopped),
        waits_for=ended.waits_for,
    )


def _spec(
    agent_id: str, text: str, input: Any, session: Mapping[str, Any], kind: RunKind | str, index: int | None
) -> Spec:
    unknown = sorted(set(session) - _SESSION)
    if unknown:
        raise TypeError(f"session has no field {unknown[0]!r}; there are {', '.join(sorted(_SESSION))}")
    if not text.strip() and input is not None:
        text = short_repr(input)
    session_id = session.get("session_id", "test-session")
    given = {name: value for name, value in session.items() if name in _FACTS}
    return Spec(
        run="test-run",
        activation=f"{session_id}.1",
        number=1,
        session_key=session.get("key", f"agent:{agent_id}:subagent:test"),
        session_id=session_id,
        agent_id=agent_id,
        bundle="",
        kind=RunKind(kind).value,
        turn=1,
        text=text,
        depth=session.get("depth", 1),
        role=session.get("role", "orchestrator"),
        label=session.get("label"),
        requester=session.get("requester_key", "agent:main:main"),
        created=time.time(),
        index=index,
        task=text,
        facts=SessionFacts(**given) if given else None,
    )


def _beside_the_loop(run: Any) -> tuple[Ended, Result[Any]]:
    """Run it here, or, if this thread runs an event loop (an async test), in a thread that is waited for."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        out: tuple[Ended, Result[Any]] = run()
        return out
    box: list[tuple[Ended, Result[Any]]] = []
    thread = threading.Thread(target=lambda: box.append(run()), name="openclaw-turn")
    thread.start()
    thread.join()
    return box[0]
