"""What NSQ's door answers is what the original answered, byte for byte."""

from __future__ import annotations

import pytest

from tests.tmqp_server.doors.nsq.kept import ALL, KeptServer
from tests.tmqp_server.doors.nsq.server import Server
from tests.tmqp_wires.nsq.exchanges import EXCHANGES, Exchange
from tmqp_server.storage.memory import MemoryStore
from tmqp_wires.nsq import writing


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda each: each.name)
@pytest.mark.parametrize(("pieces", "durable"), [(1, False), (2, False), (1, True)])
def test_answers_are_those_that_were_recorded(
    exchange: Exchange, pieces: int, durable: bool
) -> None:
    server = KeptServer(MemoryStore(), ALL) if durable else Server()
    client = server.connect(b"")
    middle = len(exchange.sent) // pieces
    client.send(exchange.sent[:middle], exchange.sent[middle:])
    expected = b"".join(
        [
            (len(data) + 4).to_bytes(4, "big") + kind.to_bytes(4, "big") + data
            for kind, data in exchange.frames
        ]
    )
    got = client.raw()
    if b'"deflate":true' in expected:
        got = got[: len(expected)]  # then comes an OK, deflated
    assert got == expected
    assert client.closed == exchange.closes
    if not exchange.closes:
        client.send(writing.NOP)
        assert not client.closed or b'"deflate":true' in expected
