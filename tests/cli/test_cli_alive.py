"""Which live runtimes commands see: those that can be reached from here, and no strangers of another Ray."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openclaw_ray.actors import names
from openclaw_ray.cli.alive import alive_names, names_at
from openclaw_ray.cli.main import run
from openclaw_ray.core.errors import RuntimeNotFound
from openclaw_ray.runtime import cluster, opening
from openclaw_ray.runtime.cluster import Guest
from openclaw_ray.store.places import JOURNAL, list_runtimes
from openclaw_ray.store.statelock import StateLock


@pytest.fixture
def two_rays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``ours`` is in the Ray at a:1, which also has ``remote`` of another machine; ``strange`` is in the one at b:2."""
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.setenv("RAY_ADDRESS", "")  # what a command sets is taken back
    for name, address in (("ours", "a:1"), ("strange", "b:2")):
        folder = tmp_path / "ray" / name
        folder.mkdir(parents=True)
        (folder / JOURNAL).touch()
        StateLock(folder, name, address).acquire()
    monkeypatch.setattr(cluster, "attach", lambda **_: Guest(False, "a:1"))
    monkeypatch.setattr(names, "runtimes_alive", lambda: ("ours", "remote"))


def test_without_an_address_all_of_this_machine_are_seen(two_rays: None) -> None:
    assert alive_names() == ["ours", "strange"]


def test_with_an_address_those_of_that_ray_alone(two_rays: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "a:1")
    assert alive_names() == ["ours", "remote"]


def test_one_of_that_ray_whose_registry_is_away_is_seen(two_rays: None) -> None:
    assert names_at("b:2", (), list_runtimes()) == ["strange"]


def test_status_tells_nothing_of_strangers(
    two_rays: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def row(name: str) -> dict[str, object]:
        return {"name": name}

    monkeypatch.setattr("openclaw_ray.cli.status._row", row)
    assert run(["status", "--address", "a:1", "--json"]) == 0
    assert [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()] == ["ours", "remote"]


def test_a_command_without_a_name_offers_what_it_could_reach(
    two_rays: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "a:1")
    assert run(["top", "--once"]) == 2
    assert "2 are alive in the Ray at RAY_ADDRESS (ours, remote)" in capsys.readouterr().err


@pytest.mark.parametrize(("address", "hint"), [("", "alive: ours, strange"), ("auto", "alive: none")])
def test_the_hint_after_an_unknown_name_has_no_strangers(
    two_rays: None, address: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(**_: object) -> None:
        raise opening.RayUnreachable("auto", "none runs here")

    monkeypatch.setenv("RAY_ADDRESS", address)
    monkeypatch.setattr(opening, "attach", nowhere)
    with pytest.raises(RuntimeNotFound) as caught:
        opening.join("new", "stop")
    assert sorted(caught.value.known) == ([] if address else ["ours", "strange"])
    assert hint.partition(":")[0] in str(caught.value)
