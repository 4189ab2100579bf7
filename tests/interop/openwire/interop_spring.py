"""Spring's JmsTemplate, listener containers and annotations, with ``javax.jms`` and with
``jakarta.jms``: at our server and at ActiveMQ, with the same verdicts."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.interop.openwire.clients import SPRINGS, spring
from tests.interop.openwire.talking import MARKS, at_activemq, at_our_server, different

pytestmark = MARKS


@pytest.fixture
def anyio_backend() -> str:
    """One is enough: a list takes a while."""
    return "asyncio"


@pytest.mark.parametrize(("version", "client"), SPRINGS)
async def test_spring_has_the_verdicts_of_activemq(
    version: str, client: str, tmp_path: Path
) -> None:
    command = spring(version, client)
    ours = await at_our_server(command, tmp_path)
    assert len(ours) == 39
    theirs = await anyio.to_thread.run_sync(at_activemq, command, client)
    assert not different(ours, theirs)
