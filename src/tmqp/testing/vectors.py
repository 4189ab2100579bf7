"""Reads recorded exchanges: the messages between a client and a server, and their times.

A recording is a JSON list with one object for each thing that was seen on the wire, in order::

    {"dir": "c2s", "conn": 3, "t": 0.301, "hex": "0810000000000000", "note": "Terminate"}

``dir`` is ``c2s`` or ``s2c``, ``conn`` numbers the connections, ``t`` is the time in seconds since
the recording began (not always present), ``hex`` the bytes: one or more whole frames, a preamble,
or nothing if the note reports a close or silence.  Long frames were cut, as ``truncated`` and
``total_bytes`` or the length in the head show.

Nothing here opens a file: :func:`parse_exchange` takes the text of a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from tmqp.codec import FrameDecoder
from tmqp.constants import ACCEPTED_PREAMBLES
from tmqp.frames import Frame
from tmqp.limits import Limits

__all__ = [
    "CLIENT_TO_SERVER",
    "SERVER_TO_CLIENT",
    "Exchange",
    "RecordedFrame",
    "RecordingError",
    "Step",
    "StepParts",
    "join_exchanges",
    "parse_exchange",
    "recorded_frames",
    "split_step",
]

CLIENT_TO_SERVER: Final = "c2s"
SERVER_TO_CLIENT: Final = "s2c"

#: So large that a frame cut short counts as incomplete, not as one that breaks a limit.
_ANY_SIZE: Final = Limits(max_payload_bytes=(1 << 63) - 1)


class RecordingError(ValueError):
    """The text is not a recorded exchange; the message says where and why."""


class Step:
    """One thing seen on the wire.

    ``direction`` is :data:`CLIENT_TO_SERVER` or :data:`SERVER_TO_CLIENT`, ``connection`` the
    connection's number, ``data`` the bytes (empty for a close or silence), ``note`` the remark of
    the recorder, ``total_bytes`` the true number of bytes if ``data`` was cut, otherwise None,
    ``at_s`` the seconds since the beginning, or None.
    """

    __slots__ = ("at_s", "connection", "data", "direction", "note", "total_bytes")

    def __init__(
        self,
        direction: str,
        connection: int,
        data: bytes,
        note: str = "",
        total_bytes: int | None = None,
        at_s: float | None = None,
    ) -> None:
        self.direction = direction
        self.connection = connection
        self.data = data
        self.note = note
        self.total_bytes = total_bytes
        self.at_s = at_s

    @property
    def truncated(self) -> bool:
        """Whether bytes are missing at the end, according to the recording."""
        return self.total_bytes is not None

    @property
    def closes(self) -> bool:
        """Whether the side that ``direction`` names as the sender ended the connection here."""
        return not self.data and self.note.startswith("closed by the ")

    @property
    def silent(self) -> bool:
        """Whether nothing arrived for a while, so that a server must not have answered by then."""
        return not self.data and self.note.startswith("(nothing for ")

    def __repr__(self) -> str:
        return (
            f"<Step {self.direction} connection {self.connection} {len(self.data)} bytes"
            f" {self.note[:60]!r}>"
        )


class Exchange:
    """A recording: its ``name`` and its ``steps`` in order."""

    __slots__ = ("name", "steps")

    def __init__(self, name: str, steps: Iterable[Step]) -> None:
        self.name = name
        self.steps = tuple(steps)

    @property
    def connections(self) -> list[int]:
        """The numbers of its connections, in order of appearance."""
        return list(dict.fromkeys(step.connection for step in self.steps))

    @property
    def self_contained(self) -> bool:
        """Whether it opens all its connections, so that it can be replayed without an earlier
        one."""
        for connection in self.connections:
            first = next(step for step in self.steps if step.connection == connection)
            opens = first.data.startswith(ACCEPTED_PREAMBLES)
            if first.direction != CLIENT_TO_SERVER or not opens:
                return False
        return True

    def __repr__(self) -> str:
        return f"<Exchange {self.name} {len(self.steps)} steps>"


class StepParts:
    """The parts of a step's bytes: ``preamble`` (eight bytes or none), whole ``frames``, and
    ``rest``, the part of a cut frame or of a preamble sent in pieces."""

    __slots__ = ("frames", "preamble", "rest")

    def __init__(self, preamble: bytes, frames: list[Frame], rest: bytes) -> None:
        self.preamble = preamble
        self.frames = frames
        self.rest = rest


class RecordedFrame:
    """A complete frame and where it comes from: ``exchange``, ``step_index``, ``step`` and
    ``index`` among the frames of that step."""

    __slots__ = ("exchange", "frame", "index", "step", "step_index")

    def __init__(
        self, exchange: Exchange, step_index: int, step: Step, index: int, frame: Frame
    ) -> None:
        self.exchange = exchange
        self.step_index = step_index
        self.step = step
        self.index = index
        self.frame = frame

    @property
    def where(self) -> str:
        """The source in words, for error messages."""
        return (
            f"{self.exchange.name} step {self.step_index} frame {self.index}"
            f" ({self.step.direction}, connection {self.step.connection})"
        )

    def __repr__(self) -> str:
        return f"<RecordedFrame {self.where} {self.frame!r}>"


def parse_exchange(name: str, text: str | bytes) -> Exchange:
    """Read a recording from its JSON text.

    :param name: what to call it, usually the file's name without its ending.
    :raises RecordingError: if the text does not have this form.
    """
    try:
        items = json.loads(text)
    except ValueError as error:
        raise RecordingError(f"{name}: not JSON: {error}") from None
    if not isinstance(items, list):
        raise RecordingError(f"{name}: a recording is a list")
    return Exchange(name, [_step(f"{name} step {index}", item) for index, item in enumerate(items)])


def _step(where: str, item: object) -> Step:
    if not isinstance(item, dict):
        raise RecordingError(f"{where}: must be an object")
    direction = item.get("dir")
    if direction != CLIENT_TO_SERVER and direction != SERVER_TO_CLIENT:
        raise RecordingError(f"{where}: dir must be c2s or s2c, not {direction!r}")
    connection = item.get("conn")
    if type(connection) is not int:
        raise RecordingError(f"{where}: conn must be a whole number, not {connection!r}")
    note = item.get("note", "")
    digits = item.get("hex")
    if not isinstance(note, str) or not isinstance(digits, str):
        raise RecordingError(f"{where}: hex and note must be texts")
    try:
        data = bytes.fromhex(digits)
    except ValueError:
        raise RecordingError(f"{where}: hex holds something else than hexadecimal digits") from None
    at_s = item.get("t")
    if at_s is not None and type(at_s) not in (int, float):
        raise RecordingError(f"{where}: t must be seconds, not {at_s!r}")
    total_bytes = None
    if item.get("truncated"):
        total_bytes = item.get("total_bytes")
        if type(total_bytes) is not int or total_bytes <= len(data):
            raise RecordingError(f"{where}: total_bytes must be more than the given bytes")
    return Step(direction, connection, data, note, total_bytes, at_s)


def join_exchanges(name: str, exchanges: Iterable[Exchange]) -> Exchange:
    """Join exchanges to a single one, because some recordings continue with the connections of an
    earlier one."""
    return Exchange(name, [step for exchange in exchanges for step in exchange.steps])


def split_step(step: Step) -> StepParts:
    """Divide a step's bytes into preamble, frames and rest.

    :raises RecordingError: if they contain invalid bytes.
    """
    data = step.data
    preamble = b""
    if data.startswith(ACCEPTED_PREAMBLES):
        preamble, data = data[:8], data[8:]
    decoder = FrameDecoder(_ANY_SIZE)
    frames = decoder.feed(data)
    if decoder.error is not None:
        raise RecordingError(f"{step!r}: {decoder.error}")
    used = sum([len(frame.raw) for frame in frames])
    return StepParts(preamble, frames, data[used:])


def recorded_frames(exchanges: Iterable[Exchange]) -> Iterator[RecordedFrame]:
    """Return every complete frame of the exchanges, without preambles and cut frames."""
    for exchange in exchanges:
        for step_index, step in enumerate(exchange.steps):
            for index, frame in enumerate(split_step(step).frames):
                yield RecordedFrame(exchange, step_index, step, index, frame)
