"""The log of the simulation does what every log must do."""

from __future__ import annotations

import pytest

from tests.tmqp_server.storage.log_contract import *  # noqa: F403 - the tests
from tests.tmqp_server.storage.log_contract import Logs
from tmqp_sim.replicas.log_server import LogServer


@pytest.fixture
def logs() -> Logs:
    now = [100.0]
    log = LogServer(lambda: now[0])

    def wait(seconds: float) -> None:
        now[0] += seconds

    return Logs(log, log, wait)
