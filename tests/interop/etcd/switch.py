"""A switch of Ethernet between network namespaces: it cuts, delays and loses what it carries.

The kernel can do that as well (``tc qdisc ... netem``), where it has that module; packet sockets it
has everywhere.  The switch runs in a namespace of its own::

    ip netns exec NAMESPACE python -m tests.interop.etcd.switch COUNT SEED

It makes ``COUNT`` pairs of interfaces, ``p0`` and ``e0`` and so on, and says that it is ready; the
``e``s are then moved to where they belong.  Each line that it reads is JSON and says how it is from
now on: ``{"cut": [[0, 3]], "delay_ms": 20, "loss": 0.02}``, where pairs of numbers cannot reach
each other, and each frame is delayed by half to one and a half times as much.
"""

from __future__ import annotations

import array
import fcntl
import heapq
import json
import os
import random
import selectors
import socket
import struct
import subprocess
import sys
import time
from typing import Final

__all__ = ["Switch", "main"]

_ALL: Final = 3
_SOL_PACKET: Final = 263
_IGNORE_OUTGOING: Final = 23
_SIOCETHTOOL: Final = 0x8946
#: ETHTOOL_STXCSUM, _STSO and _SGSO: frames must leave complete, with their checksums, since nobody
#: behind a packet socket completes them.
_OFFLOADS: Final = (0x17, 0x1F, 0x24)
_MOST_FRAME: Final = 1 << 16
_GROUP_BIT: Final = 1


class Switch:
    """Decides what becomes of frames.

    :param count: of ports.
    """

    def __init__(self, count: int, seed: int) -> None:
        self._count = count
        self._random = random.Random(seed)
        self._ports: dict[bytes, int] = {}
        self._cut: set[tuple[int, int]] = set()
        self._delay_s = 0.0
        self._loss = 0.0
        self._waiting: list[tuple[float, int, int, bytes]] = []
        self._carried = 0

    def change(self, line: str) -> None:
        """Be like this from now on."""
        said = json.loads(line)
        self._cut = {(a, b) for one, other in said["cut"] for a, b in ((one, other), (other, one))}
        self._delay_s = said["delay_ms"] / 1_000
        self._loss = said["loss"]

    def take(self, frame: bytes, port: int, now: float) -> None:
        """A frame has come in at a port."""
        self._ports[frame[6:12]] = port
        to = self._ports.get(frame[:6])
        if to is None or frame[0] & _GROUP_BIT:
            for each in range(self._count):
                self._carry(frame, port, each, now)
        else:
            self._carry(frame, port, to, now)

    def _carry(self, frame: bytes, port: int, to: int, now: float) -> None:
        if to == port or (port, to) in self._cut or self._random.random() < self._loss:
            return
        self._carried += 1
        due = now + self._delay_s * self._random.uniform(0.5, 1.5)
        heapq.heappush(self._waiting, (due, self._carried, to, frame))

    def due(self, now: float) -> list[tuple[int, bytes]]:
        """What leaves now, with its port."""
        found = []
        while self._waiting and self._waiting[0][0] <= now:
            _, _, to, frame = heapq.heappop(self._waiting)
            found.append((to, frame))
        return found

    def wait_s(self, now: float) -> float | None:
        """When something leaves next; None if nothing waits."""
        return max(0.0, self._waiting[0][0] - now) if self._waiting else None


def _made(number: int) -> socket.socket:
    port, end = f"p{number}", f"e{number}"
    subprocess.run(["ip", "link", "add", port, "type", "veth", "peer", "name", end], check=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asks:
        for offload in _OFFLOADS:
            value = array.array("B", struct.pack("II", offload, 0))
            address, _ = value.buffer_info()
            fcntl.ioctl(asks, _SIOCETHTOOL, struct.pack("16sP", end.encode(), address))
    subprocess.run(["ip", "link", "set", port, "up"], check=True)
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
    made.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    made.bind((port, 0))
    made.setblocking(False)
    return made


def main(words: list[str]) -> None:
    """Carry frames until there is nobody to be told by."""
    count, seed = int(words[0]), int(words[1])
    switch = Switch(count, seed)
    sockets = [_made(number) for number in range(count)]
    selector = selectors.DefaultSelector()
    for number, each in enumerate(sockets):
        selector.register(each, selectors.EVENT_READ, number)
    selector.register(sys.stdin, selectors.EVENT_READ, -1)
    print("ready", flush=True)
    while True:
        for key, _ in selector.select(switch.wait_s(time.monotonic())):
            if key.data < 0:
                lines = os.read(key.fd, _MOST_FRAME).decode().splitlines()
                if not lines:
                    return
                switch.change(lines[-1])  # each says all
            else:
                switch.take(os.read(key.fd, _MOST_FRAME), key.data, time.monotonic())
        for to, frame in switch.due(time.monotonic()):
            try:
                sockets[to].send(frame)
            except OSError:  # the interface is not up, or its queue is full: the frame is lost
                continue


if __name__ == "__main__":
    main(sys.argv[1:])
