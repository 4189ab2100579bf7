"""What nsq_to_file and nsq_to_http have in common: where to consume from, and how."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from anyio.streams.memory import MemoryObjectReceiveStream

from tmqp_nsq.addresses import Address, parse_address
from tmqp_nsq.consumer.consumer import Consumer, Delivery
from tmqp_nsq.consumer.discovery import Discovery
from tmqp_nsq.consumer.line import make_layers
from tmqp_nsq.consumer.options import ConsumerOptions, read_options
from tmqp_nsq.flags import FlagError, FlagValues
from tmqp_nsq.nodes.upstream import ClientSettings, Upstream
from tmqp_wires.nsq.names import is_name

__all__ = ["Sources", "check_name", "consuming", "sources"]


class Sources:
    """The nsqds and lookupds of a command line."""

    def __init__(self, values: FlagValues, discovery: Discovery, nsqds: list[Address]) -> None:
        """Read the consumer's options.

        :raises FlagError: if one is wrong.
        """
        self._program = values.table.program
        self._channel = values.text("channel")
        self._nsqds = nsqds
        self.discovery = discovery
        start = ConsumerOptions(
            max_in_flight=values.number("max-in-flight"),
            user_agent="",
        )
        if not 1 <= start.max_in_flight <= 1_000_000:
            raise FlagError(f"--max-in-flight must be from 1 to 1000000, not {start.max_in_flight}")
        self.options = read_options(values.texts("consumer-opt"), start)
        make_layers(self.options)
        if self.options.tls_v1:
            self.options.tls_context()

    def consumer(self, topic: str) -> Consumer:
        """A consumer of a topic."""
        return Consumer(
            topic, self._channel, self._program, self.options, self._nsqds, self.discovery
        )


def check_name(flag: str, name: str) -> None:
    """Check the name of a topic or a channel (N17).

    :raises FlagError: if it is not one.
    """
    if not is_name(name.encode("utf-8", "surrogateescape")):
        raise FlagError(
            f"--{flag}: {name!r} is not a name: 1 to 64 of the characters . a-z A-Z 0-9 _ -,"
            " perhaps with #ephemeral at the end"
        )


@asynccontextmanager
async def sources(values: FlagValues) -> AsyncIterator[Sources]:
    """Read the flags that say where to consume from.

    :raises FlagError: if they do not fit together.
    """
    nsqds = [parse_address(each, "nsqd-tcp-address") for each in values.texts("nsqd-tcp-address")]
    lookupds = [
        str(parse_address(each, "lookupd-http-address"))
        for each in values.texts("lookupd-http-address")
    ]
    check_name("channel", values.text("channel"))
    if not nsqds and not lookupds:
        raise FlagError("--nsqd-tcp-address or --lookupd-http-address required")
    if nsqds and lookupds:
        raise FlagError("use --nsqd-tcp-address or --lookupd-http-address not both")
    settings = ClientSettings(
        values.seconds("http-client-connect-timeout"),
        values.seconds("http-client-request-timeout"),
        tls=True,
    )
    if settings.connect_s <= 0 or settings.request_s <= 0:
        raise FlagError("--http-client-connect-timeout and -request-timeout must be positive")
    async with Upstream.client(settings, values.table.program) as client:
        yield Sources(values, Discovery(Upstream(client), lookupds), nsqds)


@asynccontextmanager
async def consuming(
    topic: str,
    channel: str,
    *,
    lookupds: Sequence[str] = (),
    nsqds: Sequence[str] = (),
    options: ConsumerOptions | None = None,
) -> AsyncIterator[tuple[Consumer, MemoryObjectReceiveStream[Delivery]]]:
    """Consume a channel in a program of your own: gives the consumer and its messages.

    :param lookupds: HTTP addresses of nsqlookupds that name the nsqds.
    :param nsqds: TCP addresses of nsqds, where there is no nsqlookupd.
    :raises FlagError: if an address or a name is not one.
    """
    check_name("topic", topic)
    check_name("channel", channel)
    addresses = [parse_address(each, "nsqds") for each in nsqds]
    named = [str(parse_address(each, "lookupds")) for each in lookupds]
    async with Upstream.client(ClientSettings(2.0, 5.0, tls=True), "tmqp") as client:
        discovery = Discovery(Upstream(client), named)
        consumer = Consumer(
            topic, channel, "tmqp", options or ConsumerOptions(), addresses, discovery
        )
        async with consumer.running() as messages:
            yield consumer, messages
