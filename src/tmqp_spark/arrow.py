"""Convert blocks, as a broker stores and sends them, to Arrow record batches.

Theory of operation.  The index of a block is a table of fixed width, so numpy reads it in place;
everything about a batch of messages is computed for all of them together, and no code runs for each
message (except for the column ``headers``).  A column of bytes or text is first made of *views*,
sixteen bytes per row that say where in the received bytes the value is, and Arrow gathers the
values in one pass.

Received data are not trusted: heads, lengths, positions and sequences are compared with the actual
bytes before they are used, the checksum of head and index is computed (and that of the bodies if
requested), and text is checked to be UTF-8.
"""

from __future__ import annotations

import struct
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from tmqp.bits import (
    FIRST_ACQUIRER,
    HAS_HEADER,
    HEAD_BYTES,
    LARGEST_SHORT,
    PENDING_ACKNOWLEDGE,
    PENDING_RESPONSE,
    TTL_BITS,
)
from tmqp.block_columns import (
    COLUMN_ATTEMPTS,
    COLUMN_FLAGS,
    COLUMN_HOPS,
    COLUMN_PUT_BACKS,
    COLUMN_SEQUENCES,
    COLUMN_TIMESTAMP,
    COLUMN_VALUE,
    ColumnBlock,
    is_columns,
    read_columns,
)
from tmqp.blocks import (
    DOOR_NATIVE,
    ENTRY_SIZE,
    FLAG_DOOR_SHIFT,
    FLAG_HIGH,
    HEAD_SIZE,
    MAX_COUNT,
    BlockError,
)
from tmqp.frames import parse_headers
from tmqp_spark.checksums import crc32
from tmqp_spark.errors import DecodeFailed
from tmqp_spark.schema import Projection

__all__ = ["BatchBuilder", "Data", "Portion", "read_portion"]

_ENTRY: Final = np.dtype(
    [
        ("sequence", "<u8"),
        ("timestamp", "<i8"),
        ("expires", "<i8"),
        ("due", "<i8"),
        ("position", "<u4"),
        ("size", "<u4"),
        ("payload_offset", "<u4"),
        ("payload_size", "<u4"),
        ("flags", "<u2"),
        ("attempts", "<u2"),
        ("put_backs", "<u2"),
        ("hops", "<u2"),
    ]
)
#: Columns that are in the index, and under which name.
_COUNTS: Final = {"delivery_count": "attempts", "put_backs": "put_backs", "hops": "hops"}
#: The other columns that a broker sends, besides sequences and values: bit, index field, type.
_OF_COLUMNS: Final = (
    (COLUMN_TIMESTAMP, "timestamp", "<i8"),
    (COLUMN_FLAGS, "flags", "<u2"),
    (COLUMN_ATTEMPTS, "attempts", "<u2"),
    (COLUMN_PUT_BACKS, "put_backs", "<u2"),
    (COLUMN_HOPS, "hops", "<u2"),
)
#: A string or binary view: length, then the value itself if it has at most 12 bytes, else its first
#: four, the number of the buffer and the place in it.
_VIEW: Final = np.dtype([("size", "<i4"), ("prefix", "<u4"), ("buffer", "<i4"), ("offset", "<i4")])
_INLINE: Final = 12
#: The head of a block (see tmqp.blocks); the last number is its own checksum.
_HEAD: Final = struct.Struct("<4sHHIIQQQQQII")
_MAGIC: Final = b"TMQB"
_VERSION: Final = 1
_CRC_AT: Final = HEAD_SIZE - 4
_HEADERS_REMEMBERED: Final = 1_024
#: Offsets in Arrow's views are signed numbers of 32 bits.
_LARGEST_BUFFER: Final = 2**31 - 1

#: Received bytes, as an object with a buffer.
Data: TypeAlias = "bytes | memoryview"


class Portion:
    """Messages that were read and not yet made into columns.

    ``buffers`` holds the received bytes; the others are arrays with one element per message:
    ``entry`` the row of the index, ``buffer`` the number of the buffer, ``body`` and ``payload``
    the offsets of body and payload in it, ``payload_size`` the payload's size.
    """

    __slots__ = ("body", "buffer", "buffers", "entry", "payload", "payload_size")

    def __init__(
        self,
        buffers: list[Data],
        entry: Any,
        buffer: Any,
        body: Any,
        payload: Any,
        payload_size: Any,
    ) -> None:
        self.buffers = buffers
        self.entry = entry
        self.buffer = buffer
        self.body = body
        self.payload = payload
        self.payload_size = payload_size

    def __len__(self) -> int:
        return len(self.entry)

    def select(self, mask: Any) -> Portion:
        """Return only the messages for which ``mask`` is true."""
        return Portion(
            self.buffers,
            self.entry[mask],
            self.buffer[mask],
            self.body[mask],
            self.payload[mask],
            self.payload_size[mask],
        )


def read_portion(
    answers: list[tuple[Data, int]], checksums: str, what: str, bodies: bool = True
) -> Portion:
    """Read the heads and indexes of blocks; bodies are not copied.

    :param answers: for each answer its bytes, and the offset of the first block in them.
    :param checksums: which checksums are checked: ``all``, ``index`` or ``none``.
    :param what: the source of the messages, for errors.
    :param bodies: the blocks include bodies; otherwise no column can be made of them.
    :raises DecodeFailed: if the blocks are damaged.
    """
    try:
        return _read_portion(answers, checksums, bodies)
    except BlockError as error:
        raise DecodeFailed(
            f"{what}: the received data is damaged: {error}; tmqp-server check shows whether the "
            f"broker's data is"
        ) from None


def _read_portion(answers: list[tuple[Data, int]], checksums: str, bodies: bool) -> Portion:
    entries: list[Any] = []
    # For each block: the number of messages, the offset of its bodies, and their size.
    counts: list[int] = []
    bases: list[int] = []
    sizes: list[int] = []
    in_buffer: list[int] = []
    for data, start in answers:
        view = memoryview(data)
        if len(view) > _LARGEST_BUFFER:
            raise BlockError(f"an answer of {len(view)} bytes is too large to be columns")
        at, before = start, sum(counts)
        while at < len(view):
            if is_columns(view, at):
                found = read_columns(
                    view, at, index=checksums != "none", payloads=checksums == "all"
                )
                entries.append(_entries(view, found))
                counts.append(found.count)
                bases.append(found.payloads)
                sizes.append(found.end - found.payloads)
                at = found.end
                continue
            count, body_size = _read_head(view, at, checksums, bodies)
            entries.append(np.frombuffer(view, np.uint8, ENTRY_SIZE * count, at + HEAD_SIZE))
            at += HEAD_SIZE + ENTRY_SIZE * count
            counts.append(count)
            bases.append(at)
            sizes.append(body_size)
            if bodies:
                at += body_size
        in_buffer.append(sum(counts) - before)
    buffers = [data for data, _ in answers]
    if not entries:
        nothing = np.empty(0, np.int32)
        return Portion(buffers, np.empty(0, _ENTRY), nothing, nothing, nothing, nothing)
    # Joined as bytes: numpy compares the fields of records one by one before it joins them.
    entry = (entries[0] if len(entries) == 1 else np.concatenate(entries)).view(_ENTRY)
    body, payload, payload_size = _places(entry, counts, bases, sizes)
    sequence = entry["sequence"]
    if not (sequence[1:] > sequence[:-1]).all():
        raise BlockError("messages are out of order")
    if len(buffers) == 1:
        buffer = np.zeros(len(entry), np.int32)
    else:
        buffer = np.repeat(np.arange(len(buffers), dtype=np.int32), in_buffer)
    return Portion(buffers, entry, buffer, body, payload, payload_size)


def _entries(view: memoryview, found: ColumnBlock) -> Any:
    """Make the index of a block from columns: missing fields are 0, and the body of each message is
    its payload."""
    count = found.count
    entry = np.zeros(count, _ENTRY)
    place = found.places.get(COLUMN_SEQUENCES)
    if place is None:
        entry["sequence"] = np.arange(found.first, found.last + 1, dtype=np.uint64)
    else:
        entry["sequence"] = np.frombuffer(view, "<u8", count, place)
    for bit, name, kind in _OF_COLUMNS:
        if bit in found.places:
            entry[name] = np.frombuffer(view, kind, count, found.places[bit])
    if COLUMN_VALUE in found.places:
        size = np.frombuffer(view, "<u4", count, found.places[COLUMN_VALUE])
        ends = np.cumsum(size, dtype=np.uint64)
        if int(ends[-1]) != found.end - found.payloads:
            raise BlockError("the sizes of payloads do not match the payloads")
        entry["position"] = ends - size
        entry["size"] = entry["payload_size"] = size
    return entry.view(np.uint8)


def _places(
    entry: Any, counts: list[int], bases: list[int], sizes: list[int]
) -> tuple[Any, Any, Any]:
    """Return the offsets of bodies and payloads in their buffers, and the sizes of payloads.

    Numbers of 32 bits need half the memory; no sum overflows, because each part is first compared
    with the largest block.

    :raises BlockError: if one is outside of its block.
    """
    position = np.ascontiguousarray(entry["position"])
    size = np.ascontiguousarray(entry["size"])
    offset = np.ascontiguousarray(entry["payload_offset"])
    payload_size = np.ascontiguousarray(entry["payload_size"])
    largest = max(sizes)
    if any(int(part.max()) > largest for part in (position, size, offset, payload_size)):
        raise BlockError("the place of a message is impossible")
    firsts = np.cumsum([0, *counts[:-1]])
    ends = np.maximum.reduceat(position + size, firsts)
    if (ends > sizes).any() or (offset + payload_size > size).any():
        raise BlockError("the place of a message is impossible")
    if len(bases) == 1:
        body = position + np.uint32(bases[0])
    else:
        body = position + np.repeat(np.array(bases, np.uint32), counts)
    payload = body + offset
    return body.view(np.int32), payload.view(np.int32), payload_size.view(np.int32)


def _read_head(view: memoryview, start: int, checksums: str, bodies: bool) -> tuple[int, int]:
    """Return the number of messages in the block at ``start``, and the size of their bodies."""
    if len(view) - start < HEAD_SIZE:
        raise BlockError(f"{len(view) - start} trailing bytes are not a valid block")
    magic, version, _, count, entry_size, _, _, _, body_size, _, body_crc, crc = _HEAD.unpack_from(
        view, start
    )
    if magic != _MAGIC or version != _VERSION or entry_size != ENTRY_SIZE:
        raise BlockError(f"no block of version {_VERSION} begins here")
    if not 1 <= count <= MAX_COUNT:
        raise BlockError(f"a block of {count} messages is impossible")
    index_end = start + HEAD_SIZE + ENTRY_SIZE * count
    end = index_end + body_size if bodies else index_end
    if end > len(view):
        raise BlockError(f"a block of {end - start} bytes was cut short")
    if checksums != "none":
        found = crc32(view[start + HEAD_SIZE : index_end], crc32(view[start : start + _CRC_AT]))
        if found != crc:
            raise BlockError("the checksum of head and index does not match")
    if bodies and checksums == "all" and crc32(view[index_end:end]) != body_crc:
        raise BlockError("the checksum of the bodies does not match")
    return count, body_size


class BatchBuilder:
    """Makes record batches from portions of one queue.

    :param projection: the columns, in order.
    :param channel: the value of this column, as are ``queue`` and ``incarnation``.
    :param what: broker, channel and queue, for errors.
    """

    def __init__(
        self, projection: Projection, channel: str, queue: int, incarnation: str, what: str
    ) -> None:
        self._projection = projection
        self._constants = {"channel": channel, "queue": queue, "incarnation": incarnation}
        self._cached: dict[str, Any] = {}
        self._what = what
        self._parsed: dict[bytes, list[tuple[str, str]]] = {}

    def build(self, portion: Portion) -> Any:
        """Make the record batch of a portion, which must not be empty.

        :raises DecodeFailed: if a body does not fit its index entry, text is not UTF-8, or a column
            that must not be null would be.
        """
        work = _Work(portion, self._what)
        projection = self._projection
        columns: list[Any] = []
        for name, kind, nullable in zip(
            projection.names, projection.types, projection.nullable, strict=True
        ):
            column = self._column(name, kind, work)
            if not nullable and column.null_count:
                raise DecodeFailed(
                    f"{self._what}: column {name} is NOT NULL in the schema, and"
                    f" {column.null_count} of {work.describe()} have none; let it be null"
                )
            columns.append(column)
        return pa.RecordBatch.from_arrays(columns, schema=projection.schema)

    def _column(self, name: str, kind: str, work: _Work) -> Any:
        if name in self._constants:
            return self._constant(name, kind, len(work.entry))
        entry = work.entry
        if name == "seq":
            return _fixed(pa.int64(), entry["sequence"].astype(np.int64))
        if name == "timestamp":
            return _fixed(pa.timestamp("us", tz="UTC"), np.ascontiguousarray(entry["timestamp"]))
        if name in _COUNTS:
            return _fixed(pa.int32(), entry[_COUNTS[name]].astype(np.int32))
        if name == "value":
            return work.bytes_at("value", kind, work.payload, work.payload_size, None)
        if name == "frame":
            return work.bytes_at(
                "frame", kind, work.body, entry["size"].astype(np.int64), work.native
            )
        if name == "high_priority":
            return _bits((entry["flags"] & FLAG_HIGH) != 0, None)
        if name == "one_delivery":
            return _bits((work.head(0) & FIRST_ACQUIRER) != 0, work.native)
        if name == "pending_ack":
            return _bits((work.head(1) & PENDING_ACKNOWLEDGE) != 0, work.native)
        if name == "pending_response":
            return _bits((work.head(1) & PENDING_RESPONSE) != 0, work.native)
        if name == "ttl":
            return _fixed(pa.int32(), (work.head(1) & TTL_BITS).astype(np.int32), work.native)
        if name == "message_id":
            return work.text(name, work.names, work.head(2))
        if name == "source":
            return work.text(name, work.names + work.head(2), work.head(3))
        if name == "pushed_channel":
            # A dead letter keeps the form in which it was pushed, including the old queue.
            return work.text(name, work.names + work.head(2) + work.head(3), work.head(4))
        if name == "pushed_queue":
            queue = work.head(5) | work.head(6) << 8
            return _fixed(pa.int32(), queue.astype(np.int32), work.native)
        assert name == "headers", f"the projection has checked {name}"
        return self._headers(work)

    def _constant(self, name: str, kind: str, count: int) -> Any:
        """A column with the same value in each row; a long one is made once and sliced."""
        found = self._cached.get(name)
        if found is None or len(found) < count:
            found = _repeated(kind, self._constants[name], max(count, 4_096))
            self._cached[name] = found
        return found.slice(0, count)

    def _headers(self, work: _Work) -> Any:
        """The header pairs of each message; the only column that needs Python code for each message
        that has headers."""
        names_end = work.names + work.head(2) + work.head(3) + work.head(4)
        has = ((work.head(1) & HAS_HEADER) != 0) & work.native
        payload = work.payload
        rows: list[list[tuple[str, str]] | None] = [
            [] if native else None for native in work.native.tolist()
        ]
        for row in np.nonzero(has)[0].tolist():
            data = work.buffers[int(work.buffer[row])]
            block = bytes(data[int(names_end[row]) + 2 : int(payload[row])])
            pairs = self._parsed.get(block)
            if pairs is None:
                try:
                    pairs = parse_headers(block.decode("utf-8"))
                except UnicodeDecodeError:
                    raise DecodeFailed(
                        f"{self._what}: the headers of message"
                        f" {int(work.entry['sequence'][row])} are not UTF-8"
                    ) from None
                if len(self._parsed) < _HEADERS_REMEMBERED:
                    self._parsed[block] = pairs
            rows[row] = pairs
        return pa.array(
            [
                None if row is None else [{"key": key, "value": value} for key, value in row]
                for row in rows
            ],
            self._projection.schema.field("headers").type,
        )


class _Work:
    """Intermediate results that the columns of one batch share, each computed when first needed."""

    def __init__(self, portion: Portion, what: str) -> None:
        self.entry = portion.entry
        self.buffers = portion.buffers
        self.buffer = portion.buffer
        self.body = portion.body
        self.payload = portion.payload
        self.payload_size = portion.payload_size
        self.what = what
        self.native = (portion.entry["flags"] >> FLAG_DOOR_SHIFT) == DOOR_NATIVE
        self._arrays = [np.frombuffer(data, np.uint8) for data in portion.buffers]
        self._heads: dict[int, Any] = {}
        self._names: Any = None
        # The first row of each buffer; messages of a buffer are consecutive.
        self._rows = np.searchsorted(self.buffer, np.arange(len(self.buffers) + 1))

    def describe(self) -> str:
        """Describe the messages, for errors."""
        sequence = self.entry["sequence"]
        return f"{len(sequence)} messages ({int(sequence[0])} to {int(sequence[-1])})"

    def gather(self, at: Any) -> Any:
        """Read the byte at an offset in each message's buffer."""
        found = np.empty(len(at), np.uint8)
        for number, array in enumerate(self._arrays):
            start, stop = self._rows[number], self._rows[number + 1]
            np.take(array, at[start:stop], out=found[start:stop], mode="clip")
        return found

    def head(self, place: int) -> Any:
        """One byte of the head of each message, as int64; 0 for messages of other protocols."""
        found = self._heads.get(place)
        if found is None:
            found = self.gather(self.body + place).astype(np.int64)
            if not self.native.all():
                found[~self.native] = 0
            self._heads[place] = found
        return found

    @property
    def names(self) -> Any:
        """The offset of each message id (F4), checked to lie before the payload."""
        if self._names is None:
            tier = self.head(7)
            wide = np.where(
                tier > LARGEST_SHORT, np.left_shift(1, np.maximum(tier - LARGEST_SHORT, 0)), 0
            )
            names = self.body + HEAD_BYTES + wide
            end = names + self.head(2) + self.head(3) + self.head(4)
            if ((end > self.payload) & self.native).any():
                raise DecodeFailed(f"{self.what}: a body among {self.describe()} is not a message")
            self._names = names
        return self._names

    def text(self, name: str, at: Any, size: Any) -> Any:
        """A column of names; null where there is none."""
        return self.bytes_at(name, "string", at, size, self.native & (size > 0))

    def bytes_at(self, name: str, kind: str, at: Any, size: Any, valid: Any) -> Any:
        """A column of values in the buffers; all are valid if ``valid`` is None."""
        views = np.zeros(len(at), _VIEW)
        views["size"] = size
        if len(self.buffers) > 1:
            views["buffer"] = self.buffer
        views["offset"] = at
        if size.min() <= _INLINE:
            short = size <= _INLINE
            self._inline(views, at, size, np.nonzero(short)[0])
        bitmap = None
        if valid is not None and not valid.all():
            views[~valid] = np.zeros((), _VIEW)
            bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
        buffers = [bitmap, pa.py_buffer(views), *map(pa.py_buffer, self.buffers)]
        found = pa.Array.from_buffers(pa.binary_view(), len(at), buffers).cast(pa.binary())
        if kind == "binary":
            return found
        try:
            return found.cast(pa.string())
        except pa.ArrowInvalid:
            raise DecodeFailed(
                f"{self.what}: column {name} of {self.describe()} is not UTF-8"
                + ("; read it as binary" if name == "value" else "")
            ) from None

    def _inline(self, views: Any, at: Any, size: Any, rows: Any) -> None:
        """Write values of at most twelve bytes into their views."""
        columns = np.arange(_INLINE)
        inline = np.zeros((len(rows), _INLINE), np.uint8)
        buffer = self.buffer[rows]
        for number, array in enumerate(self._arrays):
            here = np.nonzero(buffer == number)[0]
            if len(here):
                places = at[rows[here]][:, None] + columns
                inline[here] = np.take(array, places, mode="clip")
        inline[columns >= size[rows][:, None]] = 0
        views.view(np.uint8).reshape(len(views), _VIEW.itemsize)[rows, 4:] = inline


def _fixed(arrow: Any, values: Any, valid: Any = None) -> Any:
    """A column of numbers."""
    bitmap = None
    if valid is not None and not valid.all():
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(arrow, len(values), [bitmap, pa.py_buffer(values)])


def _repeated(kind: str, value: Any, count: int) -> Any:
    """A column with one value, made of buffers, because pyarrow loads pandas to make a scalar."""
    if kind == "int":
        return _fixed(pa.int32(), np.full(count, value, np.int32))
    text = value.encode()
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(len(text))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text * count)]
    return pa.Array.from_buffers(pa.string(), count, buffers)


def _bits(values: Any, valid: Any) -> Any:
    """A column of booleans."""
    return _fixed_bits(len(values), np.packbits(values, bitorder="little"), valid)


def _fixed_bits(count: int, bits: Any, valid: Any) -> Any:
    bitmap = None
    if valid is not None and not valid.all():
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), count, [bitmap, pa.py_buffer(bits)])
