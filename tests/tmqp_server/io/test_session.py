"""Sessions: what is sent and when, what is held back, and how one ends."""

from __future__ import annotations

import anyio
import pytest

from tests.tmqp_server.io.stand_ins import running_session
from tmqp_server.config import OutboundLimits

pytestmark = pytest.mark.anyio


async def test_bytes_never_overtake_a_piece_that_is_being_sent() -> None:
    async with running_session(room=10) as stage:
        stage.session.write(b"a" * 100)
        await anyio.wait_all_tasks_blocked()  # the writing task waits for room, piece in hand
        stage.pipe.read(200)
        stage.session.write(b"b" * 50)  # before that task has its turn
        await anyio.wait_all_tasks_blocked()
        assert bytes(stage.pipe.sent) == b"a" * 100 + b"b" * 50
        assert stage.session.outbound_bytes == 0
