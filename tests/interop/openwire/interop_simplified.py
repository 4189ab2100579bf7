"""JMS 2.0 with ActiveMQ's own clients: the simplified interface, delays and shared subscriptions.

What a client does not offer it refuses by an exception of its own, at our server as at ActiveMQ of
the same version.
"""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.interop.openwire.clients import SIMPLIFIED, simplified
from tests.interop.openwire.talking import MARKS, at_activemq, at_our_server, failures

pytestmark = MARKS


@pytest.fixture
def anyio_backend() -> str:
    """One is enough: a list takes a while."""
    return "asyncio"


@pytest.mark.parametrize("version", SIMPLIFIED)
async def test_jms_2_has_the_verdicts_of_activemq(version: str, tmp_path: Path) -> None:
    command = simplified(version)
    ours = await at_our_server(command, tmp_path)
    theirs = await anyio.to_thread.run_sync(at_activemq, command, version)
    assert ours == theirs
    assert len(ours) - len(failures(ours)) >= 35
