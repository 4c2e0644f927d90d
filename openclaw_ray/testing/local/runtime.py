"""`LocalRuntime`: a runtime for tests of agents, in this process and without Ray (DESIGN.md 12)."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

from openclaw_ray.agents._cloudpickle import standing_in
from openclaw_ray.agents.bundle import import_check, make_bundle
from openclaw_ray.core.clock import Clock
from openclaw_ray.core.errors import PickleRefused, RuntimeClosed
from openclaw_ray.core.events import Event
from openclaw_ray.core.keys import normalise_key
from openclaw_ray.core.results import StopReport, StopRow
from openclaw_ray.core.transcript_pages import TranscriptPage
from openclaw_ray.runtime.looking import RuntimeView
from openclaw_ray.runtime.opening import default_agent
from openclaw_ray.runtime.others import OthersEnds
from openclaw_ray.runtime.runtime import Runtime
from openclaw_ray.runtime.starting import agent_entries, fit_limits
from openclaw_ray.testing.auth import auth_store
from openclaw_ray.testing.local.client import LocalClient
from openclaw_ray.testing.local.memory import ProcessMemory
from openclaw_ray.testing.local.registry import LocalRegistry

if TYPE_CHECKING:
    from openclaw_ray.channels import Channel
    from openclaw_ray.config import Config
    from openclaw_ray.runtime.client import Client

__all__ = ["LocalRuntime"]

_MOST_SESSIONS = 64
_ACTOR_BYTES = 55 * 1024 * 1024
_CLOSE_WITHIN = 2.0


class LocalRuntime(Runtime):
    """The rules and the protocol of a real runtime, with threads of this process in place of actors.

    Agents run unchanged, and what would break on a cluster breaks here: their code, inputs and values are pickled and
    made anew for each turn, a class is constructed for each turn, ``turn.state`` goes through JSON, and the limits of
    depth, children, lanes and ``ray.pool.max`` are the real ones.

    Example::

        import asyncio

        import openclaw_ray as oc
        from openclaw_ray.testing import FakeClock, LocalRuntime, eventually

        @oc.agent(spawns=False)
        def square(turn: oc.SyncTurn) -> int:
            return turn.input ** 2

        with LocalRuntime(agents=[square]) as rt:
            assert [result.value for result in rt.map("square", [1, 2, 3])] == [1, 4, 9]

    With a `FakeClock` nothing waits: ``clock.advance(60)`` lets run timeouts of up to a minute pass. Deadlines and
    graces are of that clock; the ``timeout`` of ``ask``, ``result`` and ``turn.join`` is of real time::

        @oc.agent
        async def slow(turn: oc.Turn) -> str:
            await asyncio.sleep(3600)
            return "never"

        clock = FakeClock()
        with LocalRuntime(agents=[slow], clock=clock) as rt:
            receipt = rt.spawn("go", "slow", run_timeout_seconds=60)
            eventually(lambda: rt.runs(session=receipt.session_key, state="running"))
            clock.advance(60)
            assert rt.result(receipt).status == "timeout"

    What a process can do and a thread cannot:

    * It cannot be killed (`crash` says that it was). A turn that is *deaf* (it neither asks ``turn.check`` nor waits by
      the turn) is let go of after its grace, as one whose process is killed would be: its run ends ``cancelled`` or
      ``timed_out``, and nothing that it does counts. But its thread goes on: `StopReport` counts it as ``failed``, not
      as ``forced``, `still_running` names it, and `close` warns. With a `FakeClock` its grace is over when the clock
      was moved; until then `stop` waits.
    * It shares the process: environment, working directory, imported modules, descriptors 1 and 2. There is no clean
      check but that of its event loop, and tools' processes of a stopped turn are not ended.
    * ``turn.session.cwd`` is where a process would be; the thread is not. Attachments are in a folder of the turn's.
    * Values over 64 KB are not taken from a process and never lost with one; arrays in them are writable.

    Nothing is written to disk, and ``Runtime.connect`` finds none of these, in a turn neither.

    Args:
        agents: as for `Runtime.start`.
        config: a path, a dict, a loaded `Config`, or `None` for defaults; ``OPENCLAW_CONFIG_PATH`` is not read.
        clock: what deadlines go by; the machine's if not given.
        auth: credentials for `turn.auth`, of all agents: ``{"anthropic": "a made-up key"}``, or a whole store
            (``{"profiles": …}``) as in an ``auth-profiles.json``. It stands in for the shared store.
        channel: where users talk with sessions; `Conversations` is one in memory.

    Raises:
        ConfigError, DuplicateAgent, AgentNotPicklable, AgentImportError: the input, before anything runs.
        PoolTooSmall: limits that do not go together.
    """

    def __init__(
        self,
        agents: Iterable[Any] = (),
        config: Config | str | Path | Mapping[str, Any] | None = None,
        clock: Clock | None = None,
        auth: Mapping[str, Any] | None = None,
        channel: Channel | None = None,
    ) -> None:
        from openclaw_ray.config import load

        source = {} if config is None else dict(config) if isinstance(config, Mapping) else config
        settings = load(source)
        cpus = os.cpu_count() or 1
        limits, pool_max, _ = fit_limits(settings.runtime_limits(cpus=cpus), cpus, _MOST_SESSIONS * _ACTOR_BYTES)
        # not that of `Runtime`: it is for what `start` and `connect` have opened
        RuntimeView.__init__(self, f"local-{uuid.uuid4().hex[:8]}", limits)
        self._config = settings
        self._engine = None
        self._memory = ProcessMemory()
        self._width = max(1, min(2 * cpus, pool_max))
        self._others = OthersEnds(self)
        known = list(agents)
        with standing_in(self._memory):
            bundle = make_bundle(known) if known else None
        if bundle is not None:
            agent_entries(settings, bundle, {})
            _try_out(bundle)
        self._local = LocalRegistry(self._name, limits, pool_max, clock, auth_store(auth))
        ids = [code.id for code in bundle.agents] if bundle is not None else []
        client = LocalClient(self._local, default_agent(settings, ids), self._memory)
        self._client = cast("Client", client)
        self._local.client = client
        if bundle is not None:
            self._local.register(agent_entries(settings, bundle, {}), bundle)
            client.requester.modules = bundle.modules
        client.open()
        if channel is not None:
            client.serve(channel)

    @classmethod
    def start(cls, *args: Any, **options: Any) -> NoReturn:
        """Not for this one: it is made by its constructor."""
        raise TypeError("a LocalRuntime is made by LocalRuntime(agents=…, config=…, clock=…)")

    @classmethod
    def connect(cls, name: str, *, on_client_lost: Literal["stop", "keep"] = "stop") -> NoReturn:
        """Not for this one: nobody else can come to it."""
        raise TypeError("a LocalRuntime belongs to the test that made it; there is nothing to connect to")

    def register(self, agents: Iterable[Any], *, app_dir: str | Path | None = None) -> None:
        """Add agents; see `Runtime.register`."""
        self._open()
        with standing_in(self._memory):
            bundle = make_bundle(list(agents), app_dir=None if app_dir is None else str(app_dir))
        entries = agent_entries(self._config, bundle, self._local.agents())
        _try_out(bundle)
        self._local.register(entries, bundle)
        asker = self._client.requester
        asker.modules = (*asker.modules, *bundle.modules)

    @property
    def state_dir(self) -> Path:
        """There is none: nothing is kept on disk."""
        raise NotImplementedError("a LocalRuntime keeps its state in memory")

    # ------------------------------------------------------------------ stopping, honestly

    def stop(self, key: str, *, timeout: float | None = None) -> StopReport:
        """Stop a session and everything below it; see `Runtime.stop`.

        A turn whose thread still runs when its grace is over counts as ``failed``: nobody could end it.
        """
        return self._honest(super().stop(key, timeout=timeout))

    def stop_run(self, run_id: str, *, timeout: float | None = None) -> StopReport:
        """Stop one run and everything below it."""
        return self._honest(super().stop_run(run_id, timeout=timeout))

    def crash(self, key: str, *, noticed: bool = True) -> None:
        """Have the process of a session that is in a turn crash: its run fails, ``process_died``, and its children go
        on. The turn's thread cannot be ended; it is told to, and nothing that it does counts any more.

        Args:
            noticed: False if nobody is told and the process's record is lost, too: then nobody knows what became of
                the run. It ends ``lost`` after a minute of the clock, or with `maintain`.

        Raises:
            ValueError: it is in no turn.
        """
        self._open()
        self._local.crash(normalise_key(key), noticed=noticed)

    def still_running(self) -> list[str]:
        """Session keys of turns that were let go of, and whose threads have not ended."""
        return [turn.spec.session_key for session in self._local.still_running() if (turn := session.turn) is not None]

    def _honest(self, report: StopReport) -> StopReport:
        alive = {turn.spec.run for session in self._local.still_running() if (turn := session.turn) is not None}
        deaf = [row for row in report.rows if row.run_id in alive]
        if not deaf:
            return report
        rows = tuple(StopRow(r.session_key, r.run_id, "failed") if r in deaf else r for r in report.rows)
        return replace(
            report,
            stopped=report.stopped - len(deaf),
            forced=report.forced - len(deaf),
            failed=report.failed + len(deaf),
            rows=rows,
        )

    # ------------------------------------------------------------------ looking

    def history(self, key: str, limit: int = 100, offset: int = 0) -> list[dict[str, Any]]:
        """A page of a session's transcript; see `Runtime.history`."""
        return super().history(key, limit, offset)

    def _transcript(
        self, session: Mapping[str, Any], limit: int, offset: int = 0, anchor: str = ""
    ) -> TranscriptPage:
        return self._local.transcript(session["sessionId"], limit, offset, anchor)

    def _events_from(self, seq: int) -> Iterator[Event]:
        while not self._closed:
            for event in self._events_after(seq, 1.0):
                seq = event.seq
                yield event

    def _events_after(self, seq: int, wait: float) -> list[Event]:
        return self._local.events_after(seq, wait)

    # ------------------------------------------------------------------ closing

    def close(self, *, force: bool = False) -> None:
        """Stop what is un-ended and end all threads. Harmless twice.

        A turn has two seconds of real time to end by itself, none with ``force``; a `RuntimeWarning` names those that
        did not.
        """
        if self._closed:
            return
        self._closed = True
        grace = 0.0 if force else _CLOSE_WITHIN
        cast("LocalClient", self._client).close(_CLOSE_WITHIN)
        self._local.close(grace)
        deaf = self.still_running()
        if deaf and not force:
            warnings.warn(
                f"threads of turns still run after {grace:g} s: {', '.join(deaf)}; on a cluster their processes would "
                "have been killed. Have the agent ask turn.check() between its steps",
                RuntimeWarning,
                stacklevel=2,
            )

    def __reduce__(self) -> Any:
        raise PickleRefused("LocalRuntime", "it belongs to the test that made it")

    # ------------------------------------------------------------------ inside

    def _open(self) -> None:
        if self._closed:
            raise RuntimeClosed(self.name)

    def _query(self, method: str, *args: Any) -> Any:
        self._open()
        answer = getattr(self._local, method, None)
        if answer is None:
            raise NotImplementedError(f"a LocalRuntime does not answer {method!r}; test this on a real runtime")
        return answer(*args)

    def _find_leaks(self) -> list[str]:
        """What is left over; see `openclaw_ray.testing.leaks.find_leaks`."""
        info = self._local.info()
        counts = info["counts"]
        leaks = [
            f"session {actor}: {state}{f', run {run}' if run else ''}"
            for actor, (state, _, run) in sorted(counts["crew"].items())
            if state not in ("idle", "growing")
        ]
        leaks += [f"turn of {key}: its thread still runs" for key in self.still_running()]
        leaks += [
            f"run {row['runId']} of {row['sessionKey']}: {row['state']}"
            for row in self.runs(limit=1_000, state=["queued", "running", "paused"])
            if row["route"] != "driver"
        ]
        leaks += [f"lane {lane}: {taken} of {width} slots taken" for lane, width, taken in counts["lanes"]]
        return leaks


def _try_out(bundle: Any) -> None:
    """Load and construct each agent once, as a process of its own would (DESIGN.md 7)."""
    memory = ProcessMemory()
    with standing_in(memory), memory.inside():
        import_check(replace(bundle, paths=()))
