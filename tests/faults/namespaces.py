"""Hosts of a made-up network: network namespaces with an address each, on one bridge, which can be cut off and healed.

They have the machine's files and processes in common; what one sends to another goes through its own wire.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

from openclaw_ray.testing.eventually import eventually

__all__ = ["Host", "Network", "why_not"]

_NET = "10.213.77"


def why_not() -> str:
    """Why there can be none on this machine; empty if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "there is no ip (iproute2)"
    made = subprocess.run(["ip", "netns", "add", "ocprobe"], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"ip netns add fails: {made.stderr.strip()}"
    _ip("netns", "del", "ocprobe")
    return ""


class Host:
    """One namespace."""

    def __init__(self, network: Network, number: int) -> None:
        self.network = network
        self.address = f"{_NET}.{number}"
        self.name = f"{network.name}-{number}"
        self.wire = f"{network.name}{number}"
        _ip("netns", "add", self.name)
        _ip("link", "add", self.wire, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        _ip("link", "set", self.wire, "master", network.name, "up")
        _ip("-n", self.name, "addr", "add", f"{self.address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", self.name, "link", "set", device, "up")
        # Ray finds its own address by what would be the way out
        _ip("-n", self.name, "route", "add", "default", "via", f"{_NET}.254")

    def command(self, *words: str) -> list[str]:
        """A command to be run there."""
        return ["ip", "netns", "exec", self.name, *words]

    def run(self, *words: str, **options: Any) -> str:
        """Run a command there to its end; gives its output."""
        done = subprocess.run(self.command(*words), capture_output=True, text=True, check=False, timeout=120, **options)
        assert done.returncode == 0, f"{words}: {done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def cut(self) -> None:
        """From now on nothing comes in or gets out."""
        _ip("link", "set", self.wire, "down")

    def heal(self) -> None:
        """The end of that."""
        _ip("link", "set", self.wire, "up")

    @property
    def pids(self) -> list[int]:
        """The processes that are there."""
        return [int(pid) for pid in _ip("netns", "pids", self.name).split()]

    def titles(self) -> list[str]:
        """What they are called."""
        found = []
        for pid in self.pids:
            try:
                found.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip())
            except OSError:  # it has ended
                continue
        return found

    def end(self) -> None:
        """End its processes, and itself."""

        def none() -> bool:
            for pid in self.pids:
                os.kill(pid, signal.SIGKILL)
            return not self.pids

        eventually(none, 20, what=f"no process in {self.name}")
        _ip("netns", "del", self.name)


class Network:
    """A bridge and the hosts on it."""

    def __init__(self) -> None:
        self.name = f"oc{os.getpid() % 100_000}"
        self.hosts: list[Host] = []
        _ip("link", "add", self.name, "type", "bridge")
        _ip("addr", "add", f"{_NET}.254/24", "dev", self.name)
        _ip("link", "set", self.name, "up")

    def host(self) -> Host:
        """One more host."""
        self.hosts.append(Host(self, len(self.hosts) + 1))
        return self.hosts[-1]

    def end(self) -> None:
        """Take all of it down."""
        try:
            for host in self.hosts:
                host.end()
        finally:
            _ip("link", "del", self.name)


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr.strip()}"
    return done.stdout
