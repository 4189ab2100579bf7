"""The server killed two hundred times while it is busy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tmqp_server.test_killed import kill_again_and_again

CYCLES = 200


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_two_hundred_kills(tmp_path: Path) -> None:
    print(await kill_again_and_again(tmp_path, CYCLES, int(os.environ.get("TMQP_SOAK_SEED", "1"))))
