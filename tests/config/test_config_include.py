"""``$include``: parts in files of their own, merged as OpenClaw merges them, never from outside of the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from openclaw_ray import config
from openclaw_ray.config import Config, ConfigError, ConfigFault


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.json5").write_text(text, encoding="utf-8")
    return folder / "main.json5"


def load(folder: Path, **files: str) -> Config:
    return config.load(write(folder, **files), env={})


def faults(folder: Path, **files: str) -> tuple[ConfigFault, ...]:
    with pytest.raises(ConfigError) as caught:
        load(folder, **files)
    return caught.value.faults


def only(folder: Path, **files: str) -> ConfigFault:
    found = faults(folder, **files)
    assert len(found) == 1, found
    return found[0]


def test_a_file_stands_where_it_is_included(tmp_path: Path) -> None:
    loaded = load(tmp_path, main="{agents: {$include: './agents.json5'}}", agents="{entries: {docs: {}}}")
    assert loaded.agent_ids == ("docs",)


def test_the_keys_beside_it_win_and_lists_are_joined(tmp_path: Path) -> None:
    loaded = load(
        tmp_path,
        main="{tools: {$include: ['./a.json5', './b.json5'], deny: ['c'], profile: 'full'}}",
        a="{deny: ['a'], profile: 'minimal', sessions: {visibility: 'all'}}",
        b="{deny: ['b'], profile: 'coding'}",
    )
    tools = loaded.root.tools
    assert (tools.deny, tools.profile, tools.sessions.visibility) == (("a", "b", "c"), "full", "all")


def test_a_file_may_include_files_beside_itself(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub", one="{$include: './two.json5'}", two="{inbox: {max: 3}}")
    loaded = load(tmp_path, main="{ray: {$include: './sub/one.json5'}}")
    assert loaded.runtime_limits(cpus=1).inbox_max == 3


def test_a_fault_names_the_file_and_the_line_there(tmp_path: Path) -> None:
    found = faults(
        tmp_path,
        main="{\nray: {$include: './ray.json5', recovery: 'x'}}",
        ray="{\n\n pool: {max: 0},\n inbx: {}}",
    )
    name = str(tmp_path / "ray.json5")
    assert {(fault.path, fault.file, fault.line) for fault in found} == {
        ("ray.pool.max", name, 3),
        ("ray.inbx", name, 4),
        ("ray.recovery", None, 2),
    }
    assert f"ray.pool.max ({name}, line 3): " in str(found[-1]) + str(found[-2])


def test_a_key_written_two_times_in_an_included_file_is_refused(tmp_path: Path) -> None:
    fault = only(tmp_path, main="{ray: {$include: './ray.json5'}}", ray="{recovery: 'resume',\nrecovery: 'finalize'}")
    assert (fault.path, fault.kind, fault.line) == ("ray.recovery", "duplicate", 2)
    assert fault.file == str(tmp_path / "ray.json5")


@pytest.mark.parametrize(
    ("include", "text"),
    [
        ("'./none.json5'", "none.json5: cannot be read: No such file"),
        ("'../outside.json5'", "is outside of"),
        ("'/etc/hosts'", "is outside of"),
        ("'./main.json5'", "includes itself"),
        ("5", "must be a file name or a list of file names"),
        ("['./a.json5', 5]", "must be a file name or a list of file names"),
    ],
)
def test_what_cannot_be_included_is_told(tmp_path: Path, include: str, text: str) -> None:
    fault = only(tmp_path, main=f"{{ray: {{$include: {include}}}}}", a="{}")
    assert (fault.path, fault.kind, fault.line) == ("ray.$include", "include", 1)
    assert text in fault.text


def test_a_link_does_not_lead_outside(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret.json5").write_text("{}", encoding="utf-8")
    (inside / "link.json5").symlink_to(tmp_path / "secret.json5")
    assert "is outside of" in only(inside, main="{ray: {$include: './link.json5'}}").text


def test_a_ring_of_files_ends(tmp_path: Path) -> None:
    ring = {"a": "{$include: './b.json5'}", "b": "{$include: './a.json5'}"}
    fault = only(tmp_path, main="{ray: {$include: './a.json5'}}", **ring)
    assert "includes itself" in fault.text


def test_files_ten_deep_are_enough(tmp_path: Path) -> None:
    files = {f"f{n}": f"{{$include: './f{n + 1}.json5'}}" for n in range(1, 12)}
    fault = only(tmp_path, main="{ray: {$include: './f1.json5'}}", **files, f12="{}")
    assert "more than 10 files deep" in fault.text


def test_a_faulty_text_in_an_included_file_is_told_with_all_others(tmp_path: Path) -> None:
    found = faults(tmp_path, main="{ray: {$include: './a.json5'}, agnets: {}}", a="{\nb: c}")
    assert [(fault.path, fault.kind) for fault in found if fault.file is None] == [("agnets", "unknown")]
    (syntax,) = [fault for fault in found if fault.file is not None]
    assert (syntax.path, syntax.kind, syntax.line) == ("ray", "syntax", 2)


def test_a_list_cannot_have_keys_beside_it(tmp_path: Path) -> None:
    fault = only(tmp_path, main="{ray: {$include: './a.json5', recovery: 'resume'}}", a="[1]")
    assert "not an object" in fault.text


def test_what_comes_from_no_file_includes_nothing() -> None:
    with pytest.raises(ConfigError, match=r"\$include.*load a file"):
        config.load({"ray": {"$include": "./a.json5"}}, env={})
    with pytest.raises(ConfigError, match=r"\$include.*load a file"):
        config.loads("{$include: 'a'}")
