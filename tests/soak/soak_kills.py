"""The server killed again and again while it is busy: two hundred times where clients of TMQP
produce and consume, and fifty times at each other door."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.share import first_seed
from tests.tmqp_server.killed_doors import FOREIGN
from tests.tmqp_server.killing import KilledDoor, kill_again_and_again
from tests.tmqp_server.test_killed import NATIVE

CYCLES = 50
NATIVE_CYCLES = 200
DOORS = (NATIVE, *FOREIGN)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("door", DOORS, ids=lambda door: str(door.name))
async def test_fifty_kills_and_more(door: KilledDoor, tmp_path: Path) -> None:
    cycles = NATIVE_CYCLES if door is NATIVE else CYCLES
    print(await kill_again_and_again(door, tmp_path, cycles, first_seed()))
