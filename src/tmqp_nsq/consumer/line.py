"""One connection of a consumer to an nsqd: sockets, TLS and tasks around the codec."""

from __future__ import annotations

import logging
import math
import ssl
import zlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
from anyio.abc import ByteStream
from anyio.streams.tls import TLSStream

import tmqp
from tmqp_nsq import NSQ_VERSION
from tmqp_nsq.addresses import Address
from tmqp_nsq.consumer.options import ConsumerOptions
from tmqp_nsq.flags import FlagError
from tmqp_nsq.starting import hostname
from tmqp_wires.nsq.client import ClientConnection
from tmqp_wires.nsq.events import ErrorReceived, Event, MessageReceived, ResponseReceived, Violation
from tmqp_wires.nsq.layers import DeflateLayer, Layer, SnappyLayer
from tmqp_wires.nsq.writing import CLS, fin, rdy, req, sub, touch

__all__ = ["Line", "LineError", "make_layers"]

logger = logging.getLogger("tmqp_nsq")

_GONE: Final = (OSError, ssl.SSLError, anyio.BrokenResourceError, anyio.EndOfStream)
_MILLISECOND: Final = 1_000_000


class LineError(Exception):
    """Why a connection has ended."""


def make_layers(options: ConsumerOptions) -> tuple[Layer | None, Layer | None]:
    """The layers that a consumer asks for: snappy and deflate.

    :raises FlagError: if a package is missing.
    """
    snappy: Layer | None = None
    deflate: Layer | None = None
    if options.snappy:
        try:
            import cramjam  # noqa: PLC0415 - only those who ask for snappy need it
            import crc32c  # noqa: PLC0415
        except ImportError as error:
            raise FlagError(
                "snappy needs the packages of the extra: pip install 'tmqp[nsq]'"
            ) from error
        snappy = SnappyLayer(
            lambda data: bytes(cramjam.snappy.compress_raw(data)),
            lambda data: bytes(cramjam.snappy.decompress_raw(data)),
            crc32c.crc32c,
        )
    if options.deflate:
        deflate = DeflateLayer(
            zlib.compressobj(options.deflate_level, zlib.DEFLATED, -zlib.MAX_WBITS),
            zlib.decompressobj(-zlib.MAX_WBITS),
            zlib.Z_SYNC_FLUSH,
            zlib.error,
        )
    return snappy, deflate


class Line:
    """A connection that has subscribed; the server sends as many messages as its RDY count says."""

    def __init__(
        self, number: int, address: Address, program: str, options: ConsumerOptions
    ) -> None:
        self.number = number
        self.address = address
        #: Messages that are not answered.
        self.in_flight = 0
        #: The RDY count that the server knows.
        self.ready_count = 0
        self.is_closing = False
        self._options = options
        snappy, deflate = make_layers(options)
        self._connection = ClientConnection(
            self._identity(program), snappy, deflate, options.auth_secret.encode()
        )
        self._subscribed = False
        self._wake = anyio.Event()
        self._sent = anyio.Event()

    def _identity(self, program: str) -> dict[str, object]:
        options, own = self._options, hostname()
        fields: dict[str, Any] = {
            "client_id": options.client_id or own.partition(".")[0],
            "hostname": options.hostname or own,
            "user_agent": options.user_agent or f"{program}/{NSQ_VERSION} tmqp/{tmqp.__version__}",
            "heartbeat_interval": options.heartbeat_interval_ns // _MILLISECOND,
            "output_buffer_size": options.output_buffer_size,
            "output_buffer_timeout": options.output_buffer_timeout_ns // _MILLISECOND,
            "sample_rate": options.sample_rate,
            "msg_timeout": options.msg_timeout_ns // _MILLISECOND,
            "tls_v1": options.tls_v1,
        }
        if options.deflate:
            fields["deflate_level"] = options.deflate_level
        return fields

    @property
    def max_ready_count(self) -> int:
        """The largest RDY that the server takes."""
        value = self._connection.features.get("max_rdy_count")
        return value if isinstance(value, int) and value > 0 else 2_500

    @property
    def is_starved(self) -> bool:
        """Whether most of what may be in flight is: answering would bring more (N159)."""
        return (
            not self.is_closing
            and self.in_flight > 0
            and (self.in_flight >= int(self.ready_count * 0.85))
        )

    # --- What the consumer says -------------------------------------------------------------

    def finish(self, message_id: bytes) -> None:
        """Say that a message is done."""
        self.in_flight -= 1
        self._say(fin(message_id))

    def requeue(self, message_id: bytes, delay_ms: int) -> None:
        """Give a message back."""
        self.in_flight -= 1
        self._say(req(message_id, delay_ms))

    def touch(self, message_id: bytes) -> None:
        """Ask for more time for a message."""
        self._say(touch(message_id))

    def set_ready(self, count: int) -> None:
        """Set the RDY count, if the server has another."""
        if count != self.ready_count and not self.is_closing:
            self.ready_count = count
            self._say(rdy(count))

    def close(self) -> None:
        """Ask the server to send no more; what is in flight can still be answered."""
        if not self.is_closing:
            self.is_closing = True
            self.ready_count = 0
            if self._subscribed:
                self._say(CLS)

    def _say(self, command: bytes) -> None:
        self._connection.send(command)
        if self._sent.is_set():
            self._sent = anyio.Event()
        self._wake.set()

    async def flush(self) -> None:
        """Wait until all that was said has been handed to the kernel."""
        await self._sent.wait()

    # --- Bytes ------------------------------------------------------------------------------

    async def run(
        self,
        topic: str,
        channel: str,
        opened: Callable[[Line], None],
        deliver: Callable[[Line, MessageReceived], Awaitable[None]],
    ) -> None:
        """Connect, subscribe and receive until the connection ends.

        :raises LineError: always; it says why the connection ended.
        """
        stream: ByteStream
        try:
            with anyio.fail_after(self._options.dial_timeout_ns / 1e9):
                stream = await anyio.connect_tcp(self.address.host, self.address.port)
        except TimeoutError:
            raise LineError("cannot connect: no answer in time") from None
        except OSError as error:
            raise LineError(f"cannot connect: {error.strerror or error}") from error
        self._connection.send(sub(topic.encode(), channel.encode()))
        async with stream:
            stream = await self._identify(stream, opened)
            async with anyio.create_task_group() as group:
                group.start_soon(self._write, stream)
                try:
                    await self._receive(stream, opened, deliver)
                finally:
                    self._sent.set()  # nothing more can be
                    group.cancel_scope.cancel()

    async def _identify(self, stream: ByteStream, opened: Callable[[Line], None]) -> ByteStream:
        """Send IDENTIFY, and change to TLS if the server wants it."""
        try:
            with anyio.fail_after(self._options.read_timeout_ns / 1e9):
                while not self._connection.ready:
                    await stream.send(self._connection.data_to_send())
                    self._heed(self._connection.receive(await stream.receive()), opened)
                    if self._connection.wants_tls:
                        stream = await TLSStream.wrap(
                            stream,
                            hostname=self.address.host,
                            ssl_context=self._options.tls_context(),
                        )
                        self._connection.secured()
        except TimeoutError:
            raise LineError("no answer to IDENTIFY in time") from None
        except _GONE as error:
            raise LineError(f"connection ended while identifying: {_words(error)}") from error
        return stream

    async def _write(self, stream: ByteStream) -> None:
        """Send what is queued, until cancelled."""
        try:
            while True:
                self._wake = anyio.Event()
                data = self._connection.data_to_send()
                if data:
                    await stream.send(data)
                else:
                    self._sent.set()
                    await self._wake.wait()
        except _GONE:
            return  # the reader notices, too

    async def _receive(
        self,
        stream: ByteStream,
        opened: Callable[[Line], None],
        deliver: Callable[[Line, MessageReceived], Awaitable[None]],
    ) -> None:
        while True:
            try:
                # The server sends heartbeats, so silence means that it is gone.
                with anyio.fail_after(self._options.read_timeout_ns / 1e9 or math.inf):
                    data = await stream.receive()
            except TimeoutError:
                raise LineError("the server was silent for too long") from None
            except _GONE as error:
                raise LineError(f"connection ended: {_words(error)}") from error
            for message in self._heed(self._connection.receive(data), opened):
                self.in_flight += 1
                await deliver(self, message)
            self._wake.set()  # a heartbeat may have been answered

    def _heed(self, events: list[Event], opened: Callable[[Line], None]) -> list[MessageReceived]:
        """Take everything but messages, which are returned.

        :raises LineError: if the server has ended the connection with an error.
        """
        found: list[MessageReceived] = []
        for event in events:
            if isinstance(event, MessageReceived):
                found.append(event)
            elif isinstance(event, Violation):
                raise LineError(f"protocol error: {event.text.decode('utf-8', 'replace')}")
            elif isinstance(event, ErrorReceived):
                text = (b"%s %s" % (event.code, event.text)).decode("utf-8", "replace")
                if event.is_fatal:
                    raise LineError(f"server error: {text}")
                logger.warning("%s: %s", self.address, text)
            elif isinstance(event, ResponseReceived) and not self._subscribed:
                self._subscribed = True  # the OK of SUB, the only command so far
                opened(self)
                if self.is_closing:
                    self._say(CLS)
        return found


def _words(error: BaseException) -> str:
    return str(error) or "closed by the server"
