"""Clusters of etcd, built from its published modules, for the tests of replication."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.interop.building import CACHE, go_build
from tests.interop.etcd.networks import Place
from tests.ports import free_port

__all__ = ["EtcdCluster", "etcd_program"]

_SOURCES: Final = Path(__file__).parent
_MOST_S: Final = 30.0
#: A server of etcd that was away gets a snapshot soon, so etcd keeps few entries in memory; and a
#: new leader of etcd is there before the lease of a leader of ours, 2 s, is over.
_SETTINGS: Final = (
    "--snapshot-count=500",
    "--experimental-snapshot-catchup-entries=200",
    "--heartbeat-interval=50",
    "--election-timeout=500",
)


def etcd_program() -> Path:
    """The program etcd; skips the test where it cannot be built."""
    folder = CACHE / "etcd"
    go_build("etcd", _SOURCES, folder, "etcd")
    return folder / "etcd"


class EtcdCluster:
    """Servers of etcd on this machine.

    :param options: more of each server's command line; they count for those that start next.
    :param places: a machine for each; this one for all of them if there are none.
    """

    def __init__(
        self,
        folder: Path,
        count: int,
        options: tuple[str, ...] = (),
        places: Sequence[Place] = (),
    ) -> None:
        self._folder = folder
        self._places = places
        self._program = etcd_program()
        self.options = options
        ports = [free_port() for _ in range(2 * count)]
        self._clients, self._peers = ports[:count], ports[count:]
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * count
        self.scheme = "https" if "--cert-file" in " ".join(options) else "http"

    @property
    def addresses(self) -> list[str]:
        """Where clients reach each server."""
        return [f"{self._host(at, 'localhost')}:{port}" for at, port in enumerate(self._clients)]

    def _host(self, place: int, here: str) -> str:
        return self._places[place].address if self._places else here

    def start(self, place: int) -> None:
        """Start a server, or start it again with what its disk has."""
        peers = [
            f"http://{self._host(at, '127.0.0.1')}:{port}" for at, port in enumerate(self._peers)
        ]
        members = ",".join(f"n{each}={peer}" for each, peer in enumerate(peers))
        client = f"{self.scheme}://{self.addresses[place]}"
        enter = self._places[place].enter if self._places else ()
        with (self._folder / f"n{place}.log").open("ab") as log:
            self._processes[place] = subprocess.Popen(
                [
                    *enter,
                    str(self._program),
                    *(f"--name=n{place}", f"--data-dir={self._folder / f'n{place}'}"),
                    *(f"--listen-peer-urls={peers[place]}",),
                    *(f"--initial-advertise-peer-urls={peers[place]}",),
                    *(f"--listen-client-urls={client}", f"--advertise-client-urls={client}"),
                    *(f"--initial-cluster={members}", "--logger=zap", "--log-level=error"),
                    *_SETTINGS,
                    *self.options,
                ],
                stdout=log,
                stderr=log,
                env={**os.environ, "ETCD_UNSUPPORTED_ARCH": ""},
            )

    def kill(self, place: int) -> None:
        """Kill a server, and wait until it is gone."""
        process = self._processes[place]
        assert process is not None
        process.kill()
        process.wait()
        self._processes[place] = None

    def freeze(self, place: int, is_frozen: bool = True) -> None:
        """Stop a server where it is, or let it go on."""
        process = self._processes[place]
        assert process is not None
        process.send_signal(signal.SIGSTOP if is_frozen else signal.SIGCONT)

    def start_all(self, answers: Callable[[], bool]) -> None:
        """Start all, and wait until they answer."""
        for place in range(len(self._clients)):
            self.start(place)
        end = time.monotonic() + _MOST_S
        while not answers():
            assert time.monotonic() < end, self.said()
            time.sleep(0.05)

    def said(self) -> str:
        """What the servers have logged."""
        files = sorted(self._folder.glob("n*.log"))
        return "\n".join(file.read_text(errors="replace")[-2_000:] for file in files)

    def stop(self) -> None:
        """Kill all that run."""
        for place, process in enumerate(self._processes):
            if process is not None:
                self.freeze(place, is_frozen=False)
                self.kill(place)
