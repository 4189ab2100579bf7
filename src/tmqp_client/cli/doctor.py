"""``tmqp doctor``: whether a client can work with the server, and what is about to go wrong."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable
from typing import Any, Final

import anyio
import click

from tmqp import ResultCode, TmqpError, __version__
from tmqp.models import ServerInformation
from tmqp_client import Client, ClientError, OperationError, OperationFailed
from tmqp_client.cli._asking import Where, asking
from tmqp_client.cli._examining import examine, examine_memory
from tmqp_client.cli._findings import BAD, GOOD, NOTE, WARNING, Report
from tmqp_client.cli._reaching import reach
from tmqp_client.cli._run import EXIT_CONNECTION, json_option, run_alone
from tmqp_client.errors import code_words

__all__ = ["doctor"]

#: A slower ping is reported.
_SLOW_MS: Final = 250.0
#: The server dates messages, so a larger difference between the clocks distorts times.
_MOST_CLOCK_MS: Final = 1_000
#: Another server may not answer the request.
_SERVER_WAIT_S: Final = 5.0
#: The message that is sent through a queue.
_TEXT: Final = "tmqp doctor"
#: From this share on, a limit is nearly reached.
_NEAR: Final = 0.9


async def _right(report: Report, what: str, asked: Awaitable[Any]) -> Any:
    """Report whether the client may make this request; return the answer, or None."""
    try:
        answer = await asked
    except OperationFailed as error:
        denied = error.code == ResultCode.UNAUTHORIZED
        words = "not allowed" if denied else code_words(error.code)
        report.say("rights", NOTE if denied else BAD, f"{what}: {words}")
        return None
    report.say("rights", GOOD, what)
    return answer


async def _server(report: Report, client: Client) -> ServerInformation | None:
    """Report the server's version and clock; return its information about itself, or None."""
    ours = f"client tmqp {__version__} on Python {sys.version.split()[0]}"
    before_ms = time.time() * 1_000
    try:
        server = await client.server_information(timeout_s=_SERVER_WAIT_S)
    except OperationError as error:
        denied = isinstance(error, OperationFailed) and error.code == ResultCode.UNAUTHORIZED
        words = "not allowed to ask the server" if denied else "the server does not report its own"
        report.say("version", NOTE, f"{ours}; {words}")
        report.say("clock", NOTE, words.replace("its own", "its clock"))
        return None
    after_ms = time.time() * 1_000
    same = server.version.split(".")[:2] == __version__.split(".")[:2]
    report.say("version", GOOD if same else NOTE, f"server tmqp {server.version}, {ours}")
    # Somewhere between the question and the answer; what is left of the difference is certain.
    ahead_ms = server.time_ms - min(max(server.time_ms, before_ms - 1), after_ms)
    if abs(ahead_ms) > _MOST_CLOCK_MS:
        way = "ahead of" if ahead_ms > 0 else "behind"
        words = f"the server's is {abs(ahead_ms) / 1_000:,.1f} s {way} this machine's"
        report.say("clock", WARNING, words, "set both by NTP")
    else:
        report.say("clock", GOOD, "the server's agrees with this machine's to a second")
    return server


async def _storage(report: Report, client: Client) -> None:
    try:
        # A name that no channel has: nothing is examined.
        await client.offsets("@")
    except OperationFailed as error:
        if error.code == ResultCode.NOT_IMPLEMENTED:
            words = "none: messages are lost when the server ends"
            report.say("storage", NOTE, words, "start it with --data DIR")
        else:
            level = BAD if error.code == ResultCode.BUSY else NOTE
            report.say("storage", level, code_words(error.code))
    else:
        report.say("storage", GOOD, "queues can be durable")


def _near(report: Report, what: str, count: int, limit: int) -> bool:
    if limit <= 0 or count < _NEAR * limit:
        return False
    level = BAD if count >= limit else WARNING
    report.say("limits", level, f"{what}: {count:,} of {limit:,}", "use less, or raise the limit")
    return True


async def _pass_on(report: Report, client: Client) -> None:
    """Send a message through a temporary queue, which is removed afterwards."""
    before_s = time.monotonic()
    try:
        with anyio.fail_after(_SERVER_WAIT_S):
            async with client.temporary_queue("doctor") as queue:
                await client.push(queue.channel, 0, _TEXT)
                good = (await queue.get()).text == _TEXT
    except OperationFailed as error:
        denied = error.code == ResultCode.UNAUTHORIZED
        words = "not allowed to make a queue" if denied else code_words(error.code)
        report.say("queue", NOTE if denied else BAD, words)
    except (ClientError, TimeoutError) as error:
        words = str(error) or f"no message came back in {_SERVER_WAIT_S:g} s"
        report.say("queue", BAD, words)
    else:
        took_ms = (time.monotonic() - before_s) * 1_000
        words = f"a message went through a temporary queue, all in {took_ms:.1f} ms"
        report.say("queue", GOOD if good else BAD, words if good else "another message came back")


async def _limits(report: Report, client: Client, channels: list[Any], near: bool) -> None:
    for channel in channels:
        name = channel.name
        near |= _near(report, f"clients of {name}", channel.active_clients, channel.client_limit)
        near |= _near(report, f"queues of {name}", len(channel.queues), channel.queue_limit)
        for queue in await client.queues(name):
            waiting = queue.messages + queue.priority_messages
            near |= _near(report, f"messages of {name}/{queue.id}", waiting, queue.message_limit)
    if not near:
        report.say(
            "limits", GOOD, f"neither the server nor one of {len(channels)} channels is near one"
        )


async def _look_around(
    report: Report, client: Client, server: ServerInformation | None, *, writing: bool
) -> None:
    """Examine everything that needs a connection."""
    slowest_ms = max([await client.ping() * 1_000 for _ in range(3)])
    level = NOTE if slowest_ms > _SLOW_MS else GOOD
    report.say("round trip", level, f"{slowest_ms:.1f} ms, the slowest of three")
    channels = await _right(report, "list channels", client.channels())
    await _right(report, "list clients", client.clients())
    await _right(report, "list routers", client.routers())
    if writing:
        await _pass_on(report, client)
    await _storage(report, client)
    near = False
    if server is not None:
        near = _near(report, "clients of the server", server.clients, server.max_clients)
        used, most = server.memory_bytes, server.max_memory_bytes
        near = _near(report, "bytes of the server's memory", used, most) or near
    if channels is not None:
        try:
            await _limits(report, client, channels, near)
        except TmqpError as error:
            report.say("limits", NOTE, str(error))


@click.command(
    epilog="""\b
Examples:
  tmqp doctor
  tmqp doctor -a tmqs://broker:2622 --http https://broker:2680 --json
  tmqp doctor --read-only --context monitor
  tmqp doctor && echo all is well

\b
Exit codes:
  0  nothing but ok and notes
  1  warnings
  2  problems
  3  no connection
"""
)
@click.option(
    "--read-only",
    is_flag=True,
    help="Do not create a temporary queue, which others could see for a moment.",
)
@json_option("Print one JSON object for each check.")
@asking
def doctor(read_only: bool, as_json: bool, where: Where) -> None:
    """Examine the connection to a server, this client's rights, and the server itself.

    It checks the host's name, the socket, TLS and the certificate, the login, the round-trip
    time, versions and clocks, rights, a message through a temporary queue, the storage, limits that
    are nearly reached; and, if the client may see them, the metrics: readiness, file descriptors,
    memory, the disk, slow writes, a slow event loop, queues without consumers.

    Each line begins with ok, note, warning or problem; the last two suggest a remedy.
    """
    report = Report(as_json=as_json)

    async def work() -> int:
        if not await reach(report, where.address, where.timeout_s):
            return EXIT_CONNECTION
        server: ServerInformation | None = None

        async def look(client: Client) -> None:
            nonlocal server
            words = f"{where.address} accepts this client as {client.client_id}"
            report.say("connection", GOOD, words)
            server = await _server(report, client)
            await _look_around(report, client, server, writing=not read_only)

        try:
            await where.ask(look)
        except ClientError as error:
            report.say("connection", BAD, str(error), "check --token and the server's log")
            return EXIT_CONNECTION
        if server is not None:
            most = server.max_memory_bytes
            examine_memory(report, most, local=where.address.is_local)
        await examine(report, where, 0 if server is None else server.max_clients)
        return report.status

    code = 0

    async def whole() -> None:
        nonlocal code
        code = await work()

    run_alone(whole)
    sys.exit(code)
