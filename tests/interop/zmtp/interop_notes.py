"""The programs of the users' notes in Java, with their version of JeroMQ."""

from __future__ import annotations

from typing import Final

import anyio
import attrs
import pytest

from tests.interop.building import EXPECTED, run
from tests.interop.zmtp.clients import NOTES
from tests.ports import free_port
from tests.tmqp_server.zmtp_sockets import address_of, config
from tmqp_server import running
from tmqp_server.engine.limits import EngineLimits

pytestmark = [
    pytest.mark.interop,
    pytest.mark.cold,
    pytest.mark.timeout(400),
    pytest.mark.xdist_group("Java"),
    pytest.mark.skipif(
        bool(EXPECTED) and NOTES.name not in EXPECTED, reason="only other clients are asked for"
    ),
]

_MOST_S: Final = 180

#: What they say.  A REQ does not block where nobody works: the queue takes the request.
EXPECTED_LINES: Final = """\
reply: Hello, client 0
reply: Hello, client 1
reply: Hello, client 2
sent: true
recv at once: nothing
recv in time: nothing
request: nobody works
reply: late
parts: [a, b, c]
linger -1: 100
linger 2000: 100
linger 0: true
blocked: true
sent at once: false
drained: true
"""


async def test_the_programs_of_the_users_notes_in_java() -> None:
    words, folder = NOTES.command()
    worker = f"tcp://127.0.0.1:{free_port()}"
    broker = EngineLimits(max_queue_bytes=1_000_000)
    settings = attrs.evolve(config(options={"connect": [worker]}), broker=broker)
    async with running(settings) as server:
        with anyio.fail_after(_MOST_S):
            command = [*words, address_of(server), worker]
            done = await anyio.to_thread.run_sync(run, command, folder)
    assert done.returncode == 0, done.stdout
    assert done.stdout == EXPECTED_LINES
