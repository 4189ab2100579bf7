"""The attacks of the table (``__main__.py``): what each tries, and how."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import anyio.to_thread

from tests.tmqp_server.attacks import test_forged_answers as forged
from tests.tmqp_server.attacks import test_memory as memory
from tests.tmqp_server.attacks import test_unsent_work as work
from tmqp import Frame
from tmqp.address import parse_address
from tmqp.constants import TYPE_QUEUE_MESSAGE, TYPE_SERVER
from tmqp.extensions import OP_COMMIT_GROUP
from tmqp_client import Client, OperationFailed, OperationTimeout, connect

__all__ = ["ACCESS", "ATTACKS", "Script", "Target"]

ACCESS: Final = memory._ACCESS
_MIB: Final = 1_048_576


class Target:
    """Where the server is: its socket, a TCP address; and how long it is attacked, in seconds."""

    def __init__(self, path: str, address: str, seconds: float) -> None:
        self.path = path
        self.address = address
        self.seconds = seconds


class Script:
    """An attack.

    :param tried: what the attackers try, in words.
    :param run: does it and says what came of it.
    :param fills: it is after the server's memory, which is small then.
    :param guarded: clients need a token.
    """

    def __init__(
        self,
        tried: str,
        run: Callable[[Target], Awaitable[str]],
        *,
        fills: bool = False,
        guarded: bool = False,
        tls: bool = False,
    ) -> None:
        self.tried = tried
        self.run = run
        self.fills = fills
        self.guarded = guarded
        self.tls = tls


# --- Work ----------------------------------------------------------------------------------------


def storm(piece: bytes) -> Callable[[Target], Awaitable[str]]:
    """Four clients send a chunk again and again, and read what comes."""

    async def run(target: Target) -> str:
        sent = 0
        await work.fill(target.address)

        async def send(number: int) -> None:
            nonlocal sent
            async with (
                work.dial(target.address, f"attacker-{number}") as stream,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(work.swallow, stream)
                while True:
                    await stream.send(piece)
                    sent += len(piece)

        with anyio.move_on_after(target.seconds):
            async with anyio.create_task_group() as tasks:
                for number in range(work.ATTACKERS):
                    tasks.start_soon(send, number)
        return f"{sent / _MIB / target.seconds:.2f} MiB/s of requests processed"

    return run


def _places() -> bytes:
    items = ",".join(f'{{"Channel":"ch","Queue":{each},"Sequence":0}}' for each in range(10_000))
    headers = [("Cursor", "group")]
    body = f"[{items}]".encode()
    return Frame.build(TYPE_SERVER, "", OP_COMMIT_GROUP, body, headers=headers).raw


# --- Memory --------------------------------------------------------------------------------------


def taking(name: str) -> Callable[[Target], Awaitable[str]]:
    """Connections that want memory, as many as the server takes."""
    attack, count, stays, _access = memory.ATTACKS[name]

    async def run(target: Target) -> str:
        def attempt() -> int:
            return len(memory.attacked(target.path, attack, count, stays=stays, kept=_kept))

        began = time.monotonic()
        held = await anyio.to_thread.run_sync(attempt)
        await anyio.sleep(max(target.seconds - (time.monotonic() - began), 0.5))
        return (
            f"{held:,} of {count:,} connections got through"
            if stays
            else f"{count:,} came and went"
        )

    return run


#: Sockets that stay open as long as the process lives.
_kept: Final[list[socket.socket]] = []


def begins(sock: socket.socket, number: int) -> None:
    """A message of 1 MiB that never ends."""
    frame = Frame.build(TYPE_QUEUE_MESSAGE, "left", 1, b"x" * (_MIB - 1_024), message_id="m")
    sock.sendall(memory.hello(number) + frame.raw[:-1])


memory.ATTACKS["beginnings of large messages"] = (begins, 400, True, "")


async def secured(target: Target) -> str:
    """1,000 connections with TLS that do nothing but be there."""
    where = parse_address(target.address)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE

    def attempt() -> int:
        for number in range(1_000):
            try:
                plain = socket.create_connection((where.host, where.port), 5)
                sock = context.wrap_socket(plain)
                sock.sendall(memory.hello(number))
            except OSError:
                continue
            _kept.append(sock)
        return len(_kept)

    held = await anyio.to_thread.run_sync(attempt)
    await anyio.sleep(1.0)
    return f"{held:,} of 1,000 connections stay"


# --- Forgeries -----------------------------------------------------------------------------------

_TRIES: Final = 30


async def _forge(target: Target, channel: str, ask: Callable[..., Awaitable[bool]]) -> str:
    """How often what a victim asked was settled by somebody else."""
    settled = 0
    where = parse_address(target.address)
    async with (
        forged.beside(where.host, where.port) as (victim, attacker, ids),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(forged.keep_forging, attacker, ids, channel)
        for _ in range(_TRIES):
            settled += await ask(victim)
        tasks.cancel_scope.cancel()
    return f"{settled} of {_TRIES} counted"


async def confirms(target: Target) -> str:
    """Nobody confirms: the handler waits for a consumer, and there is none."""
    async with connect(target.address) as client:
        await client.create_queue("orders", 1, status="push", delivery_handler="ack-consumer")

    async def ask(victim: Client) -> bool:
        try:
            await victim.push("orders", 1, b"x")
        except OperationTimeout:
            return False
        return True

    return await _forge(target, "orders", ask)


async def results(target: Target) -> str:
    """The server refuses an operation."""

    async def ask(victim: Client) -> bool:
        try:
            await victim.remove_queue("nowhere", 1)
        except OperationFailed as error:
            return error.code != 404
        return True

    return await _forge(target, "nowhere", ask)


_MEMORY_WORDS: Final = {
    "half-open connections": "2,500 greetings of 16 kB that never end",
    "refused connections": "2,000 greetings with a wrong token, 60 kB behind each",
    "hellos of many properties": "1,000 greetings with 2,500 properties",
    "producers that leave a message": "3,000 producers that each leave a message and go",
    "queues": "24,000 queues",
    "subscriptions": "24,000 channels joined",
    "beginnings of large messages": "400 messages of 1 MiB that never end",
}

ATTACKS: Final[dict[str, Script]] = {
    **{name: Script("64 KiB of them, endlessly, by 4 clients", storm(piece))
       for name, piece in work.STORMS.items()},
    "places of a group": Script("commits of 10,000 places, endlessly, by 4 clients",
                                storm(_places())),
    **{name: Script(words, taking(name), fills=True, guarded=bool(memory.ATTACKS[name][3]))
       for name, words in _MEMORY_WORDS.items()},
    "TLS connections": Script("1,000 of them that stay idle", secured, fills=True, tls=True),
    "forged confirms": Script("confirm another client's pushes, knowing their ids", confirms),
    "forged results": Script("answer another client's operations for the server", results),
}  # fmt: skip
