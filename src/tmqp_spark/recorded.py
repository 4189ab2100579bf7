"""Reads recorded bytes into columns: wire captures and fuzz corpora, frame by frame.

Theory of operation.  A file consists of *inputs*: a recording (``.json``, in the form of
:mod:`tmqp.testing.vectors`) has one for each thing that was seen on the wire, a list of lines
(``.txt``) one for each line of hexadecimal digits; any other file is one input.  Each input goes
through the same decoder as a connection's bytes.  Each frame becomes a row, and so do invalid
bytes, with ``error`` and their position.  So a damaged file never ends a job, and nothing in it is
lost.

Rows are collected as tuples and converted to Arrow columns one batch at a time; only the requested
columns are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from tmqp import FrameDecoder, Limits, MessageType
from tmqp.constants import ACCEPTED_PREAMBLES
from tmqp.testing.vectors import Exchange, RecordingError, Step, parse_exchange
from tmqp_spark.schema import HEADERS_TYPE, Projection
from tmqp_spark.tables import Table

__all__ = ["CAPTURE", "Recorded", "layout_of"]

#: The columns of a capture; ``type`` to ``value`` are null if there is no frame.
CAPTURE: Final = Table(
    "tmqp_capture",
    [
        ("file", "string"),
        ("flow", "string"),
        ("dir", "string"),
        ("frame_no", "int"),
        ("at_us", "bigint"),
        ("offset", "bigint"),
        ("length", "bigint"),
        ("type", "string"),
        ("type_code", "int"),
        ("one_delivery", "boolean"),
        ("high_priority", "boolean"),
        ("pending_response", "boolean"),
        ("pending_ack", "boolean"),
        ("ttl", "int"),
        ("message_id", "string"),
        ("source", "string"),
        ("target", "string"),
        ("content_type", "int"),
        ("headers", HEADERS_TYPE),
        ("value", "binary"),
        ("note", "string"),
        ("error", "string"),
        ("error_offset", "bigint"),
    ],
)

_READ_BYTES: Final = 1 << 20
#: So large that a frame cut short counts as incomplete, not as one that breaks a limit.
_ANY_SIZE: Final = Limits(max_payload_bytes=(1 << 63) - 1)
_TYPES: Final = {int(member): member.name for member in MessageType}
_PREAMBLE_BYTES: Final = 8
_NO_FRAME: Final = (None,) * 12
_NAMES: Final = CAPTURE.names
_HEADERS: Final = _NAMES.index("headers")


def layout_of(path: str, layout: str) -> str:
    """Return how to read a file: ``recording``, ``lines`` or ``bytes``.

    :param layout: the option's value: ``recording``, ``corpus``, or ``auto`` (by the file's
        suffix).
    """
    if layout == "recording" or (layout == "auto" and path.endswith(".json")):
        return "recording"
    return "lines" if path.endswith(".txt") else "bytes"


class Recorded:
    """Reads files and collects their rows.

    :param projection: the columns to make; see :data:`CAPTURE`.
    :param skip_bytes: the number of bytes at the beginning of each input of a corpus that are
        instructions for the fuzz target, and not TMQP.

    Attributes: ``rows``, the collected rows; ``size``, the size of their frames in bytes.
    """

    def __init__(self, projection: Projection, skip_bytes: int = 0) -> None:
        self._projection = projection
        self._skip = skip_bytes
        self.rows: list[tuple[Any, ...]] = []
        self.size = 0

    def __len__(self) -> int:
        return len(self.rows)

    def take_batch(self) -> pa.RecordBatch:
        """Return the collected rows as a batch, and begin a new one."""
        rows, self.rows, self.size = self.rows, [], 0
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(_NAMES)
        arrays = []
        for field in self._projection.schema:
            place = _NAMES.index(field.name)
            column: Sequence[Any] = columns[place]
            if place == _HEADERS:
                column = [pairs and [_pair(pair) for pair in pairs] for pairs in column]
            arrays.append(pa.array(column, field.type))
        return pa.record_batch(arrays, schema=self._projection.schema)

    def read(self, path: str, layout: str) -> Iterator[None]:
        """Read one file; yield after each portion, so that the caller can take a batch."""
        kind = layout_of(path, layout)
        try:
            if kind == "bytes":
                yield from self._read_bytes(path)
                return
            with open(path, "rb") as file:  # noqa: PTH123 - a Path costs more than reading it
                text = file.read()
        except OSError as error:
            self._fault(path, "", f"cannot be read: {error.strerror or error}")
            yield
            return
        if kind == "lines":
            yield from self._read_lines(path, text)
            return
        try:
            exchange = parse_exchange(path, text)
        except RecursionError:
            self._fault(path, "", "not JSON: nested too deeply")
            yield
            return
        except RecordingError as error:
            self._fault(path, "", str(error).removeprefix(f"{path}: ").removeprefix(f"{path} "))
            yield
            return
        yield from self._read_recording(path, exchange)

    # -- the layouts ----------------------------------------------------------------------------

    def _read_bytes(self, path: str) -> Iterator[None]:
        flow = _Flow(self, path, "", "", None)
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - as above
            while chunk := file.read(_READ_BYTES):
                flow.feed(chunk, self._skip)
                yield
        flow.finish("")
        yield

    def _read_lines(self, path: str, text: bytes) -> Iterator[None]:
        for number, line in enumerate(text.split(b"\n"), 1):
            digits = line.strip()
            if not digits or digits.startswith(b"#"):
                continue
            try:
                data = bytes.fromhex(digits.decode("ascii"))
            except ValueError:
                self._fault(path, str(number), f"line {number} is not hexadecimal")
                continue
            flow = _Flow(self, path, str(number), "", None)
            flow.feed(data, self._skip)
            flow.finish("")
            yield
        yield

    def _read_recording(self, path: str, exchange: Exchange) -> Iterator[None]:
        begun: dict[tuple[int, str], tuple[int, int]] = {}
        for step in exchange.steps:
            key = (step.connection, step.direction)
            offset, number = begun.get(key, (0, 0))
            flow = _Flow(self, path, str(step.connection), step.direction, step.at_s)
            flow.offset, flow.number = offset, number
            flow.note = step.note
            if step.data:
                flow.feed(step.data, 0)
            else:
                flow.note_alone()
            flow.finish(_missing(step))
            begun[key] = (offset + (step.total_bytes or len(step.data)), flow.number)
        yield

    def _fault(self, path: str, flow: str, error: str) -> None:
        """Add a row for bytes that are not an input."""
        _Flow(self, path, flow, "", None).fault(error, 0)


def _missing(step: Step) -> str:
    """Return what the recording says about missing bytes."""
    if step.total_bytes is None:
        return ""
    return f"the recording holds {len(step.data)} of {step.total_bytes} bytes"


def _pair(pair: tuple[str, str]) -> dict[str, str]:
    return {"key": pair[0], "value": pair[1]}


class _Flow:
    """One input that is being decoded.

    ``offset`` is the position of the next frame, ``number`` its number.
    """

    def __init__(
        self, gathered: Recorded, path: str, flow: str, direction: str, at_s: float | None
    ) -> None:
        self._gathered = gathered
        self._head = (path, flow or None, direction or None)
        self._at_us = None if at_s is None else round(at_s * 1_000_000)
        self._decoder = FrameDecoder(_ANY_SIZE)
        self._begun = False
        self._ended = False
        self.offset = 0
        self.number = 0
        self.note: str | None = None

    def feed(self, data: bytes, skip: int) -> None:
        """Decode the next bytes; the first ``skip`` bytes of the input are skipped."""
        if not self._begun:
            self._begun = True
            self.offset += min(skip, len(data))
            data = data[skip:]
            if data.startswith(ACCEPTED_PREAMBLES):
                preamble, data = data[:_PREAMBLE_BYTES], data[_PREAMBLE_BYTES:]
                self._put("PREAMBLE", _PREAMBLE_BYTES, (*_NO_FRAME[:-1], preamble))
        if self._ended:
            return
        for frame in self._decoder.feed(data):
            fields = frame.fields()
            self._put(_TYPES.get(fields[0], "UNKNOWN"), len(frame.raw), fields)
        error = self._decoder.error
        if error is not None:
            self._ended = True
            self.fault(f"{error.rule}: {error}", 0)

    def finish(self, missing: str) -> None:
        """Add a row for the rest of an incomplete frame.

        :param missing: why bytes are missing, if known.
        """
        left = self._decoder.buffered
        if left:
            self.fault(missing or f"torn: {left} bytes of a message that does not end", left)

    def note_alone(self) -> None:
        """Add a row for a step without bytes: a close, or silence."""
        self._row(0, None, _NO_FRAME, None)

    def fault(self, error: str, length: int) -> None:
        """Add a row for bytes that are not a frame."""
        self._row(length, None, _NO_FRAME, error)

    def _put(self, name: str, length: int, fields: tuple[Any, ...]) -> None:
        self._row(length, name, fields, None)
        self._gathered.size += length
        self.offset += length
        self.number += 1

    def _row(
        self, length: int, name: str | None, fields: tuple[Any, ...], error: str | None
    ) -> None:
        self._gathered.rows.append(
            (
                *self._head,
                self.number,
                self._at_us,
                self.offset,
                length,
                name,
                *fields,
                self.note or None,
                error,
                None if error is None else self.offset,
            )
        )
