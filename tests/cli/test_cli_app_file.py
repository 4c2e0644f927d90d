"""``--app``: what can be wrong with a file of agents, and that each fault is told with a way out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from openclaw_ray.cli.app_file import load_app
from openclaw_ray.cli.exits import CommandError

AGENT = "import openclaw_ray as oc\n@oc.agent(id='{0}')\ndef {0}(turn):\n    return turn.text\n"


def write(folder: Path, name: str, source: str) -> str:
    (folder / name).write_text(source)
    return str(folder / name)


def test_the_agents_of_a_file_are_known_by_their_ids(tmp_path: Path) -> None:
    path = write(tmp_path, "my_app.py", AGENT.format("one") + AGENT.format("two") + "alias = one\n")
    app = load_app(path)
    assert list(app.agents) == ["one", "two"]
    assert app.pick("two") == "two"
    assert sys.modules["my_app"].one is app.agents["one"]


def test_a_sibling_module_is_importable_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    write(tmp_path, "my_sibling.py", AGENT.format("sibling"))
    path = write(tmp_path, "my_app2.py", "from my_sibling import sibling\n" + AGENT.format("own"))
    app = load_app(path)
    assert list(app.agents) == ["sibling", "own"]
    assert app.pick(None) == "own"


def test_a_class_is_an_agent_and_the_base_class_and_instances_are_not(tmp_path: Path) -> None:
    source = """
from openclaw_ray import Agent

class Reviewer(Agent):
    def on_turn(self, turn):
        return "fine"

one = Reviewer()
"""
    assert list(load_app(write(tmp_path, "my_class.py", source)).agents) == ["reviewer"]


def test_the_only_agent_needs_no_choice(tmp_path: Path) -> None:
    assert load_app(write(tmp_path, "my_app3.py", AGENT.format("one"))).pick(None) == "one"


def test_several_agents_need_one(tmp_path: Path) -> None:
    app = load_app(write(tmp_path, "my_app4.py", AGENT.format("one") + AGENT.format("two")))
    with pytest.raises(CommandError, match=r"choose one with --agent \(one, two\)"):
        app.pick(None)
    with pytest.raises(CommandError, match=r"no agent 'three'; --agent can be: one, two"):
        app.pick("three")


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        ("my_bad1.py", "def f(:\n", r"my_bad1.py does not import: SyntaxError: .*my_bad1.py, line 1"),
        (
            "my_bad2.py",
            "\nimport no_such_module_here\n",
            r"No module named 'no_such_module_here' \(my_bad2.py, line 2\); install",
        ),
        ("my_bad3.py", "x = 1 / 0\n", r"ZeroDivisionError: division by zero \(my_bad3.py, line 1\)"),
        ("my_bad4.py", "import sys\nsys.exit(7)\n", r"calls sys.exit\(7\) when it is imported"),
        ("my_bad5.py", "x = 1\n", r"defines no agent; decorate a function with @openclaw_ray.agent, or"),
        (
            "my_bad6.py",
            AGENT.format("a") + AGENT.format("b").replace("id='b'", "id='a'"),
            r"two agents with the id 'a'",
        ),
        (
            "my_bad7.py",
            "import openclaw_ray as oc\nclass A_é(oc.Agent): pass\n",
            r"my_bad7.py: 'a_é' cannot be an agent id",
        ),
        (
            "my_bad8.py",
            AGENT.format("a").replace("'a'", "'A b'"),
            r"ValueError: 'A b' cannot be an agent id.*line 2",
        ),
        ("json.py", "", r"json.py would hide the module json"),
        ("pytest.py", "", r"pytest.py would hide the module pytest"),
        ("my_app.txt", "", r"no Python file"),
    ],
)
def test_a_faulty_file_is_told_with_the_reason(name: str, source: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=message) as caught:
        load_app(write(tmp_path, name, source))
    assert caught.value.exit_code == 2


def test_a_missing_file_says_where_it_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CommandError, match=f"app file gone.py is not there \\(looked in {tmp_path}\\)"):
        load_app("gone.py")
    with pytest.raises(CommandError, match="is a folder"):
        load_app(str(tmp_path))


def test_a_failed_import_leaves_no_half_module(tmp_path: Path) -> None:
    with pytest.raises(CommandError):
        load_app(write(tmp_path, "my_half.py", "x = 1\nraise ValueError\n"))
    assert "my_half" not in sys.modules


@pytest.mark.parametrize(
    ("source", "line"), [("import no_such_module\n", 1), ("\nraise ValueError('no')\n", 2), ("\n\ndef (:\n", 3)]
)
def test_an_error_in_a_module_of_its_own_is_told_with_both_lines(tmp_path: Path, source: str, line: int) -> None:
    name = f"my_helper{line}"
    write(tmp_path, f"{name}.py", source)
    path = write(tmp_path, f"my_importing{line}.py", f"\nimport {name}\n")
    with pytest.raises(CommandError, match=rf"{name}.py, line {line}; imported by my_importing{line}.py, line 2\)"):
        load_app(path)
