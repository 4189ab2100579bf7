"""Convert Arrow columns to TMQP push messages: whole batches, without Python code for each row.

Theory of operation.  A push message consists of a few consecutive parts (F1 to F7): eight bytes of
head and the extended length, the message id, source and target, the header block, the payload.  For
a batch, each part is a column: constant, computed with numpy, or the user's own.  Joining the
columns row by row gives one column of whole messages, and Arrow keeps a column of bytes as a single
piece of memory: so the messages are consecutive as on the wire, and a block to send is a slice of
it.

The acknowledgements that a server will send for these messages are made in the same way.  They are
compared with the received bytes, many at a time (:mod:`tmqp_spark.sink`).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tmqp.bits import (
    FIRST_ACQUIRER,
    HAS_HEADER,
    HEAD_BYTES,
    HIGH_PRIORITY,
    LARGEST_SHORT,
    MAX_U16,
    PENDING_ACKNOWLEDGE,
    TIER_U16,
    TIER_U32,
    TIER_U64,
)
from tmqp.constants import (
    DEFAULT_TTL,
    MAX_HEADER_BLOCK_BYTES,
    MAX_NAME_BYTES,
    MAX_QUEUE_ID,
    MAX_TTL,
    TYPE_ACKNOWLEDGE,
    TYPE_QUEUE_MESSAGE,
)
from tmqp_spark.errors import EncodingError

__all__ = ["ID_DIGITS", "SINK_COLUMNS", "EncodedBatch", "MessageEncoder"]

#: Columns that a sink takes, and the Spark types they may have.
SINK_COLUMNS: Final = {
    "value": "binary or string",
    "channel": "string",
    "queue": "tinyint, smallint, int or bigint",
    "message_id": "string",
    "headers": "map<string,string> or array<struct<key:string,value:string>>",
    "high_priority": "boolean",
    "ttl": "tinyint, smallint, int or bigint",
}
#: Digits of the number behind the prefix of a generated message id.
ID_DIGITS: Final = 8

_EMPTY: Final = pa.scalar(b"", pa.large_binary())

#: The four hexadecimal digits of each number of 16 bits, as one number each: two look-ups make an
#: id, where a digit at a time cost 90 ns a message.
_HEX4: Final = np.frombuffer(b"".join(b"%04x" % number for number in range(65_536)), np.uint32)


class EncodedBatch:
    """The messages of one batch.

    ``data`` has all messages, one after the other; message ``i`` begins at ``offsets[i]``, and the
    last of the ``offsets`` is the end.  ``acknowledges`` and ``acknowledge_offsets`` are in the
    same way the server's answers if it accepts all of them.  ``source`` is the id of the client
    that pushes them.
    """

    __slots__ = ("acknowledge_offsets", "acknowledges", "count", "data", "offsets", "source")

    def __init__(
        self,
        source: str,
        count: int,
        data: memoryview,
        offsets: np.ndarray[Any, np.dtype[np.int64]],
        acknowledges: memoryview,
        acknowledge_offsets: np.ndarray[Any, np.dtype[np.int64]],
    ) -> None:
        self.source = source
        self.count = count
        self.data = data
        self.offsets = offsets
        self.acknowledges = acknowledges
        self.acknowledge_offsets = acknowledge_offsets

    def cuts(self, most_bytes: int) -> list[int]:
        """Return where to cut the batch into blocks: row numbers from 0 to ``count``.

        A block has at most ``most_bytes``, unless a single message alone has more.
        """
        offsets = self.offsets
        cuts = [0]
        row = 0
        while row < self.count:
            limit = int(offsets[row]) + most_bytes
            end = int(np.searchsorted(offsets, limit, side="right")) - 1
            row = min(max(end, row + 1), self.count)
            cuts.append(row)
        return cuts

    def block(self, start: int, end: int) -> memoryview:
        """Return the bytes of the messages from ``start`` to before ``end``."""
        return self.data[int(self.offsets[start]) : int(self.offsets[end])]

    def expected(self, start: int, end: int) -> bytes:
        """Return the expected acknowledgements of the messages from ``start`` to before ``end``."""
        offsets = self.acknowledge_offsets
        return bytes(self.acknowledges[int(offsets[start]) : int(offsets[end])])


class MessageEncoder:
    """Makes push messages from Arrow batches of one schema.

    :param channel: the channel for rows that name none; empty if all rows name one.
    :param queue: the queue id for rows that name none; None if all rows name one.
    :param source: the client's own id; a server accepts no other (F42).
    :param id_prefix: the beginning of generated message ids, followed by a number that increases;
        rows with a message id keep theirs.
    :param ask: request an acknowledgement of each message.
    """

    def __init__(
        self, channel: str, queue: int | None, source: str, id_prefix: str, *, ask: bool
    ) -> None:
        self._channel = channel
        self._queue = queue
        self._target = _name_bytes("channel", channel)
        self._prefix = _name_bytes("prefix of message ids", id_prefix)
        if len(self._prefix) + ID_DIGITS > MAX_NAME_BYTES:
            raise EncodingError(f"the prefix of message ids is over {MAX_NAME_BYTES} bytes")
        self._ask = ask
        self._made = 0
        self._named = ""
        self._source = b""
        self.rename(source)

    def rename(self, source: str) -> None:
        """Make messages from this client id from now on, because a new connection has another
        one."""
        self._named = source
        self._source = _name_bytes("client id", source)

    @property
    def made(self) -> int:
        """The number of messages made so far; the next generated id has this number."""
        return self._made

    def encode(self, batch: pa.RecordBatch) -> EncodedBatch:
        """Make a message from each row.

        :raises EncodingError: if a row cannot be a message.
        """
        count = batch.num_rows
        if count == 0:
            nothing = np.zeros(1, np.int64)
            return EncodedBatch("", 0, memoryview(b""), nothing, memoryview(b""), nothing)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        where = f"rows {self._made} to {self._made + count}"
        value = _binary(_no_nulls(columns["value"], "value", where))
        ids = self._ids(columns.get("message_id"), count, where)
        target = self._targets(columns.get("channel"), where)
        low_high = self._queues(columns.get("queue"), count, where)
        blocks = _header_blocks(columns["headers"], where) if "headers" in columns else None
        head = np.zeros((count, HEAD_BYTES), np.uint8)
        head[:, 0] = _first_bytes(columns.get("high_priority"))
        head[:, 1] = _second_bytes(columns.get("ttl"), blocks, self._ask, where)
        head[:, 2] = _lengths(ids, "message id", where)
        head[:, 3] = len(self._source)
        head[:, 4] = len(self._target) if target is None else _lengths(target, "channel", where)
        head[:, 5:7] = low_high
        heads, sizes = _with_payload_length(head, _byte_lengths(value))
        constant = self._source if target is not None else self._source + self._target
        parts: list[Any] = [heads, ids, pa.scalar(constant, pa.large_binary())]
        if target is not None:
            parts.append(target)
        if blocks is not None:
            parts.append(blocks)
        parts.append(value)
        joined = pc.binary_join_element_wise(*parts, _EMPTY)
        data, offsets = _pieces(joined)
        answers, answer_offsets = self._answers(head, sizes, ids, target, low_high, count)
        self._made += count
        return EncodedBatch(self._named, count, data, offsets, answers, answer_offsets)

    def _ids(self, given: Any, count: int, where: str) -> Any:
        """The message ids as a column of bytes: the rows' own, or generated ones (F41)."""
        if given is not None:
            missing = pc.fill_null(pc.equal(given, ""), True)
            if not pc.any(missing).as_py():
                return _binary(given)
            return pc.if_else(missing, self._ids(None, count, where), _binary(given))
        width = len(self._prefix) + ID_DIGITS
        if self._made + count > 1 << 32:
            raise EncodingError(f"{where}: a task writes at most 2^32 messages")
        matrix = np.empty((count, width), np.uint8)
        matrix[:, : len(self._prefix)] = np.frombuffer(self._prefix, np.uint8)
        numbers = np.arange(self._made, self._made + count, dtype=np.uint32)
        digits = np.empty((count, 2), np.uint32)
        digits[:, 0] = _HEX4[numbers >> 16]
        digits[:, 1] = _HEX4[numbers & 0xFFFF]
        matrix[:, len(self._prefix) :] = digits.view(np.uint8)
        return _fixed(matrix)

    def _targets(self, given: Any, where: str) -> Any:
        """The channels as a column of bytes, or None if all rows have the same channel."""
        if given is None:
            return None
        if given.null_count:
            if not self._channel:
                raise EncodingError(
                    f"{where}: column channel is null, and the option 'channel' is not set"
                )
            given = pc.fill_null(given, self._channel)
        return _binary(given)

    def _queues(self, given: Any, count: int, where: str) -> Any:
        """The low and high bytes of the queue ids: one pair for all rows, or one for each."""
        if given is None:
            assert self._queue is not None, "the options were checked"
            return np.array([self._queue & 0xFF, self._queue >> 8], np.uint8)
        if given.null_count:
            if self._queue is None:
                raise EncodingError(
                    f"{where}: column queue is null, and the option 'queue' is not set"
                )
            given = pc.fill_null(given, pa.scalar(self._queue, given.type))
        numbers = given.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        wrong = (numbers < 0) | (numbers > MAX_QUEUE_ID)
        if wrong.any():
            bad = int(numbers[int(wrong.argmax())])
            raise EncodingError(f"{where}: a queue id must be 0 to {MAX_QUEUE_ID}, got {bad}")
        return numbers.astype("<u2").view(np.uint8).reshape(count, 2)

    def _answers(
        self, head: Any, sizes: Any, ids: Any, target: Any, low_high: Any, count: int
    ) -> tuple[memoryview, Any]:
        """The acknowledgements of all rows, as a server makes them (F78)."""
        if not self._ask:
            return memoryview(b""), np.zeros(count + 1, np.int64)
        answer = np.zeros((count, HEAD_BYTES), np.uint8)
        answer[:, 0] = FIRST_ACQUIRER | TYPE_ACKNOWLEDGE
        answer[:, 1] = DEFAULT_TTL
        answer[:, 2] = head[:, 2]
        answer[:, 4] = head[:, 4]
        answer[:, 5:7] = low_high
        name = pa.scalar(self._target, pa.large_binary()) if target is None else target
        return _pieces(pc.binary_join_element_wise(_fixed(answer), ids, name, _EMPTY))


# --- Columns -------------------------------------------------------------------------------------


def _name_bytes(what: str, text: str) -> bytes:
    encoded = text.encode()
    if len(encoded) > MAX_NAME_BYTES:
        raise EncodingError(f"the {what} is {len(encoded)} bytes, at most {MAX_NAME_BYTES} (F6)")
    return encoded


def _no_nulls(column: Any, name: str, where: str) -> Any:
    if column.null_count:
        nulls = pc.index(pc.is_null(column), True).as_py()
        raise EncodingError(
            f"{where}: column {name} is null in row {nulls} of them; a message needs one: filter"
            f" with \"{name} is not null\", or fill it with coalesce({name}, '')"
        )
    return column


def _binary(column: Any) -> Any:
    """Convert a column of text or bytes to bytes with 64-bit offsets, because a batch may exceed 2
    GiB."""
    if pa.types.is_large_binary(column.type):
        return column
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(pa.binary() if pa.types.is_string(column.type) else pa.large_binary())
    return column.cast(pa.large_binary())


def _fixed(matrix: Any) -> Any:
    """A column of bytes in which all rows have the same length."""
    count, width = matrix.shape
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int64)[: count + 1]
    return pa.Array.from_buffers(
        pa.large_binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(matrix)]
    )


def _pieces(column: Any) -> tuple[memoryview, Any]:
    """The memory of a column of bytes, and the offset of each row in it."""
    buffers = column.buffers()
    offsets = np.frombuffer(buffers[1], np.int64, len(column) + 1, column.offset * 8)
    if buffers[2] is None:
        return memoryview(b""), offsets
    return memoryview(buffers[2]).cast("B")[: int(offsets[-1])], offsets


def _byte_lengths(column: Any) -> Any:
    buffers = column.buffers()
    offsets = np.frombuffer(buffers[1], np.int64, len(column) + 1, column.offset * 8)
    return np.diff(offsets)


def _lengths(column: Any, what: str, where: str) -> Any:
    lengths = _byte_lengths(column)
    if len(lengths) and int(lengths.max()) > MAX_NAME_BYTES:
        row = int((lengths > MAX_NAME_BYTES).argmax())
        raise EncodingError(
            f"{where}: the {what} in row {row} of them has {int(lengths[row])} bytes, at most"
            f" {MAX_NAME_BYTES} (F6)"
        )
    return lengths


def _first_bytes(high_priority: Any) -> Any:
    """The first bytes: message type and the bit of high priority (F2)."""
    if high_priority is None:
        return TYPE_QUEUE_MESSAGE
    flags = pc.fill_null(high_priority, False).to_numpy(zero_copy_only=False)
    return flags.astype(np.uint8) * HIGH_PRIORITY | TYPE_QUEUE_MESSAGE


def _second_bytes(ttl: Any, blocks: Any, ask: bool, where: str) -> Any:
    """The second bytes: time to live and the bits for acknowledgement and header block (F2,
    F11)."""
    flags = PENDING_ACKNOWLEDGE if ask else 0
    if ttl is None and blocks is None:
        return flags | DEFAULT_TTL
    second: Any = DEFAULT_TTL
    if ttl is not None:
        numbers = pc.fill_null(ttl, pa.scalar(DEFAULT_TTL, ttl.type)).to_numpy(zero_copy_only=False)
        wrong = (numbers < 1) | (numbers > MAX_TTL)
        if wrong.any():
            bad = int(numbers[int(wrong.argmax())])
            raise EncodingError(f"{where}: a time to live is 1..{MAX_TTL}, got {bad} (F11)")
        second = numbers.astype(np.uint8)
    if blocks is not None:
        second = second | (_byte_lengths(blocks) > 0) * np.uint8(HAS_HEADER)
    return second | flags


def _with_payload_length(head: Any, sizes: Any) -> tuple[Any, Any]:
    """Write the payload lengths (F4) into or after the heads; return the column of heads, and the
    lengths."""
    count = len(sizes)
    longest = int(sizes.max()) if count else 0
    if longest <= LARGEST_SHORT:
        head[:, 7] = sizes
        return _fixed(head), sizes
    widths = np.where(sizes <= LARGEST_SHORT, 0, np.where(sizes <= MAX_U16, 2, 4))
    if longest > 0xFFFF_FFFF:
        widths = np.where(sizes > 0xFFFF_FFFF, 8, widths)
    head[:, 7] = np.where(widths == 0, sizes, np.where(widths == 2, TIER_U16, TIER_U32))
    head[widths == 8, 7] = TIER_U64
    wide = np.zeros((count, HEAD_BYTES + 8), np.uint8)
    wide[:, :HEAD_BYTES] = head
    wide[:, HEAD_BYTES:] = sizes.astype("<u8").view(np.uint8).reshape(count, 8)
    first = int(widths[0])
    if (widths == first).all():
        return _fixed(np.ascontiguousarray(wide[:, : HEAD_BYTES + first])), sizes
    keep = np.arange(HEAD_BYTES + 8) < (HEAD_BYTES + widths)[:, None]
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(HEAD_BYTES + widths, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(wide[keep])]
    return pa.Array.from_buffers(pa.large_binary(), count, buffers), sizes


# --- Headers -------------------------------------------------------------------------------------


def _header_blocks(column: Any, where: str) -> Any:
    """The header block of each row, preceded by its length; empty if there is none (F9)."""
    # Keys and values are those of the whole column, whatever slice of it this is.
    if pa.types.is_map(column.type):
        keys, values = column.keys, column.items
    else:
        keys, values = column.values.field(0), column.values.field(1)
    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)
    first, last = int(offsets[0]), int(offsets[-1])
    keys, values = keys.slice(first, last - first), values.slice(first, last - first)
    _check_headers(keys, values, where)
    lines = pc.binary_join_element_wise(
        _binary(keys),
        pa.scalar(b":", pa.large_binary()),
        _binary(pc.fill_null(values, "")),
        pa.scalar(b"\r\n", pa.large_binary()),
        _EMPTY,
    )
    starts = pa.array(offsets.astype(np.int64) - first)
    rows = pa.LargeListArray.from_arrays(starts, lines, mask=pc.is_null(column))
    texts = pc.fill_null(pc.binary_join(rows, _EMPTY), _EMPTY)
    lengths = _byte_lengths(texts)
    if len(lengths) and int(lengths.max()) > MAX_HEADER_BLOCK_BYTES:
        raise EncodingError(
            f"{where}: a header block has {int(lengths.max())} bytes, at most"
            f" {MAX_HEADER_BLOCK_BYTES} (F6)"
        )
    prefixes = _fixed(lengths.astype("<u2").view(np.uint8).reshape(len(lengths), 2))
    joined = pc.binary_join_element_wise(prefixes, texts, _EMPTY)
    return pc.if_else(pa.array(lengths > 0), joined, _EMPTY)


def _check_headers(keys: Any, values: Any, where: str) -> None:
    """Refuse line breaks and colons, which would forge other headers or keys (F7)."""
    if len(keys) == 0:
        return
    if keys.null_count or pc.any(pc.equal(keys, "")).as_py():
        raise EncodingError(f"{where}: a header has no key")
    for column, letters, what in ((keys, ":\r\n", "key"), (values, "\r\n", "value")):
        for letter in letters:
            if pc.any(pc.match_substring(column, letter)).as_py():
                raise EncodingError(
                    f"{where}: a header {what} holds {letter!r}, which would read as another header"
                )
