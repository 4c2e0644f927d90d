"""`Runtime`: what programs hold (DESIGN.md 7). One per runtime and process; safe for threads; closes with ``with``."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from openclaw_ray.agents._asking import MISSING, accepted
from openclaw_ray.core.errors import AskTimeout, JoinTimeout, PickleRefused, ProtocolRefused
from openclaw_ray.core.mapping import OnError
from openclaw_ray.core.results import Receipt, Result
from openclaw_ray.runtime import opening
from openclaw_ray.runtime.client import TurnClient
from openclaw_ray.runtime.operating import Operating
from openclaw_ray.runtime.root_map import root_map
from openclaw_ray.runtime.stopped import answered

if TYPE_CHECKING:
    from openclaw_ray.channels import Channel
    from openclaw_ray.config import Change, Config
    from openclaw_ray.core.policy import Sender
    from openclaw_ray.runtime.service import DownReport

__all__ = ["Runtime"]


class Runtime(Operating):
    """A running tree of agent sessions, as one client of it sees it. Made by `start` or `connect`."""

    def __init__(self, opened: opening.Opened) -> None:
        super().__init__(opened.client, opened.limits, max(1, min(2 * _cpus(), opened.pool_max)))
        self._guest = opened.guest
        self._engine = opened.engine
        self._config = opened.config
        self._recovered = opened.recovered
        # before Ray's own, which was registered earlier: a program may end without closing
        self._pid = os.getpid()
        atexit.register(self._at_exit)

    # ------------------------------------------------------------------ opening

    @classmethod
    def start(
        cls,
        config: Config | str | Path | Mapping[str, Any] | None = None,
        agents: Iterable[Any] = (),
        name: str | None = None,
        state_dir: str | Path | None = None,
        if_exists: Literal["error", "connect"] = "error",
        recover: bool = False,
        runtime_env: dict[str, Any] | None = None,
        *,
        app_dir: str | Path | None = None,
        on_client_lost: Literal["stop", "keep"] = "stop",
        service: bool = False,
        channel: Channel | None = None,
    ) -> Runtime:
        """Start a runtime that this process owns: everything ends with `close`, or with the process.

        Ray is used as it is found: the host's if it is initialised, else ``RAY_ADDRESS``, else an embedded local one.

        Args:
            config: a path, a dict, a loaded `Config`, or `None` for defaults and ``OPENCLAW_CONFIG_PATH``.
            agents: functions decorated with `agent`, or `Agent` classes.
            name: gives the runtime a durable state dir under ``~/.openclaw/ray``; without one it is ``run-<8 hex>``.
            state_dir: where its state goes instead.
            if_exists: what to do when a runtime of that name is alive.
            recover: have what an earlier start of this name left un-ended go on: runs of top-level sessions and all
                below them, not those of clients. What had not begun is run; what was in a turn is resumed where its
                agent is ``resumable``, else it ends ``failed``, cause ``interrupted``. See `recovered`.
            runtime_env: Ray's, for the session processes; local folders in it are brought to each node.
            app_dir: folder put on the session processes' ``sys.path``.
            on_client_lost: whether a connected client's root is stopped when the client is gone.
            service: have it live on its own, in a Ray that is there already, until `down`. It needs a name, and is
                found by it: `connect`.
            channel: where users talk with sessions, by this process, and spawns with ``thread=True`` get their
                conversations; see `openclaw_ray.channels.Channel`.

        Raises:
            ConfigError, DuplicateAgent, AgentNotPicklable, AgentImportError: the input, before anything runs.
            RuntimeInUse: the name, or its state dir, has an opener.
            StateDirError: the state dir cannot be used.
            RayUnreachable, RayClientUnsupported: Ray.
            ValueError: ``recover`` without a name or a state dir, ``service`` without a name.
        """
        opened = opening.start(
            config,
            agents,
            name=name,
            state_dir=state_dir,
            if_exists=if_exists,
            runtime_env=runtime_env,
            app_dir=app_dir,
            on_lost=on_client_lost,
            recover=recover,
            service=service,
        )
        runtime = cls(opened)
        if channel is not None:
            runtime.serve(channel)
        return runtime

    def serve(self, channel: Channel) -> None:
        """Have users of a channel talk with sessions, by this client, as long as it is open.

        Raises:
            ProtocolRefused: in a session's turn; or this client serves one already.
        """
        self._open()
        if isinstance(self._client, TurnClient):
            raise ProtocolRefused("serve", "channels are the operator's: a session's turn cannot serve any")
        if self._client.desk is not None:
            raise ProtocolRefused("serve", f"this client serves channel {self._client.desk.channel.name!r} already")
        self._client.serve(channel)

    @staticmethod
    def down(name: str, *, keep: bool = False, force: bool = False) -> DownReport:
        """End a runtime that was started as a service, wherever it runs; see `openclaw_ray.runtime.service.down`."""
        from openclaw_ray.runtime.service import down

        return down(name, keep=keep, force=force)

    @classmethod
    def connect(cls, name: str, *, on_client_lost: Literal["stop", "keep"] = "stop") -> Runtime:
        """Join a live runtime from any driver, task or actor of the cluster.

        Inside an agent's turn the runtime is bound to that session: its depth, its caps, its policy.

        Raises:
            RuntimeNotFound: there is none of that name; the text lists those there are.
        """
        return cls(opening.join(name, on_client_lost))

    def register(self, agents: Iterable[Any], *, app_dir: str | Path | None = None) -> None:
        """Add agents to the runtime.

        Raises:
            DuplicateAgent, AgentNotPicklable, AgentImportError: as for `start`.
        """
        from openclaw_ray.agents.bundle import make_bundle
        from openclaw_ray.runtime.starting import register

        self._open()
        if isinstance(self._client, TurnClient):
            raise ProtocolRefused("register", "agents are the operator's: a session's turn cannot add any")
        bundle = make_bundle(list(agents), app_dir=None if app_dir is None else str(app_dir))
        register(self._registry(), self._config, bundle, {})
        self._knows(bundle.modules)

    def reload_config(self, config: Config | str | Path | Mapping[str, Any] | None = None) -> tuple[Change, ...]:
        """Put another configuration in force without a restart: all that can change in a running runtime, or nothing.

        Turns that run keep what they were started with, runs the timeout that they were spawned with; the next spawn
        and the next start of a queued run go by the new limits. Only the process that started the runtime can.

        Args:
            config: as for `start`.

        Returns:
            What changes, each with when it takes effect: now, or at the next start of the runtime.

        Raises:
            ConfigError, PoolTooSmall: the new configuration; the old one stays in force.
        """
        from openclaw_ray.config import load
        from openclaw_ray.runtime.reloading import reload

        self._open()
        if self._engine is None:
            raise ProtocolRefused("reload_config", "only the process that started the runtime can change its settings")
        new = load(config)
        found = reload(self._registry(), self._config, new)
        self._config = new
        return found

    # ------------------------------------------------------------------ facts

    @property
    def root_key(self) -> str:
        """Session key of this client's own root, under which its maps and spawns hang."""
        return self._client.root_key

    @property
    def ray_address(self) -> str:
        """Address of the Ray that it is in."""
        return self._guest.address

    @property
    def state_dir(self) -> Path:
        """Where the runtime keeps its state, on the node of its registry."""
        if self._engine is not None:
            return self._engine.state_dir
        return Path(self._query("info")["settings"].state_dir)

    @property
    def recovered(self) -> dict[str, int]:
        """What a start with ``recover=True`` made of runs that had not ended: how many were ``resumed``, ``requeued``,
        left ``waiting`` for their children, ``interrupted`` for good, or ended with a ``tombstone`` (SPEC.md H5)."""
        return dict(self._recovered)

    # ------------------------------------------------------------------ work

    def spawn(
        self,
        task: str = "",
        agent_id: str | None = None,
        *,
        requester: str | None = None,
        agent: str | None = None,
        input: Any = MISSING,
        label: str | None = None,
        run_timeout_seconds: float | None = None,
        expects_completion_message: bool = True,
        task_name: str | None = None,
        **params: Any,
    ) -> Receipt:
        """Start a child session and return at once.

        Args:
            task: what it is to do; the first thing it sees.
            agent_id: which agent; the default one if not given.
            requester: session key on whose behalf; `None` means this client's root.
            input: any Python object or `ObjectRef`, the child's ``turn.input``.
            label: display title; no other un-ended child of the same requester may have it.
            task_name: a handle: a-z, then a-z, 0-9, _ and -, at most 64 characters.
            params: the other parameters of ``sessions_spawn``, by their snake_case names.
                ``cwd``, ``model``, ``thinking``, ``context``, ``light_context``, ``sandbox``, ``cleanup``, ``thread``,
                ``mode``;
                ``attachments=[{"name": …, "content": text | bytes | ObjectRef}]`` are copied now, a reference is not.

        Raises:
            SpawnForbidden, SpawnError: refused; nothing was made. `TaskTooLarge`, `InvalidItem`: the task.
        """
        asked = self._spawning(
            task,
            agent_id,
            requester=requester,
            agent=agent,
            input=input,
            label=label,
            run_timeout_seconds=run_timeout_seconds,
            expects_completion_message=expects_completion_message,
            task_name=task_name,
            params=params,
            caller=self._client.requester.agent_id,
        )
        return accepted(asked.result())

    def result(self, receipt: Receipt, timeout: float | None = None) -> Result[Any]:
        """Wait for the end of a run, and give its outcome; as often as it is asked for.

        A value over 64 KB is there once, and for a child of this client's own root only.

        Raises:
            JoinTimeout: it has not ended within ``timeout`` seconds; it goes on.
            KeyError: there is no such run.
            RuntimeClosed: the runtime was closed meanwhile.
        """
        self._open()
        end = self._client.requester.expected(receipt.run_id)
        if end is None:
            return self._result_of_other(receipt, timeout)
        try:
            done = end.result(timeout)
        except FutureTimeout:
            raise JoinTimeout(timeout or 0.0, (receipt.session_key,)) from None
        self._client.requester.consume((receipt.run_id,))
        return done.result

    def _result_of_other(self, receipt: Receipt, timeout: float | None) -> Result[Any]:
        """Of a run that another requester hears of, or whose end was given out before."""
        ended = self._query("ended", receipt.run_id, *self._bound)
        if ended is None:
            try:
                ended = self._others.join(receipt.run_id).result(timeout)
            except FutureTimeout:
                raise JoinTimeout(timeout or 0.0, (receipt.session_key,)) from None
            finally:
                self._others.leave(receipt.run_id)
        return self._client.requester.read(ended).result

    def ask(
        self,
        to: str,
        text: str,
        timeout: float | None = None,
        *,
        sender: Sender | Mapping[str, Any] | None = None,
    ) -> Result[Any]:
        """Send a message to an agent's main session, or to a session by key; wait until the tree that it started has
        settled.

        A key ``agent:<id>:<name>`` that is nobody's opens a session of that agent beside its main one, with a
        transcript and a state of its own: one for each user, say (SPEC.md D1; `openclaw_ray.core.own_keys`).

        A busy session takes it after the turn that runs. ``timeout`` ends the waiting, not the run. A sub-agent's
        session takes one if its run waits for it (``waitFor``): that run goes on, and its end is waited for.

        Args:
            sender: who wrote the text, if it came in from somewhere: a `Sender`, or its fields. ``tools.toolsBySender``
                says what the turn that answers it may call, and what its children may.

        Raises:
            ValueError: ``sender`` does not say who it is.
            SpawnError: no such agent or session, and the key is none that a session is opened under.
            AskTimeout: not settled within ``timeout`` seconds.
            RunFailed, RunTimedOut, RunCancelled, RunLost: how it ended, if not well.
            Stopped: somebody stopped it, with the report of that stop; a `RunCancelled`.
        """
        key, asked = self._asking(to, text, sender=sender)
        receipt = accepted(asked.result())
        if receipt.told:
            try:
                return answered(self, self._result_of_other(receipt, timeout))
            except JoinTimeout:
                raise AskTimeout(key, receipt.run_id, timeout or 0.0) from None
        end = self._client.requester.completion(receipt.run_id)
        try:
            done = end.result(timeout)
        except FutureTimeout:
            raise AskTimeout(key, receipt.run_id, timeout or 0.0) from None
        self._client.requester.consume((receipt.run_id,))
        return answered(self, done.result)

    def map(
        self,
        agent_id: str,
        items: Iterable[Any],
        *,
        width: int | None = None,
        timeout: float | None = None,
        on_error: OnError | str = OnError.COLLECT,
        retries: int = 0,
        transcripts: Literal["all", "failed", "none"] = "all",
        map_id: str | None = None,
        failed_only: bool = False,
    ) -> list[Result[Any]]:
        """One session per item; results in the order of the items. See `imap`."""
        return list(
            self.imap(
                agent_id,
                items,
                width=width,
                timeout=timeout,
                on_error=on_error,
                retries=retries,
                transcripts=transcripts,
                map_id=map_id,
                failed_only=failed_only,
            )
        )

    def imap(
        self,
        agent_id: str,
        items: Iterable[Any],
        *,
        width: int | None = None,
        timeout: float | None = None,
        on_error: OnError | str = OnError.COLLECT,
        retries: int = 0,
        transcripts: Literal["all", "failed", "none"] = "all",
        map_id: str | None = None,
        failed_only: bool = False,
        ordered: bool = True,
    ) -> Iterator[Result[Any]]:
        """One session per item, results as a stream; memory stays flat however many items there are.

        Args:
            agent_id: who runs the items.
            items: `str` items are task texts, others ``turn.input``; pulled as there is room.
            width: sessions at once; 2 × the cluster's CPUs, at most ``pool.max``, if not given.
            timeout: each session's run timeout in seconds; 0 is none, not given is what is configured.
            on_error: ``collect`` (errors are results in place) or ``raise`` (the first one stops the others).
            retries: further runs of an item that failed, timed out or was lost.
            transcripts: which sessions keep a transcript: ``all``, those that ``failed``, or ``none``.
            map_id: names the map. A later try of that name, by whichever client of a runtime with this state dir,
                takes over what succeeded (``result.reused``) and runs the rest. It waits for what an earlier try has
                left running, and while that try's client is silent, until its lease is over. An item is known by its
                position, the agent, and its content; one whose pickle is not the same in each process, and one whose
                value was over 64 KB, runs again.
            failed_only: of a named map, run only items that failed, timed out or were lost in an earlier try. The
                results of others are taken over; one that no try ran to an end is ``cancelled``, error ``NotTried``.
            ordered: hand results out in order, or as they come.

        Raises:
            UnknownAgent: there is no such agent; nothing was started.
            MapInUse: another map of this ``map_id`` is at work; nothing was started.
            RunError: with ``on_error="raise"``.
            ValueError: an option is not as it may be; nothing was started.
        """
        self._open()
        agent = self._known_agent(agent_id, self._query("agents"))
        options = self._map_options(width, timeout, on_error, retries, transcripts, map_id, failed_only, ordered)
        named = self._named(agent, map_id, failed_only)
        return root_map(self._client.requester, agent, items, named=named, **options)

    # ------------------------------------------------------------------ closing

    def close(self, *, force: bool = False) -> None:
        """End what this client started; a runtime that `start` made ends whole. Harmless twice.

        ``force`` does not wait for anything to end by itself.
        """
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self._at_exit)
        if self._engine is None:
            self._client.close(say=not force)
        else:
            pids = self._last_look(0.5 if force else 2.0)
            # said although all of it ends: the journal is to tell that what was un-ended was stopped
            self._client.close(say=not force, timeout=0.5 if force else 2.0)
            self._engine.end()
            _sweep(pids, 0.5 if force else 2.0)
        self._watching.wait_for_none(1.0)
        self._guest.leave()

    def _at_exit(self) -> None:
        if os.getpid() != self._pid:
            return  # a fork of the program, to which nothing of this belongs
        with contextlib.suppress(Exception):  # whatever can still be wrong now, Ray's own end follows
            self.close()

    def __enter__(self) -> Runtime:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise PickleRefused("Runtime", f"use Runtime.connect({self.name!r}) in the other process")

    # ------------------------------------------------------------------ inside

    def _registry(self) -> Any:
        return self._client.courier.registry

    def _last_look(self, within: float) -> list[int]:
        """The session processes of this host; what an autoscaler was asked for is taken back."""
        import ray

        from openclaw_ray.actors.cluster_watch import ask_autoscaler

        if not ray.is_initialized():
            return []
        with contextlib.suppress(Exception):
            info = ray.get(self._registry().info.remote(), timeout=within)
            pids: list[int] = info["counts"]["pids"]
            if info["cpus_asked"]:
                ask_autoscaler(0)
            return pids
        return []


def _cpus() -> int:
    import ray

    return max(1, int(ray.cluster_resources().get("CPU", 1)))  # type: ignore[no-untyped-call]


def _sweep(pids: list[int], within: float) -> None:
    """Wait until these session processes of this host have ended, and end what their tools have left.

    Ray's raylet does the latter, but not if it is shut down itself in the same moment.
    """
    import psutil

    processes = []
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            processes.append(psutil.Process(pid))
    psutil.wait_procs(processes, timeout=within)
    for pid in pids:
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)


