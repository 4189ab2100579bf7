"""What nsqd's HTTP interface says of the log, and does to it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import httpx
import pytest

from tests.tmqp_server.test_doors import serving


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    """The server's log, whose level is put back."""
    found = logging.getLogger("tmqp_server")
    level = found.level
    yield found
    found.setLevel(level)


@pytest.mark.parametrize(
    ("level", "number"),
    [
        (logging.DEBUG - 5, 1),
        (logging.DEBUG, 1),
        (logging.INFO, 2),
        (logging.WARNING, 3),
        (logging.ERROR, 4),
        (logging.CRITICAL, 5),
        (logging.CRITICAL + 5, 5),
    ],
)
async def test_the_level_with_which_the_server_began_was_told_as_info(
    log: logging.Logger, level: int, number: int
) -> None:
    log.setLevel(level)
    async with serving({"protocol": "nsqd-http", "listen": ["127.0.0.1:0"]}) as server:
        port = server.door_addresses("nsqd-http")[0].rpartition(":")[2]
        place = f"http://127.0.0.1:{port}/config/log_level"
        async with httpx.AsyncClient() as web:
            assert (await web.get(place)).json() == number
            assert log.level == level
            assert (await web.put(place, content=b"warn")).json() == 3
            assert log.level == logging.WARNING
