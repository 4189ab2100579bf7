"""Pushes messages one by one: the blocks of a task in flight, and the results of their messages.

Theory of operation.  A block of whole messages is sent as one piece, and the next one without
waiting; the broker acknowledges each message, in the order in which it was stored.  The expected
acknowledgements are known in advance (:class:`tmqp_spark.encoding.EncodedBatch`), so the received
bytes are compared with them, up to the mark that says whether a consumer already has the message.
That costs nothing for each message, and is correct as long as nothing is refused and one queue does
not overtake another.  Differing bytes go through the decoder, and from there on the messages in
flight are matched by their ids, until all of them are settled.

While a block is sent, acknowledgements are read: a broker that cannot send its acknowledgements
would stop reading.  A message for which the broker has no room at the moment (503) is pushed again,
a little later, after the others.  After a lost connection, all blocks that are not settled are
pushed again; so a message may be there twice, and none is missing.
"""

from __future__ import annotations

import select
import ssl
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tmqp import AcknowledgeReceived, Event, Frame, FrameDecoder, Limits, ResponseReceived
from tmqp.bits import FIRST_ACQUIRER
from tmqp.constants import OP_CHANNEL_INFORMATION, RESULT_BUSY, TYPE_QUEUE_MESSAGE
from tmqp_client._core.answers import may_answer_push
from tmqp_client.errors import code_words
from tmqp_spark.errors import BrokerRefused, BrokerUnreachable, ConnectionBroken
from tmqp_spark.options import ConnectionOptions
from tmqp_spark.transport import BrokerLink

if TYPE_CHECKING:
    from tmqp_spark.encoding import EncodedBatch

__all__ = ["Pusher"]

_SEND_BYTES: Final = 1 << 18
_READ_BYTES: Final = 1 << 18
_ANY_SIZE: Final = Limits(max_payload_bytes=(1 << 63) - 1)
_WOULD_BLOCK: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class _Block:
    """Messages that were sent together.

    ``data`` has the messages, ``answers`` the expected acknowledgements, of which ``at`` is the
    next byte.  Once they are matched by id, ``waiting`` has the unsettled messages by id, ``again``
    the messages to push again.
    """

    __slots__ = ("again", "answers", "at", "data", "offsets", "waiting")

    def __init__(self, data: bytes, answers: bytes, offsets: Any) -> None:
        self.data = data
        self.answers = answers
        self.offsets = offsets
        self.at = 0
        self.waiting: dict[str, list[Frame]] | None = None
        self.again: list[Frame] = []

    def begun(self) -> int:
        """Return the number of the acknowledgement that contains ``at``, which is that of its
        message, too."""
        return int(np.searchsorted(self.offsets, self.at, side="right")) - 1


class Pusher(BrokerLink):
    """A connection that pushes.

    :param options: the broker and the timeouts.
    :param window: the most blocks in flight.

    ``resent`` counts messages that were pushed again; ``window`` is the parameter; ``tended`` is
    set if :meth:`tend` should serve the connection, because messages in flight must not be lost.
    """

    def __init__(self, options: ConnectionOptions, window: int) -> None:
        super().__init__(options)
        self.resent = 0
        self.tended = False
        self.window = window
        self._blocks: deque[_Block] = deque()
        #: Acknowledgements are matched by id until nothing is in flight.
        self._by_id = False
        #: The result codes of messages whose negative acknowledgements have not arrived yet.
        self._codes: dict[str, int] = {}
        self._attempts = 0
        self._refusal: BrokerRefused | None = None

    @property
    def client_id(self) -> str:
        """The id by which the broker knows this connection; empty if there is none."""
        return "" if self._connection is None else self._connection.client_id

    def connect(self) -> None:
        """Open the connection, as often as ``retries`` allows.

        :raises BrokerUnreachable: if that fails.
        :raises BrokerRefused: if the broker refuses this client.
        """
        self.patiently(f"connect to {self.options.url}", self.open)

    def push(self, batch: EncodedBatch, start: int, end: int) -> None:
        """Send the messages from ``start`` to before ``end`` of a batch; wait while the window is
        full.

        :raises BrokerRefused: if the broker refuses one of these messages or an earlier one.
        :raises BrokerUnreachable: after ``retries`` failed attempts.
        """
        offsets = batch.acknowledge_offsets[start : end + 1]
        data = bytes(batch.block(start, end))
        if batch.source != self.client_id and self.is_open:
            # It was made for the client id of the previous connection.
            data = _renamed(_frames(data), self.client_id)
        block = _Block(data, batch.expected(start, end), offsets - offsets[0])
        if block.answers:
            if self._by_id:
                _match_by_id(block)
            self._blocks.append(block)
        self._guarded(block)
        while len(self._blocks) >= self.window:
            self._guarded(None)

    def tend(self) -> None:
        """Process received bytes without waiting, and answer pings, if ``tended`` is set.

        :raises ConnectionBroken: if the connection is lost.
        """
        if not self.tended:
            return
        if self._socket is None:
            raise ConnectionBroken(f"the connection to {self.options.url} is closed")
        self._take_waiting()

    def settle(self, marker: str) -> None:
        """Wait until everything pushed is acknowledged.

        :param marker: a channel whose information is requested if no acknowledgements were; because
            the broker answers in order, every refusal arrives before this answer.  Empty for none.
        :raises BrokerRefused: and :class:`BrokerUnreachable`, as :meth:`push`.
        """
        while self._blocks:
            self._guarded(None)
        if marker:
            self.finish(self.start(OP_CHANNEL_INFORMATION, marker))
            self._check()

    # --- Going on after a loss -------------------------------------------------------------------

    def _guarded(self, block: _Block | None) -> None:
        """Send a block, or wait for acknowledgements; if the connection is lost, reconnect and push
        unsettled messages again."""
        try:
            if block is not None:
                self._send(memoryview(block.data))
            elif any(each.waiting is None or each.waiting for each in self._blocks):
                self._await()
        except ConnectionBroken as error:
            if not self._blocks:
                raise  # without acknowledgements it is unknown what is missing
            self._check()
            self._restart(str(error))
        self._check()
        self._push_again()

    def _restart(self, why: str) -> None:
        """Connect again, and push the unsettled messages again."""
        what = f"pushing to {self.options.url}"
        while True:
            self.pause(self._attempts, what, why)
            self._attempts += 1
            try:
                self.open()
                source = self.client_id
                self._by_id = True
                self._codes.clear()
                for block in self._blocks:
                    _match_by_id(block)
                for block in list(self._blocks):  # acknowledgements arrive meanwhile
                    frames = _unsettled(block)
                    self.resent += len(frames)
                    self._send_frames(frames, source)
            except ConnectionBroken as error:
                why = str(error)
            else:
                return

    def _push_again(self) -> None:
        """Push the messages again for which the broker had no room, once the others of their block
        are settled."""
        if not self._by_id:
            return
        blocks = [block for block in self._blocks if block.again and not block.waiting]
        if not blocks:
            return
        self.pause(self._attempts, f"pushing to {self.options.url}", "the broker is busy (503)")
        self._attempts += 1
        try:
            for block in blocks:
                frames = _unsettled(block)
                self.resent += len(frames)
                self._send_frames(frames, self.client_id)
        except ConnectionBroken as error:
            self._restart(str(error))

    def _check(self) -> None:
        if self._refusal is not None:
            refusal, self._refusal = self._refusal, None
            raise refusal

    # --- Bytes -----------------------------------------------------------------------------------

    def _send(self, data: memoryview) -> None:
        """Send, and process received bytes meanwhile."""
        self.open()
        wait_s = self.options.request_timeout_ms / 1000
        while data:
            sock = self._socket
            if sock is None:
                raise ConnectionBroken(f"the connection to {self.options.url} is closed")
            try:
                sock.setblocking(False)
                data = data[sock.send(data[:_SEND_BYTES]) :]
                blocked = False
            except _WOULD_BLOCK:
                blocked = True
            except OSError as error:
                self.close()
                raise ConnectionBroken(
                    f"the connection to {self.options.url} broke: {error}"
                ) from None
            self._take_waiting()
            if blocked and self._socket is not None:
                readable, writable, _ = select.select([sock], [sock], [], wait_s)
                if not readable and not writable:
                    self.close()
                    raise ConnectionBroken(
                        f"{self.options.url} took nothing for {wait_s:g} s (requestTimeoutMs)"
                    )

    def _take_waiting(self) -> None:
        """Process received bytes, without waiting."""
        while self._socket is not None:
            try:
                self._socket.setblocking(False)
                data = self._socket.recv(_READ_BYTES)
            except _WOULD_BLOCK:
                return
            except OSError as error:
                self.close()
                raise ConnectionBroken(
                    f"the connection to {self.options.url} broke: {error}"
                ) from None
            self._take(data)

    def _await(self) -> None:
        """Wait for more acknowledgements."""
        self.open()
        wait_s = self.options.request_timeout_ms / 1000
        if not self._receive(self._clock() + wait_s):
            # Pushing everything again would not help.
            self.close()
            raise BrokerUnreachable(
                f"{self.options.url} acknowledged nothing for {wait_s:g} s (requestTimeoutMs); does"
                " the queue's delivery handler acknowledge at all? ack=none does not wait"
            )

    def _send_frames(self, frames: list[Frame], source: str) -> None:
        """Send messages under another client id than they were made for."""
        self._send(memoryview(_renamed(frames, source)))

    def _take(self, data: bytes) -> None:
        connection = self._connection
        if data and self._blocks and not self._by_id and connection and connection.wanted == 0:
            data = self._take_expected(data)
            if not data:
                return
        super()._take(data)

    # --- Acknowledgements ------------------------------------------------------------------------

    def _take_expected(self, data: bytes) -> bytes:
        """Compare received bytes with the expected acknowledgements; return the rest for the
        decoder."""
        pos = 0
        while pos < len(data) and self._blocks:
            block = self._blocks[0]
            piece = data[pos : pos + len(block.answers) - block.at]
            if not _same(block, piece):
                break
            block.at += len(piece)
            pos += len(piece)
            if block.at < len(block.answers):
                return b""
            self._blocks.popleft()
            self._attempts = 0
        if pos == len(data):
            return b""
        rest = data[pos:]
        if self._blocks:
            block = self._blocks[0]
            begin = int(block.offsets[block.begun()])
            rest = block.answers[begin : block.at] + rest
            block.at = begin
            self._by_id = True
            for each in self._blocks:
                _match_by_id(each)
        return rest

    def _handle(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, AcknowledgeReceived):
                self._settle_one(event)
            elif isinstance(event, ResponseReceived):
                self._take_code(event)
        super()._handle(events)

    def _take_code(self, event: ResponseReceived) -> None:
        """Handle a Response: the refusal of a message, or the answer to a request."""
        frame = event.frame
        if frame.source or frame.message_id in self._asked.pendings:
            return
        if self._blocks:
            self._codes[frame.message_id] = event.code
        elif event.code:
            self._refuse(frame, event.code, "")

    def _settle_one(self, event: AcknowledgeReceived) -> None:
        """Settle the message that an acknowledgement is about."""
        message_id = event.frame.message_id
        for block in self._blocks:
            if block.waiting is None or message_id not in block.waiting:
                continue
            if not may_answer_push(event.frame, block.waiting[message_id][-1].target):
                return
            frame = block.waiting[message_id].pop()
            if not block.waiting[message_id]:
                del block.waiting[message_id]
            code = self._codes.pop(message_id, 0)
            if event.positive:
                self._attempts = 0
            elif code == RESULT_BUSY:
                block.again.append(frame)
            else:
                self._refuse(frame, code, event.reason or "")
            if not block.waiting and not block.again:
                self._blocks.remove(block)
                self._by_id = bool(self._blocks)
            return

    def _refuse(self, frame: Frame, code: int, reason: str) -> None:
        if self._refusal is None:
            words = code_words(code) if code else f"negative acknowledgement ({reason})"
            place = frame.target
            if frame.type == TYPE_QUEUE_MESSAGE:  # in a response it is the code
                place = f"{place}/{frame.content_type}"
            self._refusal = BrokerRefused(
                f"{self.options.url}: push into {place}: {words}"
                f" (message {frame.message_id}){_ADVICE.get(code, '')}",
                code,
            )


_ADVICE: Final = {
    401: "; the token lacks the right to push there, or the queue is stopped",
    404: "; create the queue, or set the option createQueue=true",
    482: "; the queue is full or the message too large for it: see its message_limit and"
    " message_size_limit, or let its consumers catch up",
}


def _same(block: _Block, piece: bytes) -> bool:
    """Whether these bytes are the next expected ones, except for the marks of consumers (F78)."""
    awaited = block.answers[block.at : block.at + len(piece)]
    if piece == awaited:
        return True
    got = np.frombuffer(piece, np.uint8) ^ np.frombuffer(awaited, np.uint8)
    places = np.flatnonzero(got)
    if (got[places] != FIRST_ACQUIRER).any():
        return False
    places = places + block.at
    found = np.searchsorted(block.offsets, places)
    return bool((block.offsets[found] == places).all())


def _match_by_id(block: _Block) -> None:
    """Match the rest of a block by id from now on."""
    if block.waiting is not None:
        return
    first = block.begun() if block.at else 0
    block.waiting = _index(_frames(block.data)[first:])


def _unsettled(block: _Block) -> list[Frame]:
    """Return the messages of a block to push again, and mark all of them as in flight."""
    assert block.waiting is not None, "it is matched by id"
    frames = [frame for frames in block.waiting.values() for frame in frames]
    frames += block.again
    block.again = []
    block.waiting = _index(frames)
    return frames


def _frames(data: bytes) -> list[Frame]:
    decoder = FrameDecoder(_ANY_SIZE)
    return decoder.feed(data)


def _renamed(frames: list[Frame], source: str) -> bytes:
    """Return the bytes of the messages with another source."""
    return b"".join([frame.replace(source=source).raw for frame in frames])


def _index(frames: list[Frame]) -> dict[str, list[Frame]]:
    found: dict[str, list[Frame]] = {}
    for frame in frames:
        found.setdefault(frame.message_id, []).append(frame)
    return found
