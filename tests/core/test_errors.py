"""core.errors: one root, every field through a pickle, texts that name limit, value, path and way out."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from openclaw_ray.core import errors
from openclaw_ray.core.lifecycle import ResultStatus
from openclaw_ray.core.results import ErrorInfo, Receipt, Result, StopReport, StopRow

RECEIPT = Receipt(
    "forbidden", error="no room (agents.defaults.subagents.maxChildrenPerAgent)", value=5, maximum=5
)
REPORT = StopReport("agent:main:main", 2, 1, 0, 0, (StopRow("agent:main:main", "r1", "forced"),))
FAULTS = (errors.ConfigFault("ray.pool.mx", "unknown", "unknown key", near="max", line=3),)
FAILED = Result(
    ResultStatus.ERROR, error=ErrorInfo("ValueError", "boom"), run_id="r1", session_key="k"
).to_json()

SAMPLES: dict[type[BaseException], tuple[Any, ...]] = {
    errors.OpenClawRayError: (),
    errors.ConfigError: (FAULTS,),
    errors.CredentialStoreError: ("/x/auth-profiles.json", "not JSON: line 3"),
    errors.NoCredential: ("docs", "anthropic", ("agent: /x/auth-profiles.json",), (("anthropic:a", "expired"),)),
    errors.UnknownAgent: ("ghost", ("main", "docs")),
    errors.AudienceDenied: ("stale-lineage", "agent:main:subagent:1", "agent:main:main was reset; spawn a new session"),
    errors.UnknownLimit: ("tow", ("two",)),
    errors.LimitHeldAbove: ("api", 5),
    errors.LimitTimeout: ("api", 2.0),
    errors.DuplicateAgent: ("docs", "a.py:docs", "b.py:docs"),
    errors.AgentImportError: ("docs", "app", "/x/app.py", "No module named 'foo'"),
    errors.AgentNotPicklable: ("docs", "cannot pickle '_thread.lock'"),
    errors.DuplicateTool: ("search", "a:search (a.py)", "b:search (b.py)"),
    errors.ToolFailed: ("search", "ValueError", "boom", "Traceback: line 3"),
    errors.ToolSignatureError: ("search", "query", "it has no type"),
    errors.SpawnForbidden: (RECEIPT,),
    errors.SpawnError: (RECEIPT,),
    errors.InboxFull: (Receipt("error", error="full", limit="inbox", value=3, maximum=3, retry_after=0.5),),
    errors.SandboxUnavailable: (Receipt("error", error="no backend", limit="sandboxBackend"),),
    errors.AttachmentError: ("/x/files", "No space left on device"),
    errors.FolderError: ("/x", "No such file or directory"),
    errors.TaskTooLarge: (2_000_000, 1_048_576),
    errors.StateTooLarge: (70_000, 65_536),
    errors.CannotPlace: ({"num_gpus": 2.0}, {"num_gpus": 1.0}, "agents.entries.a.ray", {"num_gpus": 1.0}),
    errors.PoolTooSmall: (3, 5),
    errors.RuntimeInUse: ("nightly", 4711, "node-1", 1_700_000_000.0),
    errors.RuntimeNotFound: ("nightly", ("daily",), None),
    errors.RuntimeUnavailable: ("registry", 30.0, "no answer"),
    errors.RuntimeClosed: ("nightly",),
    errors.StateDirError: ("/x", "not writable"),
    errors.JournalError: ("/x/registry.sqlite", "malformed"),
    errors.MapInUse: ("nightly", 4711, "node-1", "agent:main:driver:1"),
    errors.RayUnreachable: ("10.0.0.1:6379", "refused"),
    errors.RayClientUnsupported: ("ray://10.0.0.1:10001",),
    errors.DeleteRefused: ("agent:main:main", "main"),
    errors.ResetRefused: ("agent:main:main", "busy"),
    errors.PickleRefused: ("Runtime", "it owns a thread"),
    errors.ProtocolRefused: ("step 7", "stale epoch"),
    errors.RunError: (FAILED,),
    errors.RunFailed: (FAILED,),
    errors.RunTimedOut: (FAILED | {"status": "timeout"},),
    errors.RunCancelled: (FAILED | {"status": "cancelled"},),
    errors.RunLost: (FAILED | {"status": "lost"},),
    errors.ValueLost: ("r1", "process 12 died"),
    errors.Stopped: (REPORT, FAILED | {"status": "cancelled"}),
    errors.CannotWait: ("agent:main:main",),
    errors.NotControlled: ("agent:a:subagent:1", "agent:b:subagent:2"),
    errors.NoToolsLeft: ("agent:review:main", ("tools.allow",), ("sessions_spawn", "subagents")),
    errors.ToolDenied: ("exec", "global", "tools.deny", "group:runtime", "agent:main:main"),
    errors.UnknownCall: ("sessions.abrot", ("chat.abort", "sessions.abort")),
    errors.UnknownRun: ("r1",),
    errors.DeliveryRefused: ("r1", "redeliver", "delivered"),
    errors.AskTimeout: ("agent:main:main", "r1", 5.0),
    errors.JoinTimeout: (5.0, ("r1", "r2")),
    errors.InvalidItem: (3, "cannot be pickled"),
    errors.NotInTurn: ("turn.spawn",),
    errors.SessionForbidden: ("visibility", "agent:a:main may not use agent:b:main", "tools.sessions.visibility"),
    errors.PatchRefused: ("agent:a:main", "label", "label 'x' is in use by agent:b:main"),
    errors.NothingPending: ("yield",),
    errors.Cancelled: ("stopped",),
    errors.TurnYielded: ("later", "message", "on it"),
    errors.ToolInputError: ("sessions_spawn", "task", "it is required"),
    errors.UnknownTool: ("sessions_spwan", ("agents_list", "sessions_spawn")),
}
CLASSES = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, BaseException)]


def _fields(error: BaseException) -> dict[str, Any]:
    return {name: value for name, value in vars(error).items() if not name.startswith("__")}


def test_every_class_has_a_sample() -> None:
    assert set(SAMPLES) == set(CLASSES)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_field_survives_a_pickle(cls: type[BaseException]) -> None:
    error = cls(*SAMPLES[cls])
    for back in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(back) is cls
        assert back.args == error.args == SAMPLES[cls]
        assert _fields(back) == _fields(error)
        assert str(back) == str(error)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_fields_given_by_name_are_passed_to_the_base_too(cls: type[BaseException]) -> None:
    by_place = cls(*SAMPLES[cls])
    by_name = cls(**_fields(by_place))
    assert by_name.args == by_place.args
    assert str(pickle.loads(pickle.dumps(by_name))) == str(by_place)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_text_is_readable(cls: type[BaseException]) -> None:
    text = str(cls(*SAMPLES[cls]))
    assert text or cls is errors.OpenClawRayError
    assert "object at 0x" not in text


def test_control_flow_is_outside_of_the_root() -> None:
    for cls in (errors.Cancelled, errors.TurnYielded):
        assert not issubclass(cls, Exception)


def test_everything_else_is_under_the_root() -> None:
    flow = {errors.Cancelled, errors.TurnYielded}
    assert all(issubclass(cls, errors.OpenClawRayError) for cls in CLASSES if cls not in flow)


def test_errors_can_be_raised_and_noted() -> None:
    with pytest.raises(errors.UnknownAgent) as caught:
        raise errors.UnknownAgent("ghost", ())
    caught.value.add_note("while starting")
    assert "known: none" in str(caught.value)


@pytest.mark.parametrize(
    ("status", "cls"),
    [
        (ResultStatus.ERROR, errors.RunFailed),
        (ResultStatus.TIMEOUT, errors.RunTimedOut),
        (ResultStatus.CANCELLED, errors.RunCancelled),
        (ResultStatus.LOST, errors.RunLost),
    ],
)
def test_a_result_has_the_error_of_its_status(status: ResultStatus, cls: type[errors.RunError]) -> None:
    info = ErrorInfo("ValueError", "boom", "Traceback: line 3")
    result: Result[Any] = Result(
        status, error=info, run_id="r1", session_key="agent:main:subagent:u", index=4
    )
    with pytest.raises(cls) as caught:
        result.raise_for_status()
    text = str(caught.value)
    for part in (
        "item 4",
        "r1",
        "agent:main:subagent:u",
        status.value,
        "ValueError",
        "boom",
        "Traceback: line 3",
    ):
        assert part in text
    assert (caught.value.status, caught.value.run_id) == (status, "r1")


def test_a_result_that_is_ok_has_no_error() -> None:
    with pytest.raises(ValueError, match="succeeded"):
        errors.error_for_result(Result())


def test_several_faults_are_told_one_a_line() -> None:
    text = str(errors.ConfigError((*FAULTS, errors.ConfigFault("", "file", "cannot be read"))))
    assert text.splitlines() == [
        "2 faults in the configuration:",
        "  ray.pool.mx (line 3): unknown key; did you mean max?",
        "  configuration: cannot be read",
    ]


def test_texts_name_the_way_out() -> None:
    assert "input" in str(errors.TaskTooLarge(2, 1))
    assert "ray job submit" in str(errors.RayClientUnsupported("ray://h:1"))
    assert "Runtime.connect" in str(errors.PickleRefused("Runtime", "thread"))
    assert "set pool.max to 6" in str(errors.PoolTooSmall(3, 5))
    assert "2023-11-14T22:13:20Z" in str(errors.RuntimeInUse("n", 1, "h", 1_700_000_000.0))


def test_only_what_is_short_is_named_when_nothing_can_be_placed() -> None:
    text = str(errors.CannotPlace({"num_cpus": 1, "num_gpus": 2}, {"num_cpus": 8}))
    assert "num_gpus 2 (largest node: 0)" in text
    assert "num_cpus" not in text
    each = {"num_cpus": 8, "num_gpus": 2}
    text = str(errors.CannotPlace({"num_cpus": 1, "num_gpus": 2}, each, "agents.entries.a.ray"))
    assert "num_cpus 1 (largest node: 8), num_gpus 2 (largest node: 2) together; lower agents.entries.a.ray" in text
    assert "node 10.0.0.7 (not there)" in str(errors.CannotPlace({"node:10.0.0.7": 0.001}, {"node:10.0.0.7": 0}))
