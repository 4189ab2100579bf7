"""A server of a group as a process: ``python -m tests.interop.etcd.member NAME FOLDER ETCD...``.

It says ``leads EPOCH`` when it begins to lead, and ``over REASON`` as its last words.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import uuid
from pathlib import Path
from typing import NoReturn

import anyio

from tmqp_server import ServerConfig, running
from tmqp_server.io.replica import Replica
from tmqp_server.replication.life import LifeSettings
from tmqp_server.storage.etcd import EtcdAccess, EtcdLog
from tmqp_server.storage.log import Leader
from tmqp_server.storage.sqlite.replicated import ReplicatedStore


def main(name: str, folder: Path, etcd: list[str]) -> None:
    """Live one life."""
    logging.basicConfig(level=logging.WARNING)
    address = f"unix:{folder / name}.socket"
    log = EtcdLog(EtcdAccess(etcd), "the group")
    store = ReplicatedStore(folder / name, floor_bytes=0)
    claimed = threading.Event()
    leads: list[Leader] = []

    def lead(leader: Leader) -> None:
        leads.append(leader)
        claimed.set()

    def over(reason: str, _needs_rebuild: bool) -> NoReturn:
        print("over", reason, flush=True)
        os._exit(3)

    settings = LifeSettings(name, address)
    replica = Replica(log, store, settings, uuid.uuid4().hex, lead, over)
    replica.start()
    claimed.wait()
    store.lead(replica.append, replica.fail, replica.kept)

    async def serve() -> None:
        async with running(ServerConfig(listen=(address,)), store=store):
            print("leads", leads[0].epoch, flush=True)
            with anyio.open_signal_receiver(signal.SIGTERM) as signals:
                async for _ in signals:
                    break

    anyio.run(serve)
    replica.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
