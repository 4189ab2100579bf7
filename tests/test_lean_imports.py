"""What a client or a bare server need not load, it does not: each module costs time."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final

import pytest

#: What a server loads only with a door, an option or a command that needs it.
NOT_OF_A_SERVER: Final = (
    "bz2", "cattrs", "cryptography", "difflib", "h11", "httpx", "lzma", "pyarrow", "shutil",
    "sqlite3", "tmqp_client",
    "tmqp_server.admin.api", "tmqp_server.admin.console", "tmqp_server.admin.door",
    "tmqp_server.admin.metrics", "tmqp_server.commands.backup", "tmqp_server.commands.transfer",
    "tmqp_server.doors.goms.door", "tmqp_server.doors.http.door", "tmqp_server.doors.nsq.door",
    "tmqp_server.doors.openwire", "tmqp_server.doors.smq.door", "tmqp_server.doors.stomp",
    "tmqp_server.doors.zmtp", "tmqp_server.io.http", "tmqp_server.replication.leading",
    "tmqp_server.storage.sqlite", "tmqp_spark", "tmqp_wires.goms", "tmqp_wires.openwire",
    "tmqp_wires.smq", "tmqp_wires.stomp", "tmqp_wires.throttr", "tmqp_wires.zmtp", "trio",
    "uvloop",
)  # fmt: skip
#: What a client loads only when it is used.
NOT_OF_A_CLIENT: Final = (
    "argparse", "asyncio", "attr", "cattrs", "click", "concurrent", "cryptography", "email", "h11",
    "http", "httpx", "pyarrow", "rich", "sqlite3", "ssl", "subprocess", "tmqp.models.events",
    "tmqp.models.information", "tmqp.models.options", "tmqp.models.reading", "tmqp.testing",
    "tmqp_client.any_event", "tmqp_client.cli", "tmqp_client.sync", "tmqp_server", "tmqp_spark",
    "tmqp_wires", "trio", "typing_extensions", "urllib.request", "uvloop", "xml",
)  # fmt: skip
_SERVED: Final = """
import sys
import anyio
import tmqp_server.__main__
from tmqp_server import ServerConfig, running

async def main():
    async with running(ServerConfig(listen=("tmq://127.0.0.1:0",))):
        pass

anyio.run(main)
"""


@pytest.mark.parametrize(
    ("program", "unwanted"),
    [(_SERVED, NOT_OF_A_SERVER), ("import sys, tmqp_client", NOT_OF_A_CLIENT)],
    ids=["server", "client"],
)
def test_nothing_is_loaded_that_nobody_asked_for(program: str, unwanted: tuple[str, ...]) -> None:
    tell = f"{program}\nimport json\nprint(json.dumps(sorted(sys.modules)))"
    ended = subprocess.run(
        [sys.executable, "-c", tell], stdout=subprocess.PIPE, text=True, check=True
    )
    loaded = json.loads(ended.stdout.splitlines()[-1])
    found = [
        module
        for module in loaded
        if any(module == each or module.startswith(f"{each}.") for each in unwanted)
    ]
    assert found == []
