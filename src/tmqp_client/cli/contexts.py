"""Contexts: names for servers, kept in a file that only its owner can read.

The file is ``contexts.json`` in ``$XDG_CONFIG_HOME/tmqp``, or in ``~/.config/tmqp``; the variable
``TMQP_CONFIG`` names another one.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Final

__all__ = ["Context", "ContextError", "Contexts", "load", "path"]

_MODE: Final = 0o600


class ContextError(Exception):
    """A context is missing, or the file with the contexts is invalid."""


@dataclass
class Context:
    """The address of a server, and the name and token to use."""

    address: str = ""
    name: str = ""
    token: str = ""


@dataclass
class Contexts:
    """All contexts, and the name of the default one."""

    current: str = ""
    known: dict[str, Context] = field(default_factory=dict)

    def chosen(self, name: str | None) -> Context:
        """Return the context with this name, else the default one, else an empty one.

        :raises ContextError: if there is none with this name.
        """
        wanted = self.current if name is None else name
        if not wanted:
            return Context()
        if wanted not in self.known:
            raise ContextError(f"there is no context {wanted!r}; tmqp config ls shows them")
        return self.known[wanted]

    def save(self) -> None:
        """Write the file atomically, readable only by its owner, because it contains tokens."""
        place = path()
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = json.dumps(
            {"current": self.current, "contexts": {k: asdict(v) for k, v in self.known.items()}},
            indent=2,
        )
        draft = place.with_name(f"{place.name}.{os.getpid()}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE), "w") as file:
            file.write(text + "\n")
        draft.replace(place)


def path() -> Path:
    """Return the path of the file."""
    given = os.environ.get("TMQP_CONFIG")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "tmqp" / "contexts.json"


def load() -> Contexts:
    """Read the file; return no contexts if it does not exist.

    :raises ContextError: if it cannot be read or is invalid.
    """
    place = path()
    try:
        plain = json.loads(place.read_text(encoding="utf-8"))
        names = {each.name for each in fields(Context)}
        known = {
            str(name): Context(**{key: str(each[key]) for key in each if key in names})
            for name, each in plain["contexts"].items()
        }
        return Contexts(str(plain["current"]), known)
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise ContextError(f"cannot read {place}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ContextError(f"{place} is not a file of contexts; repair or remove it") from None
