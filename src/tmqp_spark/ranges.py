"""Reads one range of one queue: requests ahead, and resumes after the broker was unreachable.

Theory of operation.  The range is requested in *spans* of sequences, several of them concurrently;
their answers are read in order.  The broker is asked first where spans should end: at the end of
blocks, so that it need not cut any.  An answer that ends before its span was cut by one of the
broker's limits, or ends in a gap: the rest of the span is requested before anything else.

A broker that does not know where blocks end gets spans as long as the last answer, which grow again
while answers are small, so that its unknown limits are found.

*On the broker's machine* an answer refers to blocks in the broker's database instead of containing
them (:mod:`tmqp_spark.database`).  Such an answer is small whatever it refers to, so the whole
range is requested together.  If an answer ends early, the rest is requested immediately, so the
broker finds the next blocks while these are fetched.  Blocks of which only a part is kept, or about
which the broker has noted something, are in the answer itself; from a block with messages of other
protocols on, all are, because the broker translates those.

When the connection is lost, all requests in flight are dropped and sent again on another one, from
the message after the last one that was passed on: no message arrives twice, and none is left out.
The number of attempts counts from the last answer.
"""

from __future__ import annotations

import json
import struct
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from tmqp import Frame, HeaderName, ResultCode
from tmqp.blocks import HEAD_SIZE, BlockError, others_in
from tmqp.extensions import (
    FORM_REFERENCES,
    HEADER_COLUMNS,
    HEADER_FORM,
    HEADER_FROM,
    HEADER_INCARNATION,
    HEADER_MAX_BYTES,
    HEADER_TO,
    OP_READ_INDEX,
    OP_READ_RANGE,
)
from tmqp.references import REFERENCE_SIZE, is_reference, read_reference
from tmqp_spark.arrow import Data, Portion, read_portion
from tmqp_spark.database import BrokerDatabase
from tmqp_spark.errors import (
    BrokerRefused,
    ConnectionBroken,
    DatabaseUnusable,
    DataLost,
    DecodeFailed,
)
from tmqp_spark.options import SourceOptions
from tmqp_spark.parts import ask_parts
from tmqp_spark.transport import BrokerLink, refusal

__all__ = ["QueueRange", "read_answers", "read_range"]

#: The largest answer of a broker by default; a smaller range is not divided.
_USUAL_BYTES: Final = 2 << 20
_LEAST_SPAN_BYTES: Final = 65_536
#: Bytes in a block per message besides its body; about a thousand messages share a block's head.
_MORE_EACH: Final = 56.1
#: How often the ends of spans are requested again, because answers are smaller than assumed.
_MOST_PLANS: Final = 6
_FIRST_SPAN: Final = 4_096
_LONGEST_SPAN: Final = 1 << 20
#: After this number of whole answers, longer spans are tried again.
_TRY_AGAIN: Final = 64
#: After this number of consecutive missing blocks, the broker sends the rest itself.
_MOST_GONE: Final = 8


#: The fields of a block's head: count, entry size, key, first and last sequence, size of bodies.
_HEAD: Final = struct.Struct("<IIQQQQ")
_FIRST: Final = struct.Struct("<Q")


class QueueRange:
    """The sequences to read from a queue: from ``start`` to before ``end``."""

    __slots__ = ("bytes", "channel", "end", "incarnation", "queue", "start")

    def __init__(
        self, channel: str, queue: int, incarnation: str, start: int, end: int, bytes: int = 0
    ) -> None:
        self.channel = channel
        self.queue = queue
        self.incarnation = incarnation
        self.start = start
        self.end = end
        #: The approximate size in bytes; 0 if unknown.
        self.bytes = bytes

    def __repr__(self) -> str:
        return f"<QueueRange {self.channel}/{self.queue} {self.start}..{self.end - 1}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QueueRange):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __hash__(self) -> int:
        return hash((self.channel, self.queue, self.start, self.end))


def read_range(
    link: BrokerLink,
    wanted: QueueRange,
    options: SourceOptions,
    bodies: bool = True,
    database: BrokerDatabase | None = None,
    columns: str | None = None,
) -> Iterator[Portion]:
    """Yield the messages of a range, in portions of about ``batchBytes``.

    :param bodies: read whole messages; otherwise only their index entries.
    :param database: the broker's database if it is on this machine, for bodies.
    :param columns: the columns that the broker sends (:attr:`.Projection.at_broker`), None for
        whole messages; no other column can be made from them.
    :raises DataLost: if ``failOnDataLoss`` is set, and the beginning is no longer kept or the queue
        was removed or replaced; otherwise the rest is read.
    :raises BrokerUnreachable: if the broker is unreachable longer than ``retries`` allow.
    :raises BrokerRefused: if it answers with another code.
    :raises DecodeFailed: if its answers are damaged.
    :raises DatabaseUnusable: if ``database`` is another broker's, or cannot be read.
    """
    what = f"{link.options.url} {wanted.channel}/{wanted.queue}"
    answers: list[tuple[Data, int]] = []
    size = 0
    for answer in read_answers(link, wanted, options, bodies, database, columns):
        if answers and size + len(answer[0]) > options.batch_bytes:
            yield read_portion(answers, options.checksums, what, bodies)
            answers, size = [], 0
        answers.append(answer)
        size += len(answer[0])
    if answers:
        yield read_portion(answers, options.checksums, what, bodies)


def read_answers(
    link: BrokerLink,
    wanted: QueueRange,
    options: SourceOptions,
    bodies: bool = True,
    database: BrokerDatabase | None = None,
    columns: str | None = None,
) -> Iterator[tuple[Data, int]]:
    """Yield the broker's answers with a range as they arrive, each with the offset of its blocks.

    With a ``database``, these are single blocks, from answers and from the database.

    :raises SparkError: as :func:`read_range`.
    """
    if not bodies:
        database = None
    reader = _Reader(link, wanted, options, bodies, database is not None, columns)
    try:
        while True:
            answer = reader.next()
            if answer is None:
                return
            if database is None:
                yield answer
            else:
                yield from reader.fetched(answer, database)
    finally:
        reader.forget()


class _Reader:
    """Requests a range and returns its answers in order."""

    def __init__(
        self,
        link: BrokerLink,
        wanted: QueueRange,
        options: SourceOptions,
        bodies: bool,
        references: bool,
        columns: str | None = None,
    ) -> None:
        self._link = link
        self._wanted = wanted
        self._options = options
        self._bodies = bodies
        #: Whether to request references to blocks, and how many consecutive ones were useless.
        self._references = references
        self._gone = 0
        self._columns = columns
        #: The approximate size of all bodies; 0 if unknown.
        self._body_bytes = wanted.bytes if bodies else 0
        self._what = (
            f"messages {wanted.start} to {wanted.end - 1} of {wanted.channel}/{wanted.queue}"
        )
        #: The ends of the requested spans, and of the messages that were passed on.
        self._asked = wanted.start
        self._done = wanted.start
        self._under_way: deque[tuple[str, int, int]] = deque()
        self._span = self._first_span()
        self._ceiling = _LONGEST_SPAN
        self._whole = 0
        self._attempt = 0
        #: The ends of spans, the last first, according to the broker; None if not requested yet.
        self._ends: list[int] | None = None
        self._answer_bytes = min(options.batch_bytes, _USUAL_BYTES)
        self._plans = 0

    def _first_span(self) -> int:
        wanted = self._wanted
        count = wanted.end - wanted.start
        if self._body_bytes <= 0 or count <= 0:
            return _FIRST_SPAN
        # Half of a broker's default limit; spans grow while answers are small.
        return max(1, min(_LONGEST_SPAN, (1 << 20) * count // self._body_bytes, 10_000))

    def forget(self) -> None:
        """Forget the requests in flight, so that the link can be used for others."""
        for message_id, _, _ in self._under_way:
            self._link.forget(message_id)
        self._under_way.clear()

    def next(self) -> tuple[Data, int] | None:
        """Return the next answer and the offset of its blocks; None when everything is read."""
        while True:
            if self._done >= self._wanted.end:
                return None
            try:
                found = self._try()
            except ConnectionBroken as error:
                self._start_over(str(error))
                continue
            except BrokerRefused as error:
                if error.code != int(ResultCode.BUSY):
                    raise
                self._start_over(str(error))
                continue
            if found is not None:
                return found

    def fetched(
        self, answer: tuple[Data, int], database: BrokerDatabase
    ) -> Iterator[tuple[Data, int]]:
        """Yield the blocks of an answer; those that it refers to are fetched from the database.

        If one no longer exists, only the blocks before it; reading then continues from there.

        :raises DatabaseUnusable: if the broker refers to another database.
        :raises DecodeFailed: if a reference is damaged.
        """
        data, start = memoryview(answer[0]), answer[1]
        while len(data) - start >= HEAD_SIZE:
            if not is_reference(data, start):
                end = _end_of(data, start, bodies=True)
                yield data[start:end], 0
                start = end
                continue
            try:
                wanted = read_reference(data, start)
            except BlockError as error:
                raise DecodeFailed(f"{self._link.options.url}: {error}") from None
            if wanted.mark != database.mark:
                raise DatabaseUnusable(
                    f"{database.path} is not the database of {self._link.options.url}: journalDir"
                    " is the data directory of the broker, as its option --data has it, on its own"
                    " machine; leave the option out to read over the network"
                )
            block = database.block(wanted)
            if block is None:
                self._gone += 1
                self._ask_again(wanted.first, self._gone <= _MOST_GONE)
                return
            if others_in(block):
                # The broker translates messages of other protocols; the rest may be like them.
                self._ask_again(wanted.first, references=False)
                return
            self._gone = 0
            yield block, 0
            start += REFERENCE_SIZE

    def _ask_again(self, first: int, references: bool) -> None:
        """Request everything from a block on again: it no longer exists, or the broker must send it
        and all further blocks itself (without ``references``)."""
        self._references = references
        self.forget()
        self._ends = None
        self._done = self._asked = max(first, self._wanted.start)

    def _start_over(self, why: str) -> None:
        self.forget()
        self._link.pause(self._attempt, self._what, why)
        self._attempt += 1
        self._asked = self._done

    def _try(self) -> tuple[Data, int] | None:
        """Request ahead, and wait for the answer of the first span; None if it has no messages."""
        self._ask_ahead()
        message_id, first, last = self._under_way[0]
        answer, raw, start = self._link.finish_large(message_id)
        self._under_way.popleft()
        if answer.content_type != 0:
            self._refused(answer)
            return None
        self._attempt = 0
        size = len(raw) - start
        if size < HEAD_SIZE:
            # No messages between here and the end of the span: a gap.
            self._done = last + 1
            return None
        got = _last_sequence(raw, start, self._bodies)
        if not first <= _FIRST.unpack_from(raw, start + 24)[0] <= got <= last:
            raise DecodeFailed(
                f"{self._link.options.url}: asked for messages {first} to {last} of"
                f" {self._wanted.channel}/{self._wanted.queue}, got others"
            )
        self._done = got + 1
        if got < last:
            if size < self._answer_bytes * 3 // 4 and self._ends and not self._references:
                # The broker's limit is lower: request new ends for the following spans.
                self._answer_bytes, self._ends = size, None
            self._cut(first, got, last)
        else:
            self._whole += 1
            if self._whole >= _TRY_AGAIN:
                self._whole = 0
                self._ceiling = min(_LONGEST_SPAN, self._ceiling * 2)
            if size < self._options.batch_bytes // 2:
                self._span = min(self._span * 2, self._ceiling)
        return raw, start

    def _ask_ahead(self) -> None:
        most = 1 + self._options.prefetch
        end = self._wanted.end
        while len(self._under_way) < most and self._asked < end:
            last = min(end - 1, self._end_of_span(self._asked))
            self._under_way.append((self._ask(self._asked, last), self._asked, last))
            self._asked = last + 1

    def _end_of_span(self, first: int) -> int:
        """Return the last sequence of the span that begins here."""
        if self._ends is None:
            self._ends = self._find_ends(first)
        while self._ends and self._ends[-1] < first:
            self._ends.pop()
        return self._ends[-1] if self._ends else first + self._span - 1

    def _find_ends(self, first: int) -> list[int]:
        """Request the ends of spans from here on; return an empty list if the broker does not know
        them."""
        whole = self._wanted
        count = whole.end - whole.start
        if self._references:
            return [whole.end - 1]
        known = self._body_bytes > 0 or not self._bodies
        if known and 0 < self._body_bytes + count * _MORE_EACH <= self._answer_bytes:
            return [whole.end - 1]
        self._plans += 1
        if self._plans > _MOST_PLANS:
            return []
        target, most = 0, None
        if self._bodies:
            each = self._body_bytes / count if self._body_bytes else _MORE_EACH
            target = max(_LEAST_SPAN_BYTES, int(self._answer_bytes * each / (each + _MORE_EACH)))
        else:
            most = int(max(_LEAST_SPAN_BYTES, self._answer_bytes) / _MORE_EACH)
        left = QueueRange(whole.channel, whole.queue, whole.incarnation, first, whole.end)
        connections = self._link.connections
        ends = [last for _, last, _ in ask_parts(self._link, left, target, most) or []]
        if self._under_way and self._link.connections != connections:
            raise ConnectionBroken("the connection was lost")  # with the requests in flight
        if ends:
            # After the last message there can only be a gap.
            ends[-1] = whole.end - 1
        return ends[::-1]

    def _ask(self, first: int, last: int) -> str:
        wanted = self._wanted
        headers = [
            (HeaderName.QUEUE_ID.value, str(wanted.queue)),
            (HEADER_FROM, str(first)),
            (HEADER_TO, str(last)),
            (HEADER_MAX_BYTES, str(self._options.batch_bytes)),
        ]
        if wanted.incarnation:
            headers.append((HEADER_INCARNATION, wanted.incarnation))
        operation = OP_READ_RANGE if self._bodies else OP_READ_INDEX
        if self._references:
            headers.append((HEADER_FORM, FORM_REFERENCES))
        elif self._bodies and self._columns is not None:
            headers.append((HEADER_COLUMNS, self._columns))
        return self._link.start(operation, wanted.channel, headers, large=True)

    def _cut(self, first: int, got: int, last: int) -> None:
        """Handle an answer that ended early: request the rest first, and shorter spans from now
        on."""
        self._whole = 0
        self._ceiling = self._span = max(1, got - first + 1)
        self._under_way.appendleft((self._ask(got + 1, last), got + 1, last))

    def _refused(self, answer: Frame) -> None:
        code = answer.content_type
        wanted = self._wanted
        lost = (
            ResultCode.REQUESTED_RANGE_NOT_SATISFIABLE,
            ResultCode.CONFLICT,
            ResultCode.NOT_FOUND,
        )
        if code not in map(int, lost):
            raise refusal(self._link.options.url, self._what, answer)
        name = f"{self._link.options.url} {wanted.channel}/{wanted.queue}"
        if code != int(ResultCode.REQUESTED_RANGE_NOT_SATISFIABLE):
            if self._options.fail_on_data_loss:
                raise DataLost(
                    f"{name}: the queue with {self._what} was removed"
                    f"{' and re-created' if code == int(ResultCode.CONFLICT) else ''}; start from"
                    " a new checkpoint, or set failOnDataLoss=false to go on without them"
                )
            self._done = wanted.end
            return
        earliest = int(_information(answer).get("Earliest", 0))
        if self._options.fail_on_data_loss:
            raise DataLost(
                f"{name}: {self._what} are no longer all kept, the earliest is {earliest};"
                " let the queue keep more (RetainForReaders with the option group, RetainTime,"
                " RetainBytes), or set failOnDataLoss=false to continue after them"
            )
        self.forget()
        # At least one further, so that this ends whatever the broker answers.
        self._done = self._asked = max(earliest, self._done + 1)


def _last_sequence(data: Data, start: int, bodies: bool) -> int:
    """Return the last sequence of consecutive blocks, from their heads; -1 for none."""
    last = -1
    while len(data) - start >= HEAD_SIZE:
        last = _HEAD.unpack_from(data, start + 8)[4]
        start = _end_of(data, start, bodies)
    return last


def _end_of(data: Data, start: int, bodies: bool) -> int:
    """Return the end of the block, columns or reference that begins at ``start``."""
    if is_reference(data, start):
        return start + REFERENCE_SIZE
    count, each, _, _, _, size = _HEAD.unpack_from(data, start + 8)
    return start + HEAD_SIZE + int(each * count + (size if bodies else 0))


def _information(answer: Frame) -> dict[str, Any]:
    try:
        found = json.loads(answer.payload)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
