"""The server killed around commits of transactions, some hundred times."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tmqp_server.test_killed_commits import commit_again_and_again

EPOCHS = 200


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_two_hundred_epochs(tmp_path: Path) -> None:
    seed = int(os.environ.get("TMQP_SOAK_SEED", "1"))
    print(await commit_again_and_again(tmp_path, EPOCHS, seed))
