"""Where references to secrets lead: the environment, a file, a program (SPEC.md I1; `openclaw_ray.core.auth`).

1. A file is opened as it is, without waiting: a private regular file of this user's, under one name. No more of it is
   read than ``maxBytes``.
2. A program is a private one, started without a shell, in a process group of its own, with nothing in its environment
   but what its provider says. It is told which ids are wanted, and answers within its time and size, or is ended with
   all of its group.
3. What goes wrong is told by provider and kind. Nothing that a file or program says is ever in that, and what a program
   says besides its answer is thrown away.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import stat
import subprocess
import time
from collections.abc import Mapping
from typing import Any, Final

from openclaw_ray.core.auth import Ref, SecretProvider, SecretRules, SecretSource

__all__ = ["SecretReader"]

_SECONDS: Final = 5.0
_LONGEST: Final = 20.0
"""Seconds at most, whatever is configured: a turn that asks for a credential waits for 30."""
_MOST: Final = 1 << 20
_CHUNK: Final = 64 << 10
_VERSION: Final = 1


class SecretReader:
    """Reads secrets for one answer; what it has read it keeps no longer than that.

    Args:
        rules: where they are.
        env: where references to the environment lead, and what programs may be passed of it.
    """

    def __init__(self, rules: SecretRules, env: Mapping[str, str]) -> None:
        self._rules = rules
        self._env = env
        self._read: dict[Ref, str] = {}

    def reachable(self, ref: Ref) -> bool:
        """Whether a secret may be there. What is in the environment or in a file is looked at; a program is not run."""
        if ref.source == SecretSource.EXEC:
            provider = self._rules.provider(ref)[1]
            return provider is not None and provider.command is not None
        return self.missing(ref) is None

    def missing(self, ref: Ref) -> str | None:
        """Read a secret: why it cannot be had, or `None`; then `secret` gives it."""
        if ref in self._read:
            return None
        name, provider = self._rules.provider(ref)
        path = f"secrets.providers.{name}"
        if provider is None:
            return f"{path} is not set with source {ref.source}"
        try:
            text = _look(ref, name, provider, self._env).strip()
        except _NotThere as error:
            return f"{path}: {error}"
        if not text:
            return f"{path}: it is empty, or not there"
        self._read[ref] = text
        return None

    def secret(self, ref: Ref) -> str:
        """The secret that `missing` has read.

        Raises:
            KeyError: it has not.
        """
        return self._read[ref]


class _NotThere(Exception):
    """Why not, without anything of what was read."""


def _look(ref: Ref, name: str, provider: SecretProvider, env: Mapping[str, str]) -> str:
    match ref.source:
        case SecretSource.ENV:
            if provider.allowlist is not None and ref.id not in provider.allowlist:
                raise _NotThere("its name is not on the allowlist")
            return env.get(ref.id, "")
        case SecretSource.FILE:
            return _from_file(ref, provider)
        case SecretSource.EXEC:
            return _from_program(ref, name, provider, env)
    raise _NotThere("this source is not read here")


# --------------------------------------------------------------------------- files


def _from_file(ref: Ref, provider: SecretProvider) -> str:
    if not provider.path:
        raise _NotThere("path is not set")
    raw = _content(os.path.expanduser(provider.path), provider.most or _MOST)
    text = _text(raw)
    if provider.single:
        if ref.id != "value":
            raise _NotThere('the id of a singleValue provider is "value"')
        return text
    if ref.id == "value":
        raise _NotThere('the id "value" is for mode singleValue; write a JSON pointer')
    return _at(_json(text, "the file"), ref.id)


def _content(path: str, most: int) -> bytes:
    if not os.path.isabs(path):
        raise _NotThere("path is not absolute")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        what = "is a symbolic link" if os.path.islink(path) else f"cannot be opened: {error.strerror}"
        raise _NotThere(f"the file {what}") from None
    with os.fdopen(fd, "rb") as file:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            raise _NotThere("the file is no regular one")
        if about.st_uid not in (os.geteuid(), 0):
            raise _NotThere("the file is another user's")
        if about.st_mode & 0o077:
            raise _NotThere(f"the file has mode {about.st_mode & 0o777:04o}; chmod 600 it")
        if about.st_nlink > 1:
            raise _NotThere("the file has several names (hard links); put a copy in its place")
        raw = file.read(most + 1)
    if len(raw) > most:
        raise _NotThere(f"the file has more than {most} bytes (maxBytes)")
    return raw


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        pass  # its error holds the bytes
    raise _NotThere("it is no UTF-8")


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass  # its error holds the text
    raise _NotThere(f"{what} is not JSON")


def _at(found: Any, pointer: str) -> str:
    """What is at a JSON pointer (RFC 6901)."""
    for part in pointer.split("/")[1:]:
        step = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and step in found:
            found = found[step]
        elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        else:
            raise _NotThere("the file has nothing there")
    if not isinstance(found, str):
        raise _NotThere(f"what is there is no text but {type(found).__name__}")
    return found


# --------------------------------------------------------------------------- programs


def _from_program(ref: Ref, name: str, provider: SecretProvider, env: Mapping[str, str]) -> str:
    command = _checked(provider)
    given = {each: env[each] for each in provider.pass_env if each in env} | dict(provider.env)
    asked = json.dumps({"protocolVersion": _VERSION, "provider": name, "ids": [ref.id]}).encode()
    said = _text(_answer([command, *provider.args], given, asked, provider))
    if not provider.json_only and not said.lstrip().startswith("{"):
        return said
    answer = _json(said, "its answer")
    if not isinstance(answer, dict) or answer.get("protocolVersion") != _VERSION:
        raise _NotThere(f"its answer is not of protocolVersion {_VERSION}")
    values = answer.get("values")
    value = values.get(ref.id) if isinstance(values, dict) else None
    if not isinstance(value, str):
        raise _NotThere("it has no such secret")
    return value


def _checked(provider: SecretProvider) -> str:
    """The program, if it can be trusted."""
    command = os.path.expanduser(provider.command or "")
    if not os.path.isabs(command):
        raise _NotThere("command is not an absolute path")
    try:
        about = os.lstat(command)
    except OSError as error:
        raise _NotThere(f"its command cannot be found: {error.strerror}") from None
    if not stat.S_ISREG(about.st_mode) or not os.access(command, os.X_OK):
        raise _NotThere("its command is no program, or a symbolic link to one; name the program itself")
    if about.st_uid not in (os.geteuid(), 0):
        raise _NotThere("its command is another user's")
    if about.st_mode & 0o022:
        raise _NotThere("others can write to its command; chmod go-w it")
    real = os.path.realpath(command)
    folders = [os.path.realpath(os.path.expanduser(each)) for each in provider.trusted_dirs]
    if folders and not any(os.path.commonpath([real, each]) == each for each in folders):
        raise _NotThere("its command is in none of its trustedDirs")
    return command


def _answer(command: list[str], env: dict[str, str], asked: bytes, provider: SecretProvider) -> bytes:
    """What the program answers (2)."""
    within = min(provider.timeout or _SECONDS, _LONGEST)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        raise _NotThere(f"its command cannot be run: {error.strerror}") from None
    try:
        said = _heard(process, asked, within, provider.quiet or within, provider.most or _MOST)
        if process.returncode:
            raise _NotThere(f"its command has failed with status {process.returncode}")
        return said
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        process.wait()


def _heard(process: subprocess.Popen[bytes], asked: bytes, within: float, quiet: float, most: int) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # it may not care what it is asked; so little fits into any pipe
        process.stdin.write(asked)
        process.stdin.close()
    until, said = time.monotonic() + within, bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            wait = min(quiet, until - time.monotonic())
            if wait <= 0 or not selector.select(wait):
                over = quiet >= within or time.monotonic() >= until
                took = f"more than {within:g} s (timeoutMs)" if over else f"{quiet:g} s of silence (noOutputTimeoutMs)"
                raise _NotThere(f"its command took {took}")
            chunk = os.read(process.stdout.fileno(), _CHUNK)
            if not chunk:
                break
            said += chunk
            if len(said) > most:
                raise _NotThere(f"its command said more than {most} bytes (maxOutputBytes)")
    try:
        process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise _NotThere(f"its command took more than {within:g} s (timeoutMs)") from None
    return bytes(said)
