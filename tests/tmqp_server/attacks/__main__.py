"""Attacks on a live server, and how a healthy client fared beside each: one table.

    PYTHONPATH=build/compiled python -m tests.tmqp_server.attacks [NAME ...]

For each attack a server is started, a healthy client and the attackers, each in a process of its
own.  The healthy client pushes a message, has it confirmed, consumes and acknowledges it, and
pauses 4 ms; its figure is the time from the push to the message, the 99th percentile.  Attackers
have the lowest priority of the machine's scheduler: they would be on other machines.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

import tmqp
from tests.certificates import make_certificate
from tests.tmqp_server.attacks import scripts
from tests.tmqp_server.attacks.healthy import p99_s
from tests.tmqp_server.attacks.served import Served
from tmqp_client import OperationFailed, connect

#: How long an attack goes on, in seconds.
SECONDS: Final = float(os.environ.get("TMQP_ATTACK_S", "4"))
_PAUSE_S: Final = 0.004
_MIB: Final = 1_048_576
_SETTINGS: Final = """
max_connections = 4000
[broker]
max_total_bytes = {memory}
max_queues_per_channel = 65536
max_subscriptions_per_session = 1000000
max_channels = 1000000
"""


def child(*words: str) -> subprocess.Popen[str]:
    """This module in a process of its own, doing one thing."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.tmqp_server.attacks", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


# --- The children --------------------------------------------------------------------------------


async def healthy(address: str, token: str) -> None:
    """Work until standard input ends; print the figures."""
    trips: list[float] = []
    refused = 0
    async with connect(address, client_id="healthy", token=token) as client:
        await client.create_queue("healthy", 1, status="push")
        await client.create_queue("left", 1, status="pull")
        async with client.consume("healthy", 1) as consumer:
            messages = aiter(consumer)
            print("ready", flush=True)
            async with anyio.create_task_group() as tasks:

                async def stop() -> None:
                    await anyio.to_thread.run_sync(sys.stdin.readline)
                    tasks.cancel_scope.cancel()

                tasks.start_soon(stop)
                while True:
                    started = time.monotonic()
                    try:
                        await client.push("healthy", 1, b"x")
                        message = await anext(messages)
                    except OperationFailed:
                        refused += 1  # the memory is full: it says so, at once
                    else:
                        await message.ack()
                    trips.append(time.monotonic() - started)
                    await anyio.sleep(_PAUSE_S)
    print(json.dumps([p99_s(trips) * 1e3, max(trips) * 1e3, len(trips), refused]), flush=True)


async def attack(name: str, path: str, address: str) -> None:
    """Attack for a while, then wait for the end of standard input; print what came of it."""
    os.nice(19)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(files[1], 8_192), files[1]))
    outcome = await scripts.ATTACKS[name].run(scripts.Target(path, address, SECONDS))
    print(outcome, flush=True)
    await anyio.to_thread.run_sync(sys.stdin.readline)


# --- The parent ----------------------------------------------------------------------------------


def settings_of(script: scripts.Script, folder: Path) -> str:
    """What the server is told."""
    memory = 48 * _MIB if script.fills else 1024 * _MIB
    settings = _SETTINGS.format(memory=memory)
    if script.tls:
        key, certificate = make_certificate(folder)
        settings += f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n'
    return settings + (scripts.ACCESS if script.guarded else "")


def measured(name: str, folder: Path) -> list[str]:
    """One row of the table."""
    script = scripts.ATTACKS[name]
    more = "tmqs://127.0.0.1:0" if script.tls else "tmq://127.0.0.1:0"
    served = Served(folder, settings_of(script, folder), (more,))
    children = []
    try:
        beside = child("healthy", served.address, "healthy" if script.guarded else "")
        children.append(beside)
        assert beside.stdin is not None
        assert beside.stdout is not None
        assert beside.stdout.readline() == "ready\n"
        before, _ = served.figures()
        attackers = child("attack", name, served.path, served.addresses[0])
        children.append(attackers)
        assert attackers.stdout is not None
        outcome = attackers.stdout.readline().strip()
        resident, books = served.figures()
        beside.stdin.write("\n")
        beside.stdin.flush()
        p99_ms, longest_ms, count, refused = json.loads(beside.stdout.readline())
    finally:
        for each in children:
            each.kill()
            each.communicate()
        served.kill()
    if script.fills:
        outcome += f"; {(resident - before) / _MIB:.0f} MiB used, {books / _MIB:.0f} counted"
        if refused:
            outcome += f"; {refused} pushes answered with 503"
    figures = f"{p99_ms:.1f} ms | {longest_ms:.0f} ms | {count}"
    return [name, script.tried, outcome, figures]


def main(names: list[str]) -> None:
    """Print the table."""
    build = "compiled" if tmqp.compiled else "interpreted"
    print(f"The server is {build}.\n")
    print("| attack | what it tries | outcome | p99 | longest | messages |")
    print("|---|---|---|---|---|---|")
    for name in names or scripts.ATTACKS:
        with tempfile.TemporaryDirectory() as folder:
            row = measured(name, Path(folder))
        print("| " + " | ".join(row) + " |", flush=True)


_CHILDREN: Final[dict[str, Callable[..., Awaitable[None]]]] = {"healthy": healthy, "attack": attack}

if __name__ == "__main__":
    words = sys.argv[1:]
    if words and words[0] in _CHILDREN:
        anyio.run(_CHILDREN[words[0]], *words[1:])
    else:
        main(words)
