"""What is kept of a command's output: the beginning and the end, and how much was left out between."""

from __future__ import annotations

__all__ = ["HEAD", "TAIL", "KeptOutput"]

HEAD = 24 << 10
"""Bytes kept of the beginning."""
TAIL = 40 << 10
"""Bytes kept of the end, where errors are."""


class KeptOutput:
    """Bytes as they come; at most `HEAD` + `TAIL` of them stay."""

    def __init__(self) -> None:
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()
        self._read = 0

    @property
    def cut(self) -> bool:
        """Something was left out."""
        return self.total > len(self._head) + len(self._tail)

    @property
    def news(self) -> bool:
        """There is some that `since_last` has not given."""
        return self._read < self.total

    def add(self, data: bytes) -> None:
        """More of it."""
        self.total += len(data)
        room = HEAD - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data[-TAIL:]
        del self._tail[:-TAIL]

    def text(self) -> str:
        """All that is kept, as UTF-8 with what is none replaced."""
        return self._from(0)

    def since_last(self) -> str:
        """What has come since this was asked for last; of what is not kept, the notice."""
        text = self._from(self._read)
        self._read = self.total
        return text

    def _from(self, position: int) -> str:
        tail_at = self.total - len(self._tail)
        head = bytes(self._head[position:])
        tail = bytes(self._tail[max(0, position - tail_at) :])
        missing = tail_at - max(position, len(self._head))
        notice = f"\n[… {missing} bytes left out …]\n".encode() if missing > 0 else b""
        return (head + notice + tail).decode("utf-8", "replace")
