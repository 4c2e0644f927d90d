"""store.secrets: where references lead, within which bounds, and what is never told (SPEC.md I1)."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from openclaw_ray import config
from openclaw_ray.core.auth import Ref, SecretProvider, SecretRules
from openclaw_ray.core.auth._secrets import ref_of
from openclaw_ray.store.secrets import SecretReader
from openclaw_ray.testing import eventually

SECRET = "sk-made-up-0123456789"


def reader(provider: SecretProvider, env: dict[str, str] | None = None) -> SecretReader:
    return SecretReader(SecretRules({"p": provider}), env or {})


def read(provider: SecretProvider, name: str, env: dict[str, str] | None = None) -> str:
    """The secret, or why it is not there; the text never has anything of what was read."""
    secrets, ref = reader(provider, env), Ref(provider.source, name, "p")
    why = secrets.missing(ref)
    if why is None:
        return secrets.secret(ref)
    assert SECRET not in why
    assert why.startswith("secrets.providers.p: ")
    assert not secrets.reachable(ref) or provider.source == "exec"
    return why.removeprefix("secrets.providers.p: ")


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    file = tmp_path / "secrets.json"
    file.write_text(f'{{"a/b": {{"keys": ["no", "{SECRET}"], "number": 7}}, "~": "tilde"}}')
    file.chmod(0o600)
    return file


def program(folder: Path, body: str) -> str:
    """A program that reads what it is asked, in ``asked``, and does ``body``."""
    file = folder / "gives"
    head = f"#!{sys.executable} -IS\nimport json, os, sys, time\nasked = json.loads(sys.stdin.read())\n"
    file.write_text(head + body)
    file.chmod(0o700)
    return str(file)


def say(value: str = SECRET) -> str:
    answer = f'{{"protocolVersion": 1, "values": {{asked["ids"][0]: "{value}"}}}}'
    return f"print(json.dumps({answer}))\n"


# ---------------------------------------------------------------------- references


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"source": "env", "provider": "default", "id": "A_KEY"}, Ref("env", "A_KEY", "default")),
        ({"source": "env", "id": "_A"}, Ref("env", "_A")),
        ({"source": "env", "id": "a key"}, None),
        ({"source": "file", "provider": "f", "id": "/a~1b/keys/1"}, Ref("file", "/a~1b/keys/1", "f")),
        ({"source": "file", "id": "value"}, Ref("file", "value")),
        ({"source": "file", "id": "a/b"}, None),
        ({"source": "file", "id": "/a~2"}, None),
        ({"source": "exec", "provider": "v", "id": "team/openai#key"}, Ref("exec", "team/openai#key", "v")),
        ({"source": "exec", "id": "a/../b"}, None),
        ({"source": "exec", "id": "-rf"}, None),
        ({"source": "exec", "id": "$(id)"}, None),
        ({"source": "exec", "provider": "V V", "id": "a"}, None),
        ({"source": "store", "id": "A"}, Ref("store", "A")),
        ({"source": ["env"], "id": "A"}, None),
        ({"source": "env", "id": "A" * 2000}, None),
        ({}, None),
    ],
)
def test_a_reference_is_typed(given: dict[str, Any], found: Ref | None) -> None:
    assert ref_of(given) == found


def test_a_provider_is_of_the_references_source_and_only_the_environment_needs_none() -> None:
    rules = SecretRules({"both": SecretProvider("exec", command="/x")}, {"file": "both", "env": "both"})
    secrets = SecretReader(rules, {"A": SECRET})
    assert secrets.missing(Ref("env", "A")) is None  # the default's name is another source's: the built-in one
    assert secrets.missing(Ref("env", "A", "other")) == "secrets.providers.other is not set with source env"
    assert secrets.missing(Ref("file", "/a")) == "secrets.providers.both is not set with source file"
    assert secrets.missing(Ref("store", "A")) == "secrets.providers.default is not set with source store"
    assert secrets.reachable(Ref("exec", "a", "both"))  # nothing is run to find out


def test_an_allowlist_is_kept_to_and_nothing_is_not_a_secret() -> None:
    listed = SecretProvider("env", allowlist=("A",))
    assert read(listed, "A", {"A": f" {SECRET}\n", "B": SECRET}) == SECRET
    assert read(listed, "B", {"B": SECRET}) == "its name is not on the allowlist"
    assert read(SecretProvider("env", allowlist=()), "A", {"A": SECRET}) == "its name is not on the allowlist"
    assert read(listed, "A", {"A": "  "}) == "it is empty, or not there"
    assert read(SecretProvider("store"), "A") == "this source is not read here"


# ---------------------------------------------------------------------- files


def test_a_file_is_asked_by_pointer_or_is_the_secret(kept: Path, tmp_path: Path) -> None:
    whole = SecretProvider("file", path=str(kept))
    assert read(whole, "/a~1b/keys/1") == SECRET
    assert read(whole, "/~0") == "tilde"
    for pointer in ("/a", "/a~1b/keys/2", "/a~1b/keys/x", "/a~1b/keys/1/0"):
        assert read(whole, pointer) == "the file has nothing there"
    assert read(whole, "/a~1b/number") == "what is there is no text but int"
    assert "mode singleValue" in read(whole, "value")
    single = tmp_path / "one"
    single.write_text(f"{SECRET}\n")
    single.chmod(0o400)
    assert read(SecretProvider("file", path=str(single), single=True), "value") == SECRET
    assert "singleValue" in read(SecretProvider("file", path=str(single), single=True), "/a")
    assert read(SecretProvider("file", path=str(single)), "/a") == "the file is not JSON"


def test_a_file_that_others_can_have_changed_or_read_is_not_taken(kept: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(kept)
    assert read(SecretProvider("file", path=str(link)), "/~0") == "the file is a symbolic link"
    kept.chmod(0o640)
    assert read(SecretProvider("file", path=str(kept)), "/~0") == "the file has mode 0640; chmod 600 it"
    kept.chmod(0o600)
    os.link(kept, tmp_path / "other")
    assert "several names" in read(SecretProvider("file", path=str(kept)), "/~0")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    assert read(SecretProvider("file", path=str(pipe)), "/a") == "the file is no regular one"  # and nothing waits
    assert read(SecretProvider("file", path="secrets.json"), "/a") == "path is not absolute"
    assert read(SecretProvider("file", path=str(tmp_path / "no")), "/a").startswith("the file cannot be opened: No ")
    assert read(SecretProvider("file"), "/a") == "path is not set"


def test_no_more_of_a_file_is_read_than_its_bound(kept: Path) -> None:
    size = kept.stat().st_size
    assert read(SecretProvider("file", path=str(kept), most=size), "/~0") == "tilde"
    assert read(SecretProvider("file", path=str(kept), most=size - 1), "/~0").startswith("the file has more than")
    kept.write_bytes(b"\xff" + SECRET.encode())
    assert read(SecretProvider("file", path=str(kept)), "/~0") == "it is no UTF-8"


# ---------------------------------------------------------------------- programs


def test_a_program_is_asked_without_a_shell_and_with_no_more_environment_than_is_said(tmp_path: Path) -> None:
    body = (
        "seen = dict(asked, args=sys.argv[1:], env=sorted(set(os.environ) - {'LC_CTYPE'}), cwd=os.getcwd())\n"
        'print(json.dumps({"protocolVersion": 1, "values": {asked["ids"][0]: json.dumps(seen)}}))\n'
    )
    given = SecretProvider(
        "exec", command=program(tmp_path, body), args=("$HOME", "a b"), env={"B": "2"}, pass_env=("A", "NOT_THERE")
    )
    assert json.loads(read(given, "team/key", {"A": "1", "HOME": "/h", "TOKEN": SECRET})) == {
        "protocolVersion": 1,
        "provider": "p",
        "ids": ["team/key"],
        "args": ["$HOME", "a b"],
        "env": ["A", "B"],
        "cwd": "/",
    }


@pytest.mark.parametrize(
    ("body", "json_only", "says"),
    [
        (say(), True, SECRET),
        (say(""), True, "it is empty, or not there"),
        (f"print('{SECRET}')\n", False, SECRET),
        (f"print('{SECRET}')\n", True, "its answer is not JSON"),
        (f"print('{{{SECRET}')\n", False, "its answer is not JSON"),
        ('print(json.dumps({"protocolVersion": 2, "values": {}}))\n', True, "its answer is not of protocolVersion 1"),
        ('print("[]")\n', True, "its answer is not of protocolVersion 1"),
        ('print(json.dumps({"protocolVersion": 1, "values": {"other": "x"}}))\n', True, "it has no such secret"),
        ('print(json.dumps({"protocolVersion": 1, "values": {asked["ids"][0]: 7}}))\n', True, "it has no such secret"),
        (f"sys.stderr.write('{SECRET}')\n{say()}sys.exit(3)\n", True, "its command has failed with status 3"),
        ("print('x' * 5000)\n", False, "its command said more than 4096 bytes (maxOutputBytes)"),
        ("sys.stdout.buffer.write(b'\\xff')\n", False, "it is no UTF-8"),
    ],
)
def test_what_a_program_may_answer(tmp_path: Path, body: str, json_only: bool, says: str) -> None:
    given = SecretProvider("exec", command=program(tmp_path, body), json_only=json_only, most=4096)
    assert read(given, "key") == says


@pytest.mark.parametrize(
    ("quiet", "says"), [(None, "more than 0.8 s (timeoutMs)"), (0.3, "0.3 s of silence (noOutputTimeoutMs)")]
)
def test_a_program_that_takes_too_long_is_ended_with_all_that_it_started(
    tmp_path: Path, quiet: float | None, says: str
) -> None:
    body = (
        "import subprocess\nchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\ntime.sleep(60)\n"
    )
    given = SecretProvider("exec", command=program(tmp_path, body), timeout=0.8, quiet=quiet)
    began = time.monotonic()
    assert read(given, "key") == f"its command took {says}"
    assert time.monotonic() - began < 10
    if (tmp_path / "pid").exists() and (pids := (tmp_path / "pid").read_text().split()):
        eventually(lambda: not any(_runs(int(pid)) for pid in pids))


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_program_that_leaves_its_answer_open_is_ended_at_its_time(tmp_path: Path) -> None:
    body = f"{say()}sys.stdout.flush()\nos.close(1)\ntime.sleep(60)\n"
    given = SecretProvider("exec", command=program(tmp_path, body), timeout=1.0)
    assert read(given, "key") == "its command took more than 1 s (timeoutMs)"


def test_only_a_program_that_nobody_else_can_change_is_run(tmp_path: Path) -> None:
    command = program(tmp_path, say())
    link = tmp_path / "link"
    link.symlink_to(command)
    for path, says in (
        (str(link), "a symbolic link"),
        ("gives", "not an absolute path"),
        (str(tmp_path / "no"), "cannot be found"),
        (str(tmp_path), "no program"),
        (None, "not an absolute path"),
    ):
        assert says in read(SecretProvider("exec", command=path), "key")
    assert "trustedDirs" in read(SecretProvider("exec", command=command, trusted_dirs=("/usr/bin",)), "key")
    assert read(SecretProvider("exec", command=command, trusted_dirs=("/usr", str(tmp_path))), "key") == SECRET
    os.chmod(command, 0o722)
    assert "others can write to its command" in read(SecretProvider("exec", command=command), "key")
    os.chmod(command, 0o600)
    assert "no program" in read(SecretProvider("exec", command=command), "key")


# ---------------------------------------------------------------------- configuration


def test_the_configuration_says_where_they_are_and_hides_what_programs_are_passed(tmp_path: Path) -> None:
    said = {
        "ray": {"auth": {"dir": str(tmp_path)}},
        "secrets": {
            "providers": {
                "f": {"source": "file", "path": "~/s.json", "mode": "singleValue", "timeoutMs": 100, "maxBytes": 9},
                "x": {"source": "exec", "command": "/x", "passEnv": ["PATH", "VAULT_TOKEN"], "noOutputTimeoutMs": 50,
                      "env": {"A": "${B}"}, "maxOutputBytes": 8, "jsonOnly": False, "args": ["a", "a"]},
                "e": {"source": "env", "allowlist": []},
            },
            "defaults": {"exec": "x"},
        },
    }  # fmt: skip
    loaded = config.load(said, env={"B": SECRET})
    rules = loaded.agent_limits("main").auth
    assert rules is not None
    assert rules.secrets == SecretRules(
        {
            "f": SecretProvider("file", path="~/s.json", single=True, timeout=0.1, most=9),
            "x": SecretProvider(
                "exec", command="/x", pass_env=("PATH", "VAULT_TOKEN"), quiet=0.05, env={"A": SECRET}, most=8,
                json_only=False, args=("a", "a"),
            ),
            "e": SecretProvider("env", allowlist=()),
        },
        {"exec": "x"},
    )  # fmt: skip
    assert SECRET not in repr(rules)
    assert loaded.secret_env == ("VAULT_TOKEN",)
    with pytest.raises(config.ConfigError, match=r"secrets\.providers\.f\.timeoutMs"):
        config.load({"secrets": {"providers": {"f": {"source": "file", "timeoutMs": 0}}}}, env={})
    with pytest.raises(config.ConfigError, match=r"secrets\.providers\.f\.mode"):
        config.load({"secrets": {"providers": {"f": {"source": "file", "mode": "singlevalue"}}}}, env={})
