"""What a property of a JSON model can hold: how it is read, checked and written."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, Protocol

from tmqp.constants import MAX_QUEUE_ID, QueueStatus, queue_status_from_word
from tmqp.names import fault_of_name

__all__ = [
    "INT32",
    "INT64",
    "LIMIT31",
    "MAX_TEXT_CHARACTERS",
    "STATUS_NUMBER",
    "UINT16",
    "UINT31",
    "UINT63",
    "UNFIT",
    "AddressKind",
    "FlagKind",
    "IntegerKind",
    "IntegersKind",
    "NumberedKind",
    "PropertyKind",
    "StatusWordKind",
    "TextKind",
]

#: Longest text in a property; a header cannot be longer (F6).
MAX_TEXT_CHARACTERS: Final = 65_535

#: Ranges of the specification's number types; UINT31 is the half of an Integer that is valid for a
#: timeout or a limit, and LIMIT31 also has -1, no limit.
INT32: Final = (-(2**31), 2**31 - 1)
INT64: Final = (-(2**63), 2**63 - 1)
UINT16: Final = (0, 2**16 - 1)
UINT31: Final = (0, 2**31 - 1)
LIMIT31: Final = (-1, 2**31 - 1)
UINT63: Final = (0, 2**63 - 1)

#: Stands for a value that a property cannot hold.
UNFIT: Final = object()


class PropertyKind(Protocol):
    """The type of a property: ``read`` returns the value as the model keeps it, or ``UNFIT``."""

    @property
    def expected(self) -> str: ...

    def read(self, value: object) -> object: ...

    def write(self, value: Any) -> object: ...


class TextKind:
    __slots__ = ()

    expected = f"Unicode text of at most {MAX_TEXT_CHARACTERS} characters"

    def read(self, value: object) -> object:
        if not isinstance(value, str) or len(value) > MAX_TEXT_CHARACTERS:
            return UNFIT
        if not value.isascii():
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:  # "\ud800" is JSON, but not text that a frame could carry
                return UNFIT
        return str(value)  # a StrEnum member becomes the text that will be read back

    def write(self, value: str) -> object:
        return value


class AddressKind:
    """A queue: the channel, a semicolon and the queue's id; empty for none."""

    __slots__ = ()

    expected = "the name of a channel, a semicolon and the id of a queue, or empty for none"

    def read(self, value: object) -> object:
        if not isinstance(value, str):
            return UNFIT
        if not value:
            return value
        channel, _, queue_id = value.rpartition(";")
        digits = queue_id.isascii() and queue_id.isdigit() and len(queue_id) <= 5
        if not channel or len(channel) > MAX_TEXT_CHARACTERS or not digits:
            return UNFIT
        if int(queue_id) > MAX_QUEUE_ID or fault_of_name(channel):
            return UNFIT
        return str(value)

    def write(self, value: str) -> object:
        return value


class FlagKind:
    __slots__ = ()

    expected = "true or false"

    def read(self, value: object) -> object:
        return value if isinstance(value, bool) else UNFIT

    def write(self, value: bool) -> object:
        return value


class IntegerKind:
    __slots__ = ("expected", "high", "low")

    def __init__(self, low: int, high: int) -> None:
        self.expected = f"an integer {low}..{high}"
        self.low = low
        self.high = high

    def read(self, value: object) -> object:
        if not isinstance(value, int) or isinstance(value, bool):
            return UNFIT
        return int(value) if self.low <= value <= self.high else UNFIT

    def write(self, value: int) -> object:
        return value


class IntegersKind:
    """An array of queue ids, kept as a tuple."""

    __slots__ = ("expected", "high", "low", "most")

    def __init__(self, low: int, high: int) -> None:
        self.low = low
        self.high = high
        self.most = high - low + 1
        self.expected = f"an array of at most {self.most} integers {low}..{high}"

    def read(self, value: object) -> object:
        if not isinstance(value, (list, tuple)) or len(value) > self.most:
            return UNFIT
        if not value:
            return ()
        # Three passes in C, because a channel may report all 65,536 ids twice.
        if set(map(type, value)) != {int} or min(value) < self.low or max(value) > self.high:
            return UNFIT
        return tuple(value)

    def write(self, value: tuple[int, ...]) -> object:
        return list(value)


class NumberedKind:
    """A member of an enumeration, written as its number; read as its number or its name.

    :param strict: if False, a number that the enumeration does not have is kept as a plain integer:
        a server reports any number that a client has set (F60), and one such router must not make
        the whole list unreadable.
    """

    __slots__ = ("expected", "members", "strict")

    def __init__(self, enumeration: type[IntEnum], *, strict: bool) -> None:
        named = ", ".join(f"{member.value} {member.name}" for member in enumeration)
        self.expected = f"an integer ({named})"
        self.strict = strict
        self.members: dict[int | str, IntEnum] = {}
        for member in enumeration:
            self.members[member.value] = member
            self.members[member.name.replace("_", "").lower()] = member

    def read(self, value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            return UNFIT
        if isinstance(value, str):
            return self.members.get(value.lower(), UNFIT)
        low, high = INT32
        unknown = UNFIT if self.strict or not low <= value <= high else int(value)
        return self.members.get(value, unknown)

    def write(self, value: int) -> object:
        return int(value)


class _StatusNumberKind:
    """A queue status as options have it: a number and only a number (F71, F72)."""

    __slots__ = ()

    expected = f"an integer {min(QueueStatus).value}..{max(QueueStatus).value}"

    def read(self, value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int):
            return UNFIT
        return _STATUS_BY_NUMBER.get(value, UNFIT)

    def write(self, value: QueueStatus) -> object:
        return value.value


class StatusWordKind:
    """A queue status as information and events have it: a word (F68, F130); numbers are read too.

    :param words: the spelling to write, by status number.
    """

    __slots__ = ("expected", "words")

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self.expected = "one of " + ", ".join(words)

    def read(self, value: object) -> object:
        if isinstance(value, str):
            status = queue_status_from_word(value)
            return UNFIT if status is None else status
        return STATUS_NUMBER.read(value)

    def write(self, value: QueueStatus) -> object:
        return self.words[value]


STATUS_NUMBER: Final = _StatusNumberKind()
_STATUS_BY_NUMBER: Final = {status.value: status for status in QueueStatus}
