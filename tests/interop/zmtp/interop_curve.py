"""JeroMQ, which has CURVE without libsodium, at our server."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import anyio
import pytest
import zmq

from tests.interop.building import EXPECTED, run
from tests.interop.zmtp.clients import CURVE
from tests.tmqp_server.zmtp_sockets import address_of, config
from tmqp_server import running
from tmqp_server.settings.secrets import write_secret

pytestmark = [
    pytest.mark.interop,
    pytest.mark.cold,
    pytest.mark.timeout(400),
    pytest.mark.xdist_group("Java"),
    pytest.mark.skipif(
        bool(EXPECTED) and CURVE.name not in EXPECTED, reason="only other clients are asked for"
    ),
]

_MOST_S: Final = 180


async def test_sockets_of_jeromq_with_curve(tmp_path: Path) -> None:
    pytest.importorskip("nacl", reason="PyNaCl is not installed: pip install 'tmqp[zmtp]'")
    words, folder = CURVE.command()
    server_key, secret = [key.decode() for key in zmq.curve_keypair()]
    key, own_secret = [key.decode() for key in zmq.curve_keypair()]
    file = tmp_path / "server.key"
    write_secret(file, secret)
    access = {"tokens": [{"name": "jeromq", "public_key": key, "roles": ["admin"]}]}
    options = {"mechanism": "curve", "curve_secret_key_file": str(file)}
    async with running(config(access=access, options=options)) as server:
        command = [*words, address_of(server), server_key, key, own_secret]
        with anyio.fail_after(_MOST_S):
            done = await anyio.to_thread.run_sync(run, command, folder)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "done"
