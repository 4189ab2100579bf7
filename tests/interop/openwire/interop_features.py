"""The list of features of JMS 1.1 and of ActiveMQ, with ActiveMQ's own clients: at our server, and
at ActiveMQ itself, with the same verdict line by line."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import anyio
import pytest

from tests.interop.openwire.clients import PACKAGED, VERSIONS, example, features
from tests.interop.openwire.talking import (
    MARKS,
    at_activemq,
    at_our_server,
    different,
    failures,
    said_at_our_server,
)

pytestmark = MARKS

#: What our server does not do, and why; it is in the guide, too.
_NOT_SERVED: Final[dict[str, str]] = {}


@pytest.fixture
def anyio_backend() -> str:
    """One is enough: a list takes a while."""
    return "asyncio"


@pytest.mark.parametrize("version", VERSIONS)
async def test_all_features_with_a_client(version: str) -> None:
    found = await at_our_server(features(version))
    assert len(found) > 100
    assert failures(found).keys() == _NOT_SERVED.keys()


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_verdicts_are_those_of_activemq(version: str, tmp_path: Path) -> None:
    """Of the client's version; with a data directory: every queue is durable."""
    theirs = await anyio.to_thread.run_sync(at_activemq, features(version), version)
    ours = await at_our_server(features(version), tmp_path)
    found = different(ours, theirs)
    assert found.keys() == _NOT_SERVED.keys(), found


async def test_the_verdicts_are_those_of_the_distributions_activemq(tmp_path: Path) -> None:
    """With the client that users have, at the broker of another version."""
    command = features(VERSIONS[0])
    theirs = await anyio.to_thread.run_sync(at_activemq, command, PACKAGED)
    ours = await at_our_server(command, tmp_path)
    found = different(ours, theirs)
    assert found.keys() == _NOT_SERVED.keys(), found


async def test_the_guides_program() -> None:
    assert await said_at_our_server(example()) == b"3 x tea are on their way\n"
