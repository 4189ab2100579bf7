"""Groups of replicated servers under every kind of fault, round after round.

It takes twice ``SOAK_SECONDS``, for a round takes minutes; ``make soak SOAK_SEED=n`` begins with
the round of that seed.  Root is needed, and Go to build etcd.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.interop.etcd.faults import play_round
from tests.soak.share import first_seed, whole


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_groups_keep_their_promises(tmp_path: Path) -> None:
    until = time.monotonic() + 2 * whole()
    seed = first_seed()
    confirmed = 0
    while True:
        folder = tmp_path / str(seed)
        folder.mkdir()
        played = await play_round(folder, seed)
        confirmed += len(played.ledger.confirmed)
        seed += 1
        print(f"round {seed - 1}: {played.summary()}", flush=True)
        if time.monotonic() >= until:
            break
    print(f"{confirmed} confirmed in all, lost 0; the next seed is {seed}")
