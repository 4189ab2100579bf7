"""A group under every kind of fault of machines and network, once; ``make soak`` goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.interop.etcd.faults import play_round
from tests.soak.share import first_seed

pytestmark = [pytest.mark.interop, pytest.mark.cold, pytest.mark.timeout(600)]

#: The time without a confirm that a group may have, on a machine that does other things as well.
_MOST_GAP_S: Final = 20.0


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_group_keeps_its_promises_under_every_fault(tmp_path: Path) -> None:
    played = await play_round(tmp_path, first_seed())
    print(played.summary())
    assert max(played.gaps.values()) < _MOST_GAP_S, played.gaps
