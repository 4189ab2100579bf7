"""A cluster of two executors, one of which is killed while it reads."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.project import ROOT
from tmqp_spark.testing import Broker

COUNT: Final = 20_000


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@pytest.mark.alone
@pytest.mark.cold
@pytest.mark.timeout(300)
def test_a_killed_executors_messages_come_once(own_broker: Broker, tmp_path: Path) -> None:
    own_broker.push("cluster", 1, [b"x" * 1_000] * COUNT)
    ran = subprocess.run(
        [sys.executable, "-m", "tests.tmqp_spark.cluster_job", own_broker.url, str(tmp_path)],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            "TMQP_TEST_PORT": str(free_port()),
        },
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4_000:]
    said = json.loads(ran.stdout.splitlines()[-1])
    assert said["killed_after"], "no executor was killed"
    assert said["killed_after"][0] < COUNT // 500, "it was too late"
    assert sorted(said["seq"]) == list(range(1, COUNT + 1))
