"""One blocking connection to the broker: requests, many at a time, and their answers.

Theory of operation.  Executors and Spark's planning processes run plain, blocking Python, so this
is the protocol's sans-I/O connection on a plain socket, without threads.  A request is written and
remembered by its message id; answers are taken in whatever order they come, so any number of
requests can be in flight (*pipelined*).  A read requests all missing bytes of the incomplete
message from the kernel.  A large answer to a request that announced it (``large``) is copied only
once, from the kernel, and not decoded (:mod:`tmqp_spark.large`).

Nothing answers the broker's pings while the program is busy elsewhere.  So an idle connection may
be lost: :meth:`BrokerLink.ask` opens another and repeats the request (every operation used here can
be repeated), and readers continue from where they are.
"""

from __future__ import annotations

import itertools
import os
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final, Self, TypeVar

from tmqp import (
    AcknowledgeReceived,
    Connection,
    ConnectionInformation,
    Event,
    Frame,
    HandshakeAccepted,
    HandshakeRefused,
    Limits,
    MessageType,
    ResponseReceived,
    ResultCode,
    Role,
)
from tmqp.address import Address, parse_addresses
from tmqp.backoff import Backoff
from tmqp_client._core.answers import Answers
from tmqp_client._core.ids import IdSource
from tmqp_client._core.outcomes import Counters
from tmqp_client._core.pending import NO_QUEUE, Kind, Pending
from tmqp_client.errors import code_words
from tmqp_client.reconnect import leader_of
from tmqp_spark.dialling import dial
from tmqp_spark.errors import (
    BrokerRefused,
    BrokerUnreachable,
    ConnectionBroken,
    StandsBy,
)
from tmqp_spark.large import LargeAnswer, begin
from tmqp_spark.options import ConnectionOptions

__all__ = ["BrokerLink", "backoff", "first_contact", "read_token", "refusal"]

_T = TypeVar("_T")
_SMALL_READ: Final = 65_536
_LARGEST_READ: Final = 8 << 20
_LONGEST_PAUSE_S: Final = 5.0
#: Answers have the size that was requested, so only the limits of the wire apply.
_LIMITS: Final = Limits(max_payload_bytes=1 << 31)
#: In a group of servers that replace each other, a silent one has probably failed.
_GROUP_LIMITS: Final = replace(_LIMITS, ping_interval_s=2.0)
_NUMBERS: Final = itertools.count(1)


class BrokerLink:
    """A connection to the broker, opened when needed, and again after a loss.

    :param options: the broker and the timeouts.
    :param clock: returns seconds of a monotonic clock.
    :param sleep: waits for this number of seconds.

    It is not thread-safe.  ``requests`` counts requests, ``connections`` how often it was opened.
    """

    def __init__(
        self,
        options: ConnectionOptions,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.options = options
        self.requests = 0
        self.connections = 0
        #: The process that made the connection: a fork of it cannot use it.
        self.owner = os.getpid()
        self._clock = clock
        self._sleep = sleep
        self._addresses = parse_addresses(options.url)
        #: The last good address, which a server may have named.
        self._good = self._addresses[0]
        self._socket: socket.socket | None = None
        self._connection: Connection | None = None
        self._accepted = False
        #: When the first attempt of the current series failed.
        self._failing_since = 0.0
        self._low_water = 1
        self._asked = Answers(Counters())
        #: Answers that were not taken yet.
        self._answers: dict[str, Frame] = {}
        #: Requests whose answers may be large, the payloads that have arrived, and the current one.
        self._may_be_large: set[str] = set()
        self._payloads: dict[str, tuple[memoryview, int]] = {}
        self._large: LargeAnswer | None = None
        self._new_id = IdSource(secrets.token_hex)

    def __repr__(self) -> str:
        return f"<BrokerLink {self.options.url} {'open' if self.is_open else 'closed'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        """Whether there is a connection, as far as known."""
        return self._socket is not None

    # --- Asking ----------------------------------------------------------------------------------

    def start(
        self,
        operation: int,
        target: str,
        headers: Iterable[tuple[str, str]] = (),
        payload: bytes = b"",
        *,
        large: bool = False,
    ) -> str:
        """Send a Server operation; return its id, for :meth:`finish`.

        :param large: the answer may be large, and is taken with :meth:`finish_large`.

        :raises ConnectionBroken: if the connection is lost or cannot be opened; the request is not
            repeated.
        :raises BrokerUnreachable: if the file with the token cannot be read.
        """
        frame = Frame.build(
            int(MessageType.SERVER),
            target,
            operation,
            payload,
            message_id=self.next_id(),
            headers=tuple(headers),
            pending_response=True,
        )
        if large:
            self._may_be_large.add(frame.message_id)
        self.send([frame.raw], [frame.message_id])
        return frame.message_id

    def next_id(self) -> str:
        """Return an id for a message on this connection."""
        return self._new_id()

    def send(self, pieces: list[bytes], expected: Iterable[str] = ()) -> None:
        """Send whole encoded frames in one write.

        :param expected: the ids whose answers or acknowledgements :meth:`finish` will take.
        :raises ConnectionBroken: and :class:`BrokerUnreachable`, as :meth:`start`.
        """
        self.open()
        now, wait_s = self._clock(), self.options.request_timeout_ms / 1000
        for message_id in expected:
            self.requests += 1
            asked = Pending(Kind.OPERATION, message_id, "", "", NO_QUEUE, now, wait_s)
            self._asked.pendings.add(asked)
        self._write(pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def finish(self, message_id: str, extra_ms: int = 0) -> Frame:
        """Wait for the answer to a request, whatever its code; keep other answers.

        :param extra_ms: how much longer than usual the broker may take, as requested.
        :raises ConnectionBroken: if the connection is lost or too slow.
        """
        wait_s = (self.options.request_timeout_ms + extra_ms) / 1000
        deadline = self._clock() + wait_s
        while message_id not in self._answers:
            if not self._receive(deadline):
                self.close()
                raise ConnectionBroken(
                    f"{self.options.url} did not answer within {wait_s:g} s (requestTimeoutMs)"
                )
        return self._answers.pop(message_id)

    def finish_large(self, message_id: str) -> tuple[Frame, bytes | memoryview, int]:
        """Wait as :meth:`finish`; return the answer, the bytes with its payload, and the payload's
        offset.

        The answer itself has no payload if that was large.

        :raises ConnectionBroken: as :meth:`finish`.
        """
        answer = self.finish(message_id)
        self._may_be_large.discard(message_id)
        found = self._payloads.pop(message_id, None)
        if found is not None:
            return answer, found[0], found[1]
        return answer, answer.raw, len(answer.raw) - answer.payload_size

    def answered(self, message_id: str) -> bool:
        """Whether the answer has arrived, so that :meth:`finish` returns at once."""
        return message_id in self._answers

    def forget(self, message_id: str) -> None:
        """Drop an answer that is no longer needed, or will not be."""
        pending = self._asked.pendings.get(message_id)
        if pending is not None:
            self._asked.pendings.remove(pending)
        self._answers.pop(message_id, None)
        self._may_be_large.discard(message_id)
        self._payloads.pop(message_id, None)

    def ask(
        self,
        operation: int,
        what: str,
        target: str,
        headers: Iterable[tuple[str, str]] = (),
        payload: bytes = b"",
        extra_ms: int = 0,
    ) -> Frame:
        """Send a request and return its answer; repeat it if the connection is lost or the broker
        is busy.

        :param what: the request in words, for errors: ``offsets of orders``.
        :raises BrokerRefused: for any code but 0.
        :raises BrokerUnreachable: after ``retries`` failed attempts.
        """
        pairs = tuple(headers)

        def once() -> Frame:
            answer = self.finish(self.start(operation, target, pairs, payload), extra_ms)
            if answer.content_type != 0:
                raise refusal(self.options.url, what, answer)
            return answer

        return self.patiently(what, once)

    def patiently(self, what: str, once: Callable[[], _T]) -> _T:
        """Call ``once`` until it succeeds, as often as ``retries`` or ``outageTimeout`` allow.

        :raises BrokerUnreachable: when they do not allow another attempt.
        """
        attempt = 0
        while True:
            try:
                return once()
            except ConnectionBroken as error:
                self.pause(attempt, what, str(error))
            except BrokerRefused as error:
                if error.code != int(ResultCode.BUSY):
                    raise
                self.pause(attempt, what, str(error))
            attempt += 1

    def rest(self, wait_ms: int) -> None:
        """Wait this number of milliseconds."""
        self._sleep(wait_ms / 1000)

    def pause(self, attempt: int, what: str, why: str) -> None:
        """Wait before the next attempt, a little longer each time.

        :param attempt: how many attempts have failed before.
        :raises BrokerUnreachable: after ``outageTimeout``, or, without it, ``retries`` attempts.
        """
        options = self.options
        longest_s = float("inf")
        if options.outage_timeout_ms is not None:
            now = self._clock()
            if attempt == 0:
                self._failing_since = now
            longest_s = self._failing_since + options.outage_timeout_ms / 1000 - now
            if longest_s <= 0:
                raise BrokerUnreachable(
                    f"{what}: {why}; given up after {now - self._failing_since:.0f} s"
                    " (option outageTimeout)"
                )
        elif attempt >= options.retries:
            raise BrokerUnreachable(
                f"{what}: {why}; given up after {attempt} more attempts"
                " (options retries, retryBackoffMs)"
            )
        self._sleep(min(longest_s, backoff(options).delay_s(attempt + 1)))

    # --- The connection --------------------------------------------------------------------------

    def open(self) -> None:
        """Connect and log in, if there is no connection.

        :raises ConnectionBroken: if that fails, but may succeed later.
        :raises BrokerRefused: if the broker refuses this client.
        """
        if self._socket is not None:
            return
        ahead = list(dict.fromkeys([self._good, *self._addresses]))
        tried: list[Address] = []
        failure: ConnectionBroken | None = None
        while ahead:
            address = ahead.pop(0)
            tried.append(address)
            try:
                self._open_at(address)
            except StandsBy as error:
                failure = error
                leader = leader_of(error.leader, address)
                if leader is not None and leader not in tried:
                    ahead.insert(0, leader)
            except ConnectionBroken as error:
                failure = error
            else:
                self._good = address
                return
        assert failure is not None, "there is one address at least"
        raise failure

    def _open_at(self, address: Address) -> None:
        options = self.options
        now = self._clock()
        wait_s = options.connect_timeout_ms / 1000 / len(self._addresses)
        deadline = now + wait_s
        try:
            self._socket = dial(options, address, wait_s)
        except OSError as error:
            raise ConnectionBroken(f"cannot connect to {address}: {error}") from None
        self._low_water = 1
        limits = _GROUP_LIMITS if len(self._addresses) > 1 else _LIMITS
        self._connection = Connection(Role.CLIENT, limits, now=now)
        self._answers.clear()
        self._asked.pendings.clear()
        self.connections += 1
        client_id = ""
        if options.client_id:
            client_id = f"{options.client_id}-{socket.gethostname()}-{os.getpid()}-{next(_NUMBERS)}"
        information = ConnectionInformation(
            client_id, options.client_name, options.client_type, read_token(options)
        )
        self._connection.initiate(information, self.next_id())
        self._flush()
        while not self._accepted:
            if not self._receive(deadline):
                self.close()
                raise ConnectionBroken(f"{options.url} did not accept in time (connectTimeoutMs)")

    def close(self) -> None:
        """Close at once; the next request opens it again."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._connection = None
        self._accepted = False
        self._answers.clear()
        self._asked.pendings.clear()
        self._may_be_large.clear()
        self._payloads.clear()
        self._large = None

    def is_quiet(self) -> bool:
        """Whether it is open, no unexpected bytes have arrived, and no answer is awaited."""
        if self._socket is None or self._asked.pendings or self._answers or self._large:
            return False
        try:
            self._socket.settimeout(0)
            self._take(self._socket.recv(_SMALL_READ))
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except (OSError, ConnectionBroken):
            self.close()
        return self.is_open

    def _receive(self, deadline: float) -> bool:
        """Receive and process bytes; return False if none arrive before the deadline."""
        sock, connection = self._socket, self._connection
        if sock is None or connection is None:
            raise ConnectionBroken(f"the connection to {self.options.url} is closed")
        while True:
            now = self._clock()
            if now >= deadline:
                return False
            due = connection.next_deadline()
            until = deadline if due is None else min(deadline, due)
            large = self._large
            missing = connection.wanted if large is None else large.missing
            data, count = b"", 0
            try:
                wanted = min(_LARGEST_READ, max(_SMALL_READ, missing))
                self._wake_at(sock, min(missing, _LARGEST_READ) if missing > _SMALL_READ else 1)
                sock.settimeout(max(0.001, until - now))
                if large is None:
                    data = sock.recv(wanted)
                else:
                    count = large.receive(sock)
            except TimeoutError:
                self._handle(connection.on_deadline(self._clock()))
                self._flush()
                continue
            except OSError as error:
                self.close()
                raise ConnectionBroken(
                    f"the connection to {self.options.url} broke: {error}"
                ) from None
            if large is None:
                self._take(data)
            else:
                self._take_large(large, count)
            return True

    def _wake_at(self, sock: socket.socket, count: int) -> None:
        """Let the kernel wake this process only when this number of bytes has arrived, not for each
        packet."""
        if count != self._low_water and not isinstance(sock, ssl.SSLSocket):
            self._low_water = count
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)

    def _take(self, data: bytes) -> None:
        connection = self._connection
        assert connection is not None, "it is read from"
        if not data:
            self.close()
            raise ConnectionBroken(f"{self.options.url} closed the connection")
        if self._may_be_large and connection.wanted == 0:
            large = begin(data)
            if large is not None and large.message_id in self._may_be_large:
                self._large = large
                return
        events = connection.receive(data, self._clock())
        self._handle(events)
        self._flush()

    def _take_large(self, large: LargeAnswer, count: int) -> None:
        """Handle further received bytes of a large answer."""
        if not count:
            self.close()
            raise ConnectionBroken(f"{self.options.url} closed the connection")
        if large.missing:
            return
        self._large = None
        if large.message_id in self._asked.pendings:
            self._payloads[large.message_id] = (large.data, large.start)
        self._take(large.short)

    def _handle(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, ResponseReceived):
                self._keep(self._asked.take_response(event, self._clock()))
            elif isinstance(event, AcknowledgeReceived):
                self._keep(self._asked.take_acknowledge(event, self._clock()))
            elif isinstance(event, HandshakeAccepted):
                self._accepted = True
            elif isinstance(event, HandshakeRefused):
                self.close()
                if event.code == ResultCode.MISDIRECTED_REQUEST:
                    raise StandsBy(self.options.url, event.address)
                raise BrokerRefused(
                    f"{self.options.url} refused the connection: {code_words(event.code)};"
                    " see the options token, tokenFile and clientName",
                    event.code,
                )
        connection = self._connection
        if connection is not None and connection.state.name == "CLOSED":
            error = connection.error
            self.close()
            raise ConnectionBroken(
                f"the connection to {self.options.url} ended{'' if error is None else f': {error}'}"
            )

    def _keep(self, settled: Pending | None) -> None:
        """Keep an answer until it is taken."""
        if settled is not None and settled.answer is not None:
            self._answers[settled.message_id] = settled.answer

    def _flush(self) -> None:
        if self._connection is not None:
            data = self._connection.data_to_send()
            if data:
                self._write(data)

    def _write(self, data: bytes) -> None:
        sock = self._socket
        if sock is None:
            raise ConnectionBroken(f"the connection to {self.options.url} is closed")
        try:
            sock.settimeout(self.options.request_timeout_ms / 1000)
            sock.sendall(data)
        except OSError as error:
            self.close()
            raise ConnectionBroken(f"the connection to {self.options.url} broke: {error}") from None


def first_contact(options: ConnectionOptions) -> BrokerLink:
    """Make the first link of a streaming query, connected.

    The first connection is tried ``retries`` times only, so that a wrong address is reported soon;
    ``outageTimeout`` counts from then on.

    :raises BrokerUnreachable: if the connection fails.
    :raises BrokerRefused: if the broker refuses this client.
    """
    link = BrokerLink(replace(options, outage_timeout_ms=None))
    link.patiently(f"connect to {options.url}", link.open)
    link.options = options
    return link


def backoff(options: ConnectionOptions) -> Backoff:
    """The waits between attempts to reach the broker (option retryBackoffMs)."""
    return Backoff(options.retry_backoff_ms / 1000, _LONGEST_PAUSE_S, 0.0)


def refusal(url: str, what: str, answer: Frame) -> BrokerRefused:
    """Make the error for an answer with a result code."""
    code = answer.content_type
    advice = ""
    if code == int(ResultCode.UNAUTHORIZED):
        advice = "; the token lacks the right to read kept messages (pull) or to see the channel"
    elif code == int(ResultCode.NOT_IMPLEMENTED):
        advice = "; start the broker with a data directory (tmqp-server --data DIR)"
    return BrokerRefused(f"{url}: {what}: {code_words(code)}{advice}", code, answer.payload)


def read_token(options: ConnectionOptions) -> str:
    """Return the token, from the options or from the file that they name.

    :raises BrokerUnreachable: if the file cannot be read.
    """
    if not options.token_file:
        return options.token
    try:
        return Path(options.token_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BrokerUnreachable(
            f"option tokenFile: {options.token_file} cannot be read on"
            f" {socket.gethostname()}: {error}"
        ) from None
