"""Units: what packs receive and expect on their lines.

An :class:`Ear` is the reader of a pack: it converts bytes to units.
"""

from __future__ import annotations

from typing import Any, Protocol

from tmqp.testing.conformance.lines import Log, Stream, Wire
from tmqp.testing.conformance.patterns import Names, describe_value, fits
from tmqp.testing.conformance.steps import Fence

__all__ = ["AskedEar", "Ear", "EarStream", "Expect", "Unit"]

#: The field that says how something has failed.
_CODE = "code"


class Unit:
    """One thing that a peer has said: its kind, and its fields by name."""

    __slots__ = ("fields", "kind")

    def __init__(self, kind: str, **fields: object) -> None:
        self.kind = kind
        self.fields = fields

    def __repr__(self) -> str:
        shown = [f"{name}={describe_value(value)}" for name, value in self.fields.items()]
        return " ".join([self.kind, *shown])


class Expect:
    """An expected unit: its kind, and values or matchers of the fields that matter.

    Another value of the field ``code`` is judged as a wrong code.
    """

    __slots__ = ("fields", "kind")

    def __init__(self, kind: str, **fields: object) -> None:
        self.kind = kind
        self.fields = fields

    def difference(self, seen: object, names: Names, sent: object) -> str:
        """See :class:`tmqp.testing.conformance.patterns.Expected`."""
        return self._difference(seen, names, codes=True)

    def fits_but_for_its_code(self, seen: object, names: Names, sent: object) -> bool:
        """See :class:`tmqp.testing.conformance.patterns.Expected`."""
        return not self._difference(seen, names, codes=False)

    def _difference(self, seen: object, names: Names, *, codes: bool) -> str:
        if not isinstance(seen, Unit) or seen.kind != self.kind:
            return f"it is {seen!r}, not {self.describe()}"
        for name, wanted in self.fields.items():
            if not codes and name == _CODE:
                continue
            value = seen.fields.get(name)
            if not fits(wanted, value, names, None):
                return f"{name} is {describe_value(value)}, expected {describe_value(wanted)}"
        return ""

    def describe(self) -> str:
        """See :class:`tmqp.testing.conformance.patterns.Expected`."""
        shown = [f"{name}={describe_value(value)}" for name, value in self.fields.items()]
        return " ".join([self.kind, *shown])

    def __repr__(self) -> str:
        return f"<Expect {self.describe()}>"


class Ear(Protocol):
    """Reads what a peer says.

    ``complaint``: what of it is nothing that it may say; empty for nothing.
    """

    complaint: str

    def feed(self, data: bytes) -> list[Any]:
        """The units that are whole with these bytes; none once there is a complaint."""

    @property
    def held_bytes(self) -> int:
        """Return the bytes of an incomplete unit."""


class AskedEar:
    """An :class:`Ear` that must know the requests to read the answers."""

    complaint: str

    def asked(self, data: bytes) -> None:
        """The client sends these bytes."""
        raise NotImplementedError

    def feed(self, data: bytes) -> list[Any]:
        """See :class:`Ear`."""
        raise NotImplementedError

    @property
    def held_bytes(self) -> int:
        """See :class:`Ear`."""
        raise NotImplementedError


class EarStream(Stream):
    """A line of a pack.  Its protocol has no ping: a moment of silence is the fence."""

    def __init__(self, name: str, wire: Wire, log: Log, ear: Ear) -> None:
        super().__init__(name, wire, log)
        self.quiet = True
        self._ear = ear

    @property
    def fenced(self) -> bool:
        """See :class:`Stream`: there is no fence to pass."""
        return False

    @property
    def unfinished(self) -> bool:
        """See :class:`Stream`."""
        return self._ear.held_bytes > 0

    def put_fence(self, fence: Fence) -> None:
        """See :class:`Stream`.

        :raises ValueError: always: the script must not ask for one.
        """
        raise ValueError("this protocol has no fence")

    def send(self, data: bytes, sent: object = None, note: str = "") -> None:
        """See :class:`Stream`."""
        if isinstance(self._ear, AskedEar):
            self._ear.asked(data)
        super().send(data, sent, note)

    def take(self, data: bytes) -> None:
        """See :class:`Stream`."""
        self.seen += self._ear.feed(data)
        self.complaint = self.complaint or self._ear.complaint
