"""Sessions: what is sent and when, what is held back, and how one ends."""

from __future__ import annotations

import anyio
import pytest

from tests.tmqp_server.io.stand_ins import Stage, running_session
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


async def test_a_write_while_a_session_ends_starts_no_task() -> None:
    """A group that is ending takes no tasks: trio raises, asyncio would lose the task."""
    async with running_session(OutboundLimits(flush_timeout_s=0.01), room=0) as stage:
        stage.pipe.give(b"")
        while not stage.over.is_set():
            stage.session.write(b"x")
            await anyio.lowlevel.checkpoint()
        assert stage.error is None
        assert stage.ears.heard[-1] == "closed"


@pytest.mark.parametrize("where", ["opened", "received", "ended", "closed"])
async def test_whatever_fails_the_transport_is_closed(where: str) -> None:
    stage = Stage(OutboundLimits(), 0)
    stage.ears.faulty = where
    with anyio.fail_after(5):
        stage.pipe.give(b"x")
        stage.pipe.give(b"")
        await stage.run()
    assert stage.pipe.closed == 1
    assert stage.error is not None
    assert stage.ears.heard[-1] == "closed"
