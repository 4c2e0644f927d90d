"""Agents' code: packed here, loaded elsewhere, afresh each time."""

from __future__ import annotations

import base64
import importlib
import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fake_port import FakePort, make_spec

from openclaw_ray.agents import Agent, SyncTurn, agent
from openclaw_ray.agents._by_value import by_value
from openclaw_ray.agents.bundle import Bundle, import_check, load_bundle, make_bundle
from openclaw_ray.agents.pickling import pickle_value
from openclaw_ray.agents.run_turn import TurnRunner
from openclaw_ray.core.errors import AgentImportError, AgentNotPicklable, DuplicateAgent, UnknownAgent

Imported = Callable[..., ModuleType]

APP = """
    import helper
    from openclaw_ray.agents import agent

    class Point:
        seen = []
        def __init__(self, x): self.x = x

    COUNT = 0

    @agent
    def worker(turn):
        global COUNT
        COUNT += 1
        Point.seen.append(turn.text)
        Point.extra = getattr(Point, "extra", 0) + 1
        return {"count": COUNT, "seen": list(Point.seen), "extra": Point.extra, "help": helper.HELP}

    @agent
    def pointer(turn):
        return Point(7)
"""


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Imported:
    """Writes modules into a folder and imports the first of them, as a program would."""

    def write(name: str, folder: str = "app", **sources: str) -> ModuleType:
        root = tmp_path / folder
        for module, source in sources.items():
            file = root / (module.replace("__", "/") + ".py")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(source))
            monkeypatch.delitem(sys.modules, module.replace("__", "."), raising=False)
        monkeypatch.syspath_prepend(root)
        module = importlib.import_module(name)
        for loaded in list(sys.modules):
            if loaded.partition(".")[0] in {part.partition("__")[0] for part in sources}:
                # forgotten after the test, whatever it loads on the way
                monkeypatch.setitem(sys.modules, loaded, sys.modules[loaded])
        return module

    return write


def elsewhere(bundle: Bundle, code: str, paths: tuple[str, ...] | None = None) -> str:
    """Run code in another process, in another folder, with the bundle loaded as `loaded`."""
    head = f"""
import base64, pickle, sys
sys.path.insert(0, {os.getcwd()!r})
from openclaw_ray.agents.bundle import load_bundle
loaded = load_bundle(base64.b64decode(sys.stdin.read()), {bundle.paths if paths is None else paths!r})
"""
    done = subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(code)],
        input=base64.b64encode(bundle.data).decode(),
        capture_output=True,
        text=True,
        cwd="/",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def text_of(agent_code: Any, text: str = "t") -> Any:
    ended = TurnRunner().run(make_spec(text=text), agent_code, FakePort())
    assert ended.outcome.error is None, ended.outcome.error
    return pickle.loads(ended.outcome.value or b"")


# ---------------------------------------------------------------------- travelling


def test_an_agent_and_its_siblings_load_in_another_process(imported: Imported) -> None:
    app = imported("app", app=APP, helper="HELP = 'helped'")
    bundle = make_bundle([app.worker])
    assert (
        elsewhere(
            bundle,
            """
            class Turn: text = "t"
            print(loaded.agent("worker")(Turn))
            """,
        ).strip()
        == "{'count': 1, 'seen': ['t'], 'extra': 1, 'help': 'helped'}"
    )


def test_a_sibling_that_cannot_be_found_is_an_error_that_names_it(imported: Imported) -> None:
    app = imported("app", app=APP, helper="HELP = 'helped'")
    said = elsewhere(
        make_bundle([app.worker]),
        """
        try:
            loaded.construct("worker")
        except Exception as exc:
            print(type(exc).__name__, exc)
        """,
        paths=(),
    )
    assert said.startswith("AgentImportError")
    assert "No module named 'helper'" in said
    assert "'worker'" in said
    assert f"module app ({app.__file__})" in said
    assert "runtime_env" in said


SCRIPT = f"""
    import base64, pickle, sys
    sys.path.insert(1, {os.getcwd()!r})
    from openclaw_ray.agents import Agent, agent
    from openclaw_ray.agents.bundle import make_bundle

    def double(x): return 2 * x

    @agent
    def worker(turn): return double(turn)

    class Keeper(Agent):
        def on_turn(self, turn): return double(turn)

    print(base64.b64encode(pickle.dumps(make_bundle([worker, Keeper]))).decode())
"""


def bundle_of_a_script(script: Path, source: str = SCRIPT) -> Bundle:
    script.write_text(textwrap.dedent(source))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=60, cwd="/"
    )
    made: Bundle = pickle.loads(base64.b64decode(done.stdout))
    return made


def test_an_agent_of_a_script_goes_by_value(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    bundle = bundle_of_a_script(script)
    assert bundle.paths == (str(tmp_path),)
    assert [code.origin for code in bundle.agents] == [f"__main__:{name} ({script})" for name in ("Keeper", "worker")]
    assert elsewhere(bundle, "print(loaded.agent('worker')(21))").strip() == "42"


@pytest.mark.parametrize("there", [True, False])
def test_an_agent_of_a_script_is_the_same_one_where_it_came_by_value(tmp_path: Path, there: bool) -> None:
    """A task or an actor that starts or joins a runtime with the agents of its driver's script."""
    script = tmp_path / "script.py"
    bundle = bundle_of_a_script(script)
    code = """
        from openclaw_ray.agents.bundle import make_bundle
        again = make_bundle([loaded.agent("worker"), loaded.agent("keeper")])
        print([(code.hash, code.origin) for code in again.agents], again.paths)
    """
    if not there:  # another node may not have the script
        script.unlink()
    said = elsewhere(bundle, code)
    assert [code.hash in said for code in bundle.agents] == [True, True]
    assert said.count(str(script)) == (2 if there else 0)
    if there:
        assert said.strip().endswith(str(bundle.paths))


def test_another_script_with_an_agent_of_that_name_is_another_agent(tmp_path: Path) -> None:
    code = """
        from openclaw_ray.agents.bundle import make_bundle
        print(make_bundle([loaded.agent("worker")]).agents[0].hash)
    """
    one = bundle_of_a_script(tmp_path / "one.py")
    two = bundle_of_a_script(tmp_path / "two.py", SCRIPT.replace("2 * x", "3 * x"))
    assert elsewhere(one, code) != elsewhere(two, code)


def test_a_value_of_an_agents_class_comes_home_as_the_requesters_class(imported: Imported) -> None:
    app = imported("app", app=APP, helper="HELP = 'helped'")
    made = elsewhere(
        make_bundle([app.pointer]),
        """
        from openclaw_ray.agents.outcome import outcome_of_return
        loaded.agent("pointer")
        outcome, _ = outcome_of_return(loaded.agent("pointer")(None))
        print(base64.b64encode(outcome.value).decode())
        """,
    )
    value = pickle.loads(base64.b64decode(made))
    assert isinstance(value, app.Point)
    assert value.x == 7


def test_an_input_of_an_agents_class_is_of_that_class_in_the_session(imported: Imported) -> None:
    source = """
        import enum
        from openclaw_ray.agents import agent

        class Kind(enum.Enum):
            GOOD = 1

        @agent
        def worker(turn): return turn.input is Kind.GOOD
    """
    app = imported("app", app=source)
    bundle = make_bundle([app.worker])
    assert bundle.modules == ("app",)
    pickled = pickle_value(app.Kind.GOOD, modules=bundle.modules).data
    code = f"""
        class Turn: pass
        for _ in range(2):
            worker = loaded.agent("worker")
            Turn.input = pickle.loads({pickled!r})
            print(worker(Turn))
    """
    assert elsewhere(bundle, code).split() == ["True", "True"]


def test_modules_go_by_value_for_as_long_as_any_thread_wants_it(imported: Imported) -> None:
    from ray import cloudpickle

    app = imported("app", app=APP, helper="HELP = 1")
    with by_value(["app", "not-imported"]):
        with by_value(["app"]):
            pass
        assert "app" in cloudpickle.list_registry_pickle_by_value()
    assert "app" not in cloudpickle.list_registry_pickle_by_value()
    assert app


def test_an_installed_module_goes_by_reference(imported: Imported) -> None:
    module = imported(
        "packaged",
        folder="lib/site-packages",
        packaged="from openclaw_ray.agents import agent\n@agent\ndef worker(turn): return 1",
    )
    bundle = make_bundle([module.worker])
    assert bundle.paths == ()
    assert len(pickle.loads(bundle.data)["worker"][2]) < 100


def test_a_bundle_does_not_leave_modules_registered_by_value(imported: Imported) -> None:
    from ray import cloudpickle

    app = imported("app", app=APP, helper="HELP = 1")
    before = cloudpickle.list_registry_pickle_by_value()
    make_bundle([app.worker])
    assert cloudpickle.list_registry_pickle_by_value() == before
    cloudpickle.register_pickle_by_value(app)
    try:
        make_bundle([app.worker])
        assert "app" in cloudpickle.list_registry_pickle_by_value()
    finally:
        cloudpickle.unregister_pickle_by_value(app)


# ---------------------------------------------------------------------- loading afresh


def test_what_one_session_changes_in_the_module_the_next_does_not_see(imported: Imported) -> None:
    app = imported("app", app=APP, helper="HELP = 'helped'")
    bundle = make_bundle([app.worker])
    # in a process that does not have the module itself, as a session process
    said = elsewhere(
        bundle,
        """
        class Turn: text = "t"
        first = loaded.agent("worker")
        first(Turn)
        print(first(Turn)["count"], loaded.agent("worker")(Turn))
        """,
    )
    assert said.strip() == "2 {'count': 1, 'seen': ['t'], 'extra': 1, 'help': 'helped'}"
    assert app.COUNT == 0


def test_globals_are_fresh_in_the_process_that_made_the_bundle_too(imported: Imported) -> None:
    app = imported("app", app=APP, helper="HELP = 'helped'")
    loaded = load_bundle(*packed(make_bundle([app.worker])))
    assert text_of(loaded.agent("worker"))["count"] == 1
    assert text_of(loaded.agent("worker"))["count"] == 1
    assert app.COUNT == 0


def packed(bundle: Bundle) -> tuple[bytes, tuple[str, ...]]:
    return bundle.data, bundle.paths


def test_loading_puts_the_folders_on_the_module_path_once(imported: Imported, monkeypatch: pytest.MonkeyPatch) -> None:
    app = imported("app", app=APP, helper="HELP = 1")
    loaded = load_bundle(make_bundle([app.worker]).data, ["/one", "/two"])
    monkeypatch.setattr(sys, "path", list(sys.path))
    loaded.agent("worker")
    loaded.agent("worker")
    assert sys.path[:2] == ["/one", "/two"]
    assert sys.path.count("/one") == 1


def test_an_agent_that_is_not_in_the_bundle_is_named_with_those_that_are(imported: Imported) -> None:
    app = imported("app", app=APP, helper="HELP = 1")
    with pytest.raises(UnknownAgent, match=r"'other'.*pointer, worker"):
        load_bundle(*packed(make_bundle([app.worker, app.pointer]))).agent("other")


# ---------------------------------------------------------------------- identity


def test_the_identity_is_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        textwrap.dedent("""
            import functools, sys
            from openclaw_ray.agents import Agent, agent

            def timed(function):
                @functools.wraps(function)
                def wrapper(turn): return function(turn)
                return wrapper

            @agent
            @timed
            def worker(turn): return {"a", "b", "c"}

            def make(n):
                @agent(id=f"made-{n}")
                def inner(turn): return n
                return inner

            class Reviewer(Agent):
                names = {"x", "y", "z"}
                def on_turn(self, turn): return None

            made = [make(1), make(2)]
        """)
    )
    code = (
        f"import sys; sys.path[:0] = [{os.getcwd()!r}, {str(tmp_path)!r}]\n"
        "import app; from openclaw_ray.agents.bundle import make_bundle\n"
        "b = make_bundle([app.Reviewer, app.worker, *app.made])\n"
        "print(b.id, [a.hash for a in b.agents])"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1
    hashes = seen.pop().split("[")[1].split(", ")
    assert len(set(hashes)) == 4


def test_changed_source_is_another_identity(imported: Imported) -> None:
    source = "from openclaw_ray.agents import agent\n@agent\ndef worker(turn): return {}"
    first = make_bundle([imported("one", folder="a", one=source.format(1)).worker])
    second = make_bundle([imported("one", folder="b", one=source.format(2)).worker])
    assert first.id != second.id
    assert first.agents[0].hash != second.agents[0].hash


def test_the_same_agent_twice_is_one(imported: Imported) -> None:
    app = imported("app", app=APP, helper="HELP = 1")
    bundle = make_bundle([app.worker, app.pointer, app.worker])
    assert [code.id for code in bundle.agents] == ["pointer", "worker"]
    assert bundle.id == make_bundle([app.pointer, app.worker]).id


def test_two_agents_with_one_id_are_refused_with_both_origins(imported: Imported) -> None:
    source = "from openclaw_ray.agents import agent\n@agent(id='worker')\ndef {}(turn): return 1"
    one = imported("one", one=source.format("first"))
    two = imported("two", two=source.format("second"))
    with pytest.raises(DuplicateAgent) as caught:
        make_bundle([one.first, two.second])
    assert caught.value.origin_a == f"one:first ({one.__file__})"
    assert caught.value.origin_b == f"two:second ({two.__file__})"


def test_two_functions_of_one_maker_are_two_agents() -> None:
    def make(n: int) -> Any:
        @agent(id="made")
        def inner(turn: SyncTurn) -> int:
            return n

        return inner

    same = make(1)
    assert len(make_bundle([same, same]).agents) == 1
    assert len(make_bundle([make(1), make(1)]).agents) == 1
    with pytest.raises(DuplicateAgent):
        make_bundle([make(1), make(2)])


def test_an_agent_without_source_is_known_by_its_pickle() -> None:
    space: dict[str, Any] = {"agent": agent, "__name__": "nowhere"}
    exec("@agent\ndef typed(turn): return 1", space)
    one = make_bundle([space["typed"]])
    exec("@agent\ndef typed(turn): return 2", space)
    two = make_bundle([space["typed"]])
    assert one.agents[0].hash != two.agents[0].hash
    assert one.agents[0].origin == "nowhere:typed (no file)"
    assert one.paths == (os.getcwd(),)


# ---------------------------------------------------------------------- paths and faults


def test_the_path_is_the_folder_above_the_whole_package(imported: Imported, tmp_path: Path) -> None:
    source = "from openclaw_ray.agents import agent\n@agent\ndef worker(turn): return 1"
    module = imported("pkg.sub.mod", pkg__sub__mod=source, pkg____init__="", pkg__sub____init__="")
    bundle = make_bundle([module.worker])
    assert bundle.paths == (str(tmp_path / "app"),)
    assert make_bundle([module.worker], app_dir="/srv/program").paths == (
        "/srv/program",
        str(tmp_path / "app"),
    )


@pytest.mark.parametrize(
    ("head", "use", "named"),
    [
        ("import threading; LOCK = threading.Lock()", "LOCK", "global LOCK in bad.worker"),
        (
            "import threading; LOCK = threading.Lock()\ndef inner(): return LOCK",
            "inner()",
            "LOCK in bad.inner",
        ),
        ("OUT = open('/dev/null', 'w')", "[OUT for _ in ()]", "global OUT in bad.worker"),
    ],
)
def test_what_cannot_be_pickled_is_named(imported: Imported, head: str, use: str, named: str) -> None:
    source = f"from openclaw_ray.agents import agent\n{head}\n@agent\ndef worker(turn): return {use}"
    module = imported("bad", bad=source)
    try:
        with pytest.raises(AgentNotPicklable, match=r"(?i)cannot pickle") as caught:
            make_bundle([module.worker])
        assert named in str(caught.value)
    finally:
        if hasattr(module, "OUT"):
            module.OUT.close()


def test_what_a_class_or_a_closure_cannot_carry_is_named() -> None:
    import threading

    lock = threading.Lock()

    @agent
    def closing(turn: SyncTurn) -> Any:
        return lock

    class Holder(Agent):
        gate = lock

        def on_turn(self, turn: SyncTurn) -> None: ...

    for thing, named in ((closing, "closed-over lock"), (Holder, "attribute gate")):
        with pytest.raises(AgentNotPicklable, match=named):
            make_bundle([thing])


def test_a_class_that_cannot_be_made_fails_the_import_check() -> None:
    class Broken(Agent):
        def __init__(self) -> None:
            raise SystemExit("no key")

        def on_turn(self, turn: SyncTurn) -> None: ...

    class Fine(Agent):
        def on_turn(self, turn: SyncTurn) -> None: ...

    import_check(make_bundle([Fine]))
    with pytest.raises(AgentImportError, match=r"Broken\(\) raised SystemExit: no key") as caught:
        import_check(make_bundle([Broken, Fine]))
    assert (caught.value.agent_id, caught.value.file) == ("broken", __file__)


def test_something_that_is_no_agent_is_refused() -> None:
    with pytest.raises(TypeError, match="decorate"):
        make_bundle([print])
