"""Command lines and configuration files as programs in Go read them.

``-k v``, ``--k v``, ``-k=v`` and ``--k=v`` are the same; a flag that is true or false needs no
value; list flags repeat (N23).  A configuration file is TOML; its keys are the names of the flags
with ``_`` for ``-``, with plurals for lists, and the command line wins (N22).

:func:`parse` is pure; :func:`load_config` reads the file that ``--config`` names.
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

__all__ = [
    "BOOL",
    "DURATION",
    "FLOAT",
    "FLOATS",
    "INT",
    "LEVEL",
    "TEXT",
    "TEXTS",
    "Flag",
    "FlagError",
    "FlagTable",
    "FlagValues",
    "HelpRequestError",
    "Kind",
    "duration_ns",
    "format_duration",
    "load_config",
    "one_of",
    "parse",
]

_UNITS_NS: Final = {
    "ns": 1,
    "us": 1_000,
    "\N{MICRO SIGN}s": 1_000,
    "\N{GREEK SMALL LETTER MU}s": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_DURATION_PART: Final = re.compile(r"([0-9]*\.?[0-9]*)([a-z\u00b5\u03bc]+)")
_NUMBER: Final = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|0[oO]?[0-7]*|0[bB][01]+|[1-9][0-9]*)")
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_LEVELS: Final = ("debug", "info", "warn", "error", "fatal")
#: Numbers are 64 bits wide, as they are in the original.
_MOST_INT: Final = 2**63 - 1
_MOST_CONFIG_BYTES: Final = 1_048_576


class FlagError(Exception):
    """A command line or a configuration file that cannot be used; the text says why."""


class HelpRequestError(FlagError):
    """The command line asks for help."""


def duration_ns(text: str) -> int:
    """Read a duration such as ``1500ms`` or ``2m30s``, in nanoseconds.

    :raises ValueError: if the text is not a duration.
    """
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    total, place = 0.0, 0
    while place < len(rest):
        part = _DURATION_PART.match(rest, place)
        unit = _UNITS_NS.get(part.group(2)) if part is not None else None
        if part is None or unit is None or part.group(1) in ("", "."):
            break
        total += float(part.group(1)) * unit
        place = part.end()
    if place < len(rest) or not rest or total > _MOST_INT:
        raise ValueError(f"not a duration such as 1500ms, 30s or 2m30s: {text!r}")
    return sign * round(total)


def format_duration(value_ns: int) -> str:
    """Write a duration as Go does: ``1m0s``, ``250ms``, ``2s``."""
    if value_ns == 0:
        return "0s"
    sign, rest = ("-", -value_ns) if value_ns < 0 else ("", value_ns)
    if rest < 1_000_000_000:
        for unit in ("ms", "\N{MICRO SIGN}s", "ns"):
            if rest >= _UNITS_NS[unit]:
                return f"{sign}{rest / _UNITS_NS[unit]:.9g}{unit}"
    minutes, rest = divmod(rest, _UNITS_NS["m"])
    hours, minutes = divmod(minutes, 60)
    text = f"{rest / 1_000_000_000:.9g}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"


@dataclass(frozen=True)
class Kind:
    """What the values of a flag are: how to read and to show them."""

    #: What stands for the value in the help; empty for a flag that needs none.
    word: str
    #: Reads a value from the command line; raises ValueError.
    read: Callable[[str], Any]
    #: Takes a value of the configuration file; raises ValueError.
    accept: Callable[[Any], Any]
    #: Writes a value for the help.
    show: Callable[[Any], str]
    #: Whether the flag may be repeated and its value is a tuple.
    many: bool = False


def _read_bool(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f"not true or false: {text!r}")


def _read_int(text: str) -> int:
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(f"not a whole number: {text!r}")
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")
    # A leading 0 means octal, as in Go.
    value = sign * (int(digits, 8) if re.fullmatch("0[0-7]+", digits) else int(digits, 0))
    if not -_MOST_INT - 1 <= value <= _MOST_INT:
        raise ValueError(f"number out of range: {text!r}")
    return value


def _read_float(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"not a number: {text!r}") from None
    if not math.isfinite(value):
        raise ValueError(f"not a number: {text!r}")
    return value


def _read_floats(text: str) -> tuple[float, ...]:
    return tuple(_read_float(each.strip()) for each in text.split(","))


def _accept_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(f"not a text: {value!r}")


def _accept_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    return _read_bool(_accept_text(value))


def _accept_int(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return _read_int(_accept_text(value))


def _accept_float(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return _read_float(_accept_text(value))


def _accept_duration(value: Any) -> int:
    """A text, or a number of milliseconds, as in files for the original."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value * 1_000_000
    return duration_ns(_accept_text(value))


def _accept_texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(_accept_text(each) for each in value)
    return tuple(each.strip() for each in _accept_text(value).split(","))


def _accept_floats(value: Any) -> tuple[float, ...]:
    if isinstance(value, list):
        return tuple(_accept_float(each) for each in value)
    if isinstance(value, str):
        return _read_floats(value)
    return (_accept_float(value),)


def _show_text(value: Any) -> str:
    return f'"{value}"' if value else ""


def _show_many(value: Any) -> str:
    return ", ".join(str(each) for each in value)


#: A flag that is true or false.
BOOL: Final = Kind("", _read_bool, _accept_bool, lambda value: "true" if value else "false")
#: A whole number.
INT: Final = Kind("int", _read_int, _accept_int, str)
#: A number.
FLOAT: Final = Kind("float", _read_float, _accept_float, str)
#: A duration, in nanoseconds.
DURATION: Final = Kind("duration", duration_ns, _accept_duration, format_duration)
#: A text.
TEXT: Final = Kind("string", str, _accept_text, _show_text)
#: Texts; the flag repeats.
TEXTS: Final = Kind("value", lambda text: (text,), _accept_texts, _show_many, many=True)
#: Numbers; the flag repeats, or has them with commas between.
FLOATS: Final = Kind("value", _read_floats, _accept_floats, _show_many, many=True)


def one_of(*words: str) -> Kind:
    """The kind of a flag that must be one of *words*, in any spelling."""

    def read(text: str) -> str:
        if text.lower() not in words:
            shown = ", ".join(repr(word) for word in words)
            raise ValueError(f"must be one of {shown}, not {text!r}")
        return text.lower()

    def accept(value: Any) -> str:
        if isinstance(value, bool):
            return read("true" if value else "false")
        return read(_accept_text(value))

    return Kind("value", read, accept, _show_text)


#: How much a program logs.
LEVEL: Final = one_of(*_LEVELS)


@dataclass(frozen=True)
class Flag:
    """One flag of a program."""

    name: str
    kind: Kind
    default: Any
    help: str
    #: Its key in the configuration file; None: the name with ``_`` for ``-``; empty: has none.
    key: str | None = None
    #: Why the flag changes nothing here; empty if it does what the help says.
    ignored: str = ""

    @property
    def config_key(self) -> str:
        """The key in a configuration file; empty if the flag is for the command line alone."""
        return self.name.replace("-", "_") if self.key is None else self.key


@dataclass(frozen=True)
class FlagTable:
    """The flags of a program, and what its ``--help`` says around them."""

    program: str
    summary: str
    examples: tuple[str, ...]
    flags: tuple[Flag, ...]

    def find(self, name: str) -> Flag | None:
        """The flag of a name."""
        for each in self.flags:
            if each.name == name:
                return each
        return None

    def defaults(self) -> dict[str, Any]:
        """Every flag's default."""
        return {each.name: each.default for each in self.flags}


@dataclass(frozen=True)
class FlagValues:
    """What a command line and a configuration file said, and the defaults of the rest."""

    table: FlagTable
    values: dict[str, Any]
    #: The flags that the command line or the file set.
    given: frozenset[str] = field(default_factory=frozenset)

    def text(self, name: str) -> str:
        """The value of a text flag."""
        value = self.values[name]
        assert isinstance(value, str)
        return value

    def number(self, name: str) -> int:
        """The value of a number flag."""
        value = self.values[name]
        assert isinstance(value, int)
        return value

    def real(self, name: str) -> float:
        """The value of a flag with fractions."""
        return float(self.values[name])

    def is_on(self, name: str) -> bool:
        """The value of a flag that is true or false."""
        value = self.values[name]
        assert isinstance(value, bool)
        return value

    def seconds(self, name: str) -> float:
        """The value of a duration flag, in seconds."""
        return self.number(name) / 1_000_000_000

    def milliseconds(self, name: str) -> int:
        """The value of a duration flag, in milliseconds."""
        return self.number(name) // 1_000_000

    def texts(self, name: str) -> tuple[str, ...]:
        """The values of a list flag."""
        return tuple(self.values[name])

    def ignored(self) -> list[str]:
        """A line for each flag that was given and changes nothing here, with the reason."""
        return [
            f"--{each.name} has no effect: {each.ignored}"
            for each in self.table.flags
            if each.ignored and each.name in self.given
        ]


def _unknown(table: FlagTable, name: str) -> FlagError:
    names = [each.name for each in table.flags]
    near = difflib.get_close_matches(name, names, 3)
    hint = f"; did you mean {' or '.join('--' + each for each in near)}?" if near else ""
    return FlagError(f"flag provided but not defined: -{name}{hint}")


def _value(flag: Flag, text: str) -> Any:
    try:
        return flag.kind.read(text)
    except ValueError as error:
        raise FlagError(f'invalid value "{text}" for flag -{flag.name}: {error}') from None


def parse(
    table: FlagTable, arguments: Sequence[str], config: Mapping[str, Any] | None = None
) -> FlagValues:
    """Read a command line; what it leaves open comes from *config*, then from the defaults.

    :raises FlagError: if a flag is unknown, a value is missing or wrong, or an argument is no flag.
    """
    given: dict[str, Any] = {}
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "--" and not rest:
            break
        name, equals, text = argument.removeprefix("-").removeprefix("-").partition("=")
        if not argument.startswith("-") or argument in ("-", "--"):
            raise FlagError(f'unexpected argument "{argument}": all arguments are flags')
        if not name or name.startswith("-"):
            raise FlagError(f"bad flag syntax: {argument}")
        flag = table.find(name)
        if flag is None and name in ("h", "help"):
            raise HelpRequestError("help asked for")
        if flag is None:
            raise _unknown(table, name)
        if not equals and flag.kind is BOOL:
            text = "true"
        elif not equals:
            if not rest:
                raise FlagError(f"flag needs an argument: -{name}")
            text = rest.pop(0)
        value = _value(flag, text)
        given[name] = given.get(name, ()) + value if flag.kind.many else value
    values = {**table.defaults(), **_from_config(table, config or {}), **given}
    names = {*given, *_from_config(table, config or {})}
    return FlagValues(table, values, frozenset(names))


def _from_config(table: FlagTable, config: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a configuration file, by the names of the flags."""
    keys = {each.config_key: each for each in table.flags if each.config_key}
    found: dict[str, Any] = {}
    for key, value in config.items():
        flag = keys.get(key)
        if flag is None:
            near = difflib.get_close_matches(key, list(keys), 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise FlagError(f"config file: unknown key {key!r}{hint}")
        try:
            found[flag.name] = flag.kind.accept(value)
        except ValueError as error:
            raise FlagError(f"config file: {key}: {error}") from None
    return found


def load_config(path: str) -> dict[str, Any]:
    """Read the configuration file of a program.

    :raises FlagError: if the file cannot be read or is not TOML.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MOST_CONFIG_BYTES + 1)
        if len(data) > _MOST_CONFIG_BYTES:
            raise FlagError(f"config file {path} has more than {_MOST_CONFIG_BYTES} bytes")
        return tomllib.loads(data.decode("utf-8"))
    except OSError as error:
        raise FlagError(f"cannot read config file {path}: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FlagError(f"config file {path} is not TOML: {error}") from error
