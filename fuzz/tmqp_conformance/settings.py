"""Files of the user: options, capabilities, and the deviations that the implementer explains.

::

    # conformance.toml
    target = "tmq://127.0.0.1:2622"
    skip = ["server.perf.*"]
    capabilities = ["admin", "pull"]

    [[deviations]]
    case = "server.hello.refuses-*"
    reason = "We close without a message, as the original does."
    link = "docs/differences.md"
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from tmqp.testing.conformance import CAPABILITIES
from tmqp_conformance.register import former

__all__ = ["Deviation", "Settings", "SettingsError", "read_settings"]

_KEYS: Final = {
    "target": str,
    "only": list,
    "skip": list,
    "capabilities": list,
    "level": str,
    "slow": (int, float),
    "jobs": int,
    "fail_on": str,
    "restart_cmd": str,
    "start_cmd": str,
    "out": str,
    "report": list,
    "deviations": list,
}


class SettingsError(Exception):
    """A file of the user is not of its form."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A failure that the implementer knows and explains; ``case`` is a glob of ids."""

    case: str
    reason: str
    link: str = ""

    def covers(self, name: str) -> bool:
        """Whether it is about this case, by its id or by one that it had before."""
        return any(fnmatchcase(each, self.case) for each in (name, *former(name)))


@dataclass(frozen=True, slots=True)
class Settings:
    """What a file says: options by their names, and deviations."""

    options: dict[str, Any] = field(default_factory=dict)
    deviations: tuple[Deviation, ...] = ()


def read_settings(path: Path) -> Settings:
    """Read a file of options, deviations or both.

    :raises SettingsError: if it is invalid, with the reason.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path}: {error}") from error
    for key, value in table.items():
        if key not in _KEYS:
            raise SettingsError(f"{path}: unknown option {key!r}; known are {', '.join(_KEYS)}")
        if not isinstance(value, _KEYS[key]) or isinstance(value, bool):  # type: ignore[arg-type]
            raise SettingsError(f"{path}: {key} has the wrong type: {value!r}")
    for word in table.get("capabilities", ()):
        if word not in CAPABILITIES:
            known = ", ".join(CAPABILITIES)
            raise SettingsError(f"{path}: unknown capability {word!r}; known are {known}")
    for key in ("only", "skip", "report"):
        if not all(isinstance(each, str) for each in table.get(key, ())):
            raise SettingsError(f"{path}: {key} must be a list of strings")
    deviations = tuple(_deviation(path, entry) for entry in table.pop("deviations", ()))
    return Settings(table, deviations)


def _deviation(path: Path, entry: object) -> Deviation:
    if not isinstance(entry, dict) or not set(entry) <= {"case", "reason", "link"}:
        raise SettingsError(f"{path}: a deviation has case, reason and link, not {entry!r}")
    texts = {key: value for key, value in entry.items() if isinstance(value, str) and value}
    if set(texts) != set(entry) or "case" not in texts or "reason" not in texts:
        raise SettingsError(f"{path}: a deviation needs a case and a reason, got {entry!r}")
    return Deviation(**texts)
