"""``tmqp doctor``: whether a client can work with the server, and what is about to go wrong."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Awaitable
from typing import Any, Final

import click

from tmqp import ResultCode, TmqpError, __version__
from tmqp_client import Client, OperationError, OperationFailed
from tmqp_client.cli._run import EXIT_REFUSED, CommandError, connected, json_option, printable, run
from tmqp_client.errors import code_words

__all__ = ["doctor"]

_GOOD: Final = "ok"
_NOTE: Final = "note"
_BAD: Final = "problem"
#: A ping that takes longer is worth a word.
_SLOW_MS: Final = 250.0
#: Messages are dated by the server; a clock that differs by more shows in times and latencies.
_MOST_CLOCK_MS: Final = 1_000
#: A server of another make may ignore the question.
_SERVER_WAIT_S: Final = 5.0
#: The share of a limit from which on it is near.
_NEAR: Final = 0.9


class _Report:
    """The verdicts, printed as they come."""

    def __init__(self, *, as_json: bool) -> None:
        self.problems = 0
        self._as_json = as_json

    def say(self, check: str, verdict: str, words: str) -> None:
        self.problems += verdict == _BAD
        if self._as_json:
            click.echo(json.dumps({"check": check, "verdict": verdict, "text": words}))
        else:
            click.echo(printable(f"{verdict:<8}{check}: {words}"))


async def _right(report: _Report, what: str, asked: Awaitable[Any]) -> Any:
    """Whether the client may ask that; the answer, or None."""
    try:
        answer = await asked
    except OperationFailed as error:
        denied = error.code == ResultCode.UNAUTHORIZED
        words = "not allowed" if denied else code_words(error.code)
        report.say("rights", _NOTE if denied else _BAD, f"{what}: {words}")
        return None
    report.say("rights", _GOOD, what)
    return answer


async def _server(report: _Report, client: Client) -> bool:
    """The server's version and clock, and its own limits; whether one of them is near."""
    ours = f"client tmqp {__version__} on Python {sys.version.split()[0]}"
    before_ms = time.time() * 1_000
    try:
        server = await client.server_information(timeout_s=_SERVER_WAIT_S)
    except OperationError as error:
        denied = isinstance(error, OperationFailed) and error.code == ResultCode.UNAUTHORIZED
        words = "not allowed to ask the server" if denied else "the server does not tell its own"
        report.say("version", _NOTE, f"{ours}; {words}")
        report.say("clock", _NOTE, words.replace("its own", "its clock"))
        return False
    after_ms = time.time() * 1_000
    same = server.version.split(".")[:2] == __version__.split(".")[:2]
    report.say("version", _GOOD if same else _NOTE, f"server tmqp {server.version}, {ours}")
    # Somewhere between the question and the answer; what is left of the difference is certain.
    ahead_ms = server.time_ms - min(max(server.time_ms, before_ms - 1), after_ms)
    if abs(ahead_ms) > _MOST_CLOCK_MS:
        way = "ahead of" if ahead_ms > 0 else "behind"
        words = (
            f"the server's is {abs(ahead_ms) / 1_000:,.1f} s {way} this machine's: set both by NTP"
        )
        report.say("clock", _NOTE, words)
    else:
        report.say("clock", _GOOD, "the server's agrees with this machine's to a second")
    near = _near(report, "clients of the server", server.clients, server.max_clients)
    used, most = server.memory_bytes, server.max_memory_bytes
    return _near(report, "bytes of the server's memory", used, most) or near


async def _storage(report: _Report, client: Client) -> None:
    try:
        # A name that no channel has: nothing is looked at.
        await client.offsets("@")
    except OperationFailed as error:
        if error.code == ResultCode.NOT_IMPLEMENTED:
            words = "none: messages are lost when the server ends (start it with --data DIR)"
            report.say("storage", _NOTE, words)
        else:
            verdict = _BAD if error.code == ResultCode.BUSY else _NOTE
            report.say("storage", verdict, code_words(error.code))
    else:
        report.say("storage", _GOOD, "queues can be durable")


def _near(report: _Report, what: str, count: int, limit: int) -> bool:
    if limit <= 0 or count < _NEAR * limit:
        return False
    verdict = _BAD if count >= limit else _NOTE
    report.say("limits", verdict, f"{what}: {count:,} of {limit:,}")
    return True


async def _limits(report: _Report, client: Client, channels: list[Any], near: bool) -> None:
    for channel in channels:
        name = channel.name
        near |= _near(report, f"clients of {name}", channel.active_clients, channel.client_limit)
        near |= _near(report, f"queues of {name}", len(channel.queues), channel.queue_limit)
        for queue in await client.queues(name):
            waiting = queue.messages + queue.priority_messages
            near |= _near(report, f"messages of {name}/{queue.id}", waiting, queue.message_limit)
    if not near:
        report.say(
            "limits", _GOOD, f"neither the server nor one of {len(channels)} channels is near one"
        )


@click.command(epilog="\b\nExamples:\n  tmqp doctor\n  tmqp doctor -a tmqs://broker:2622 --json\n")
@json_option("Print one JSON object for each check.")
@connected
def doctor(as_json: bool, **where: Any) -> None:
    """Check the connection, versions, the clock, rights, the storage and what is near its limit.

    Each line begins with ok, note or problem; a problem ends with exit code 1.
    """
    report = _Report(as_json=as_json)
    address = where["address"]

    async def work(client: Client) -> None:
        report.say("connection", _GOOD, f"{address} accepts this client as {client.client_id}")
        if not address.tls and not address.is_local:
            report.say("connection", _NOTE, "what is sent, the token too, is not encrypted")
        slowest_ms = max([await client.ping() * 1_000 for _ in range(3)])
        verdict = _NOTE if slowest_ms > _SLOW_MS else _GOOD
        report.say("round trip", verdict, f"{slowest_ms:.1f} ms, the slowest of three")
        near = await _server(report, client)
        channels = await _right(report, "list channels", client.channels())
        await _right(report, "list clients", client.clients())
        await _right(report, "list routers", client.routers())
        await _storage(report, client)
        if channels is not None:
            try:
                await _limits(report, client, channels, near)
            except TmqpError as error:
                report.say("limits", _NOTE, str(error))
        if report.problems:
            raise CommandError(f"{report.problems} problems found", EXIT_REFUSED)

    run(work, **where)
