"""Signals and a broken pipe, one rule each; every process exit is only recorded."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator

import pytest

from openclaw_ray.cli import interrupt as module
from openclaw_ray.cli.exits import Interrupted
from openclaw_ray.cli.interrupt import Interrupt

WAIT = 20.0


class Watched:
    """An `Interrupt` with everything it does recorded, a clock set by hand, and events to wait on."""

    def __init__(self, output_fd: int | None = None) -> None:
        self.now = 100.0
        self.exits: list[int] = []
        self.notes: list[str] = []
        self.stops = 0
        self.stopped, self.forced, self.exited = threading.Event(), threading.Event(), threading.Event()
        self.noted = threading.Event()
        self.interrupt = Interrupt(exit=self._exit, clock=lambda: self.now, output_fd=output_fd)
        self.interrupt.note = self._note

    def attach(self) -> None:
        self.interrupt.attach(stop=self._stop, force=self.forced.set)

    def press(self, number: int = signal.SIGINT) -> None:
        os.kill(os.getpid(), number)

    def _stop(self) -> None:
        self.stops += 1
        self.stopped.set()

    def _note(self, text: str) -> None:
        self.notes.append(text)
        self.noted.set()

    def _exit(self, code: int) -> None:
        self.exits.append(code)
        self.exited.set()


@pytest.fixture
def watched() -> Iterator[Watched]:
    watch = Watched()
    with watch.interrupt:
        yield watch


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_stops_the_tree_and_raises_nothing(watched: Watched, number: int) -> None:
    watched.attach()
    watched.press(number)
    assert watched.stopped.wait(WAIT)
    assert watched.interrupt.exit_code == 130
    assert watched.interrupt.stopping.is_set()
    assert select.select([watched.interrupt.stop_fd], [], [], WAIT)[0]
    assert watched.noted.wait(WAIT)
    assert "once more" in watched.notes[0]
    assert watched.exits == []


def test_a_second_signal_ends_by_force_at_once(watched: Watched) -> None:
    watched.attach()
    watched.press()
    assert watched.stopped.wait(WAIT)
    watched.now += 1
    watched.press()
    assert watched.exited.wait(WAIT)
    assert watched.forced.is_set()
    assert watched.exits == [130]
    assert watched.stops == 1


def test_two_signals_of_one_press_are_one(watched: Watched) -> None:
    watched.attach()
    watched.press(signal.SIGINT)
    assert watched.stopped.wait(WAIT)
    watched.now += module.SAME_PRESS_SECONDS / 2
    watched.press(signal.SIGTERM)
    watched.now += 1
    watched.press(signal.SIGINT)
    assert watched.exited.wait(WAIT)
    assert watched.exits == [130]


def test_a_force_that_hangs_does_not_hold_up_the_exit(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FORCE_SECONDS", 0.05)
    hanging = threading.Event()
    watched.interrupt.attach(stop=lambda: None, force=lambda: hanging.wait(WAIT))
    watched.press()
    assert watched.noted.wait(WAIT)
    watched.now += 1
    watched.press()
    assert watched.exited.wait(WAIT)
    hanging.set()


def test_a_drain_that_takes_too_long_ends_by_force(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DRAIN_SECONDS", 0.05)
    watched.attach()
    watched.press()
    assert watched.exited.wait(WAIT)
    assert watched.forced.is_set()
    assert watched.exits == [130]


def test_a_stop_that_fails_is_told_and_ended_by_force(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DRAIN_SECONDS", 0.05)

    def stop() -> None:
        raise RuntimeError("no registry")

    watched.interrupt.attach(stop=stop, force=watched.forced.set)
    watched.press()
    assert watched.exited.wait(WAIT)
    assert watched.forced.is_set()
    assert any("no registry" in note for note in watched.notes)


def test_before_there_is_a_runtime_a_signal_interrupts_the_start() -> None:
    watch = Watched()
    with pytest.raises(Interrupted) as caught, watch.interrupt:  # noqa: PT012
        watch.press()
        threading.Event().wait(WAIT)
    assert caught.value.exit_code == 130


def test_a_start_that_swallowed_the_signal_is_not_used() -> None:
    watch = Watched()
    with pytest.raises(Interrupted), watch.interrupt:  # noqa: PT012
        try:
            watch.press()
            threading.Event().wait(WAIT)
        except KeyboardInterrupt:
            pass
        assert watch.noted.wait(WAIT)
        watch.attach()


def test_an_error_that_follows_from_the_interruption_leaves_as_interrupted() -> None:
    watch = Watched()
    with pytest.raises(Interrupted) as caught, watch.interrupt:  # noqa: PT012
        watch.attach()
        watch.press()
        assert watch.stopped.wait(WAIT)
        raise ValueError
    assert caught.value.exit_code == 130


def test_an_error_without_an_interruption_is_left_alone() -> None:
    watch = Watched()
    with pytest.raises(ValueError, match="mine"), watch.interrupt:
        raise ValueError("mine")


def test_the_end_of_the_reader_of_the_output_stops_everything() -> None:
    reader, writer = os.pipe()
    watch = Watched(output_fd=writer)
    with watch.interrupt:
        watch.attach()
        os.write(writer, b"row\n")
        assert not watch.interrupt.stopping.is_set()
        os.close(reader)
        assert watch.stopped.wait(WAIT)
        assert watch.interrupt.exit_code == 141
    os.close(writer)


def test_a_signal_after_a_broken_pipe_is_a_second_one() -> None:
    reader, writer = os.pipe()
    watch = Watched(output_fd=writer)
    with watch.interrupt:
        watch.attach()
        os.close(reader)
        assert watch.stopped.wait(WAIT)
        watch.now += 1
        watch.press()
        assert watch.exited.wait(WAIT)
        assert watch.exits == [141]
    os.close(writer)


def test_the_end_of_the_input_is_no_interruption(watched: Watched) -> None:
    watched.attach()
    watched.interrupt.end_input()
    watched.interrupt.end_input()
    assert watched.interrupt.stopping.is_set()
    assert select.select([watched.interrupt.stop_fd], [], [], WAIT)[0]
    assert watched.interrupt.exit_code is None


def test_a_hangup_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupt(output_fd=None) as interrupt:
            interrupt.attach(stop=lambda: None, force=lambda: None)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
