"""The command line of ``--exec`` with an item in it. An item can never become syntax.

* Without a shell the template is split into words first, then ``{}`` is replaced inside the words: an item
  with spaces, quotes or ``;`` stays one argument.
* With ``--shell`` the item is handed to the shell as ``$1``, and each ``{}`` of the line becomes ``"$1"``:
  the shell never parses the item, in whatever place ``{}`` stands. Inside quotes that would not give what was
  meant, so it is refused there.
* A template without ``{}`` gets the item as its last argument.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from openclaw_ray.cli.exits import CommandError

__all__ = ["ExecTemplate"]

_SHELL = "/bin/sh"
_PLACE = "{}"


@dataclass(frozen=True, slots=True)
class ExecTemplate:
    """A checked template.

    Attributes:
        words: the words of the command, or the single line for the shell.
        shell: whether it is a shell line.
    """

    words: tuple[str, ...]
    shell: bool

    @classmethod
    def parse(cls, template: str, *, shell: bool = False) -> ExecTemplate:
        """Check a template as the user wrote it.

        Raises:
            CommandError: it is empty, its quotes do not match, or ``{}`` stands inside quotes of a shell
                line.
        """
        if not template.strip():
            raise CommandError("--exec: the command is empty; for example --exec 'wc -w {}'")
        if "\0" in template:
            raise CommandError("--exec: a command cannot hold a NUL character")
        if shell:
            _refuse_quoted_place(template)
            line = template.replace(_PLACE, '"$1"') if _PLACE in template else f'{template} "$1"'
            return cls((line,), shell=True)
        try:
            words = shlex.split(template)
        except ValueError as error:
            raise CommandError(f"--exec: {error}, in: {template}") from None
        if not words:
            raise CommandError("--exec: the command is empty; for example --exec 'wc -w {}'")
        if not any(_PLACE in word for word in words):
            words.append(_PLACE)
        return cls(tuple(words), shell=False)

    def argv(self, item: str) -> list[str]:
        """The program and its arguments for ``item``."""
        if self.shell:
            return [_SHELL, "-c", self.words[0], _SHELL, item]
        return [word.replace(_PLACE, item) for word in self.words]


def _refuse_quoted_place(line: str) -> None:
    quote = ""
    position = 0
    while position < len(line):
        character = line[position]
        if character == "\\" and quote != "'":
            position += 2
            continue
        if quote and line.startswith(_PLACE, position):
            raise CommandError(
                f"--exec: {{}} stands inside {quote}…{quote}, where it cannot be quoted safely; "
                "write it without quotes, the item is quoted for you"
            )
        if character == quote:
            quote = ""
        elif character in "'\"" and not quote:
            quote = character
        position += 1
    if quote:
        raise CommandError(f"--exec: no closing {quote}, in: {line}")
