"""Agents' code on its way to the session processes, and what is wrong with it said at once (DESIGN.md 7)."""

from __future__ import annotations

import importlib.util
import os
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType

import agents
import pytest
from support.programs import run_program

import openclaw_ray as oc
from openclaw_ray.core.errors import AgentImportError, AgentNotPicklable, DuplicateAgent, UnknownAgent
from openclaw_ray.runtime import starting
from openclaw_ray.testing.eventually import eventually

pytestmark = pytest.mark.ray

AtRest = Callable[[oc.Runtime], AbstractContextManager[oc.Runtime]]


@pytest.fixture(scope="module")
def _own(shared: oc.Runtime) -> Iterator[oc.Runtime]:
    with oc.Runtime.start(agents=[agents.echo], config={"ray": {"pool": {"prewarm": 1}}}) as runtime:
        yield runtime


@pytest.fixture
def own(_own: oc.Runtime, at_rest: AtRest) -> Iterator[oc.Runtime]:
    """A runtime to which agents may be added."""
    with at_rest(_own) as runtime:
        yield runtime


class App:
    """A folder with modules of unique names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = uuid.uuid4().hex[:8]
        self._made: list[str] = []

    def name(self, stem: str) -> str:
        return f"{stem}_{self.token}"

    def write(self, stem: str, source: str) -> Path:
        path = self.folder / f"{self.name(stem)}.py"
        path.write_text(textwrap.dedent(source).replace("TOKEN", self.token))
        return path

    def load(self, stem: str, source: str) -> ModuleType:
        """Write a module and import it from its file, as the command line does."""
        path = self.write(stem, source)
        spec = importlib.util.spec_from_file_location(self.name(stem), path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        self._made.append(spec.name)
        spec.loader.exec_module(module)
        return module

    def clear(self) -> None:
        for name in self._made:
            sys.modules.pop(name, None)


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    app = App(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield app
    app.clear()


# ---------------------------------------------------------------------- what works


def test_a_module_that_only_this_process_has_travels_with_its_siblings(own: oc.Runtime, app: App) -> None:
    app.write("sibling", "def shout(text):\n    return text.upper()\n")
    module = app.load(
        "flow",
        """
        import openclaw_ray as oc
        PREFIX = "said: "

        def said(text):
            return PREFIX + text

        @oc.agent(id="flow_TOKEN", spawns=False)
        def flow(turn):
            from sibling_TOKEN import shout
            return said(shout(turn.text))
        """,
    )
    own.register([module.flow])
    assert own.map(f"flow_{app.token}", ["hello"])[0].text == "said: HELLO"


def test_siblings_below_app_dir_are_found(own: oc.Runtime, app: App) -> None:
    (app.folder / "inner").mkdir()
    app.write("helper", "NUMBER = 42\n")
    sys.path.insert(0, str(app.folder))
    inner = App(app.folder / "inner")
    module = inner.load(
        "agent",
        f"""
        import openclaw_ray as oc
        import helper_{app.token}

        @oc.agent(id="inner_TOKEN", spawns=False)
        def inner(turn):
            return str(helper_{app.token}.NUMBER)
        """,
    )
    own.register([module.inner], app_dir=app.folder)
    assert own.map(f"inner_{inner.token}", ["x"])[0].text == "42"
    inner.clear()


def test_functions_made_in_functions_are_agents_too(own: oc.Runtime) -> None:
    factor = 7

    @oc.agent(id="made_here", spawns=False)
    def made(turn: oc.SyncTurn) -> int:
        return factor * int(turn.text)

    own.register([made])
    assert own.map("made_here", ["6"])[0].value == 42


def test_registering_the_same_code_again_is_no_error(own: oc.Runtime) -> None:
    own.register([agents.echo])
    assert own.map("echo", ["still here"])[0].text == "still here"


# ---------------------------------------------------------------------- what does not


def test_an_import_error_names_module_file_and_the_way_out(own: oc.Runtime, app: App, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / f"only_here_{app.token}.py").write_text("X = 1\n")
    sys.path.insert(0, str(elsewhere))
    module = app.load(
        "broken",
        """
        import openclaw_ray as oc
        import only_here_TOKEN

        @oc.agent(id="broken_TOKEN", spawns=False)
        def broken(turn):
            return str(only_here_TOKEN.X)
        """,
    )
    with pytest.raises(AgentImportError) as caught:
        own.register([module.broken])
    text = str(caught.value)
    assert f"module {module.__name__}" in text
    assert str(module.__file__) in text
    assert f"No module named 'only_here_{app.token}'" in text
    assert "runtime_env" in text
    # nothing of it is known, so that it can be registered once that has been seen to
    with pytest.raises(UnknownAgent):
        own.map(f"broken_{app.token}", ["x"])
    own.register([module.broken], app_dir=elsewhere)
    assert own.map(f"broken_{app.token}", ["x"])[0].text == "1"


def test_a_class_that_cannot_be_made_is_said_so(own: oc.Runtime) -> None:
    class Unmakable(oc.Agent):
        id = "unmakable"

        def __init__(self) -> None:
            raise RuntimeError("not today")

    with pytest.raises(AgentImportError, match=r"Unmakable\(\) raised RuntimeError: not today"):
        own.register([Unmakable])
    with pytest.raises(UnknownAgent):
        own.map("unmakable", ["x"])


def test_a_class_that_hangs_when_it_is_made_is_said_so_in_time(
    own: oc.Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hanging(oc.Agent):
        id = "hanging"

        def __init__(self) -> None:
            time.sleep(600)

    monkeypatch.setattr(starting, "_LOAD_WITHIN", 0.5)
    began = time.monotonic()
    with pytest.raises(AgentImportError, match=r"did not load and construct within 0\.5 s"):
        own.register([Hanging])
    assert time.monotonic() - began < 10
    # its process is not given to anybody else
    assert [result.text for result in own.map("echo", ["a", "b", "c"])] == ["a", "b", "c"]


def test_a_class_that_takes_its_process_along_is_said_so(own: oc.Runtime) -> None:
    class Fatal(oc.Agent):
        id = "fatal"

        def __init__(self) -> None:
            os._exit(1)

    with pytest.raises(AgentImportError, match="the session process that loaded it died"):
        own.register([Fatal])
    assert own.map("echo", ["a"])[0].text == "a"


def test_registering_waits_for_a_free_process_and_disturbs_none(own: oc.Runtime, tmp_path: Path) -> None:
    own.register([agents.hold])
    receipts = [own.spawn("wait", "hold", input=tmp_path) for _ in range(2)]
    eventually(lambda: len(list(tmp_path.glob("in-*"))) == 2, 30)

    @oc.agent(id="meanwhile", spawns=False)
    def meanwhile(turn: oc.SyncTurn) -> str:
        return "yes"

    own.register([meanwhile])
    assert own.map("meanwhile", ["?"])[0].text == "yes"
    (tmp_path / "open").touch()
    assert {own.result(receipt).text for receipt in receipts} == {"through"}


def test_two_agents_of_one_id_are_refused_with_both_origins(own: oc.Runtime) -> None:
    def one(turn: oc.SyncTurn) -> str:
        return "one"

    def two(turn: oc.SyncTurn) -> str:
        return "two"

    pair = [oc.agent(id="twice")(function) for function in (one, two)]
    with pytest.raises(DuplicateAgent, match=r"'twice' stands for two agents: .*one .* and .*two .*another id"):
        own.register(pair)
    own.register(pair[:1])
    with pytest.raises(DuplicateAgent, match=r"one .* and .*two"):
        own.register(pair[1:])
    assert own.map("twice", ["?"])[0].text == "one"


def test_a_start_with_two_agents_of_one_id_starts_nothing(shared: oc.Runtime) -> None:
    from openclaw_ray.actors.names import runtimes_alive

    before = runtimes_alive()
    pair = [oc.agent(id="twice")(lambda_) for lambda_ in (_first, _second)]
    with pytest.raises(DuplicateAgent, match=r"_first.*_second"):
        oc.Runtime.start(agents=pair)
    assert runtimes_alive() == before


def _first(turn: oc.SyncTurn) -> str:
    return "first"


def _second(turn: oc.SyncTurn) -> str:
    return "second"


def test_what_cannot_be_pickled_is_named(own: oc.Runtime, app: App) -> None:
    module = app.load(
        "locked",
        """
        import threading
        import openclaw_ray as oc
        LOCK = threading.Lock()

        @oc.agent(id="locked_TOKEN")
        def locked(turn):
            with LOCK:
                return turn.text
        """,
    )
    with pytest.raises(AgentNotPicklable, match=r"global LOCK .*cannot pickle.*inside the turn"):
        own.register([module.locked])


@pytest.mark.parametrize(
    ("thing", "word"),
    [(len, "decorate"), ("echo", "decorate"), (agents.ClassFollower(), "pass the class"), (oc.Agent, "subclass")],
)
def test_what_is_no_agent_is_refused(own: oc.Runtime, thing: object, word: str) -> None:
    with pytest.raises(TypeError, match=word):
        own.register([thing])


def test_a_failed_start_leaves_nothing(shared: oc.Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    from openclaw_ray.actors.names import runtimes_alive

    class Unmakable(oc.Agent):
        id = "unmakable"

        def __init__(self) -> None:
            raise RuntimeError("not today")

    before = runtimes_alive()
    with pytest.raises(AgentImportError, match="not today"):
        oc.Runtime.start(agents=[Unmakable], config={"ray": {"pool": {"prewarm": 1}}})
    eventually(lambda: runtimes_alive() == before, 5)


# ---------------------------------------------------------------------- a user's own script


@pytest.mark.long
def test_a_script_with_a_sibling_module_runs_from_anywhere_and_leaves_nothing(tmp_path: Path) -> None:
    app, elsewhere = tmp_path / "app", tmp_path / "elsewhere"
    app.mkdir()
    elsewhere.mkdir()
    (app / "helper.py").write_text("def double(text):\n    return text * 2\n")
    (app / "flow.py").write_text(
        textwrap.dedent(
            """
            import helper
            import openclaw_ray as oc

            @oc.agent
            def doubling(turn: oc.SyncTurn) -> str:
                return helper.double(turn.text)
            """
        )
    )
    script = app / "main.py"
    script.write_text(
        textwrap.dedent(
            """
            import json, os
            import openclaw_ray as oc
            from flow import doubling

            @oc.agent
            async def both(turn: oc.Turn) -> str:
                return "".join(result.text for result in await turn.map("doubling", ["a", "b"]))

            if __name__ == "__main__":
                config = {"agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}}
                with oc.Runtime.start(agents=[doubling, both], config=config) as rt:
                    texts = [rt.map("doubling", ["xy"])[0].text, rt.ask("both", "go").text]
                    where = str(rt.state_dir)
                import ray
                print(json.dumps({"texts": texts, "where": where, "ray": ray.is_initialized()}))
            """
        )
    )
    answer = run_program(script, cwd=elsewhere).answer()
    assert answer["texts"] == ["xyxy", "aabb"]
    assert answer["ray"] is False
    assert os.path.basename(answer["where"]).startswith("run-")
