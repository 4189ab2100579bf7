"""Machines that are only network namespaces, with a network that can be cut between any of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from typing import Final

from tests.interop.building import need, unavailable
from tests.project import ROOT

__all__ = ["Network", "Place"]

#: Of the range for measurements of networks (RFC 2544); the rest of an address is made of the
#: process, so that two tests do not meet.
_RANGE: Final = "198.18"


class Place:
    """A machine.

    Attributes: ``address``; ``enter``, the words before a command that runs it there.
    """

    def __init__(self, address: str, enter: tuple[str, ...]) -> None:
        self.address = address
        self.enter = enter


class Network:
    """Namespaces, and the switch between them; this process is at one of its ports, too.

    Skips the test where namespaces cannot be made.
    """

    def __init__(self, names: Iterable[str], seed: int) -> None:
        need("network namespaces", "ip")
        self._prefix = f"tmqp{os.getpid()}"
        self._ports = {name: number for number, name in enumerate(["", *names])}
        self._made: list[str] = []
        self._switch: subprocess.Popen[str] | None = None
        self._like: dict[str, object] = {"cut": [], "delay_ms": 0.0, "loss": 0.0}
        try:
            self._make(seed)
        except BaseException:
            self.close()
            raise

    def _make(self, seed: int) -> None:
        switch = self._add("switch")
        command = ["ip", "netns", "exec", switch, sys.executable, "-m", "tests.interop.etcd.switch"]
        self._switch = subprocess.Popen(
            [*command, str(len(self._ports)), str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert self._switch.stdout is not None
        if self._switch.stdout.readline() != "ready\n":
            unavailable("network namespaces", "no packets can be switched between them")
        for name, number in self._ports.items():
            end = f"e{number}"
            if name:
                space = self._add(name)
                _ip("-n", switch, "link", "set", end, "netns", space)
                within: tuple[str, ...] = ("-n", space)
                _ip(*within, "link", "set", "lo", "up")
            else:
                own = self._prefix
                _ip("-n", switch, "link", "set", end, "netns", str(os.getpid()), "name", own)
                within, end = (), own
            _ip(*within, "address", "add", f"{self._address(number)}/24", "dev", end)
            _ip(*within, "link", "set", end, "up")

    def _add(self, name: str) -> str:
        space = f"{self._prefix}-{name}"
        try:
            _ip("netns", "add", space)
        except subprocess.CalledProcessError as error:
            unavailable("network namespaces", f"they cannot be made: {error.stderr.strip()}")
        self._made.append(space)
        return space

    def _address(self, number: int) -> str:
        return f"{_RANGE}.{os.getpid() % 250}.{number + 1}"

    def place(self, name: str) -> Place:
        """A machine of it."""
        enter = ("ip", "netns", "exec", f"{self._prefix}-{name}")
        return Place(self._address(self._ports[name]), enter)

    def cut(self, some: Iterable[str], others: Iterable[str]) -> None:
        """Let no packet pass between some machines and others, and mend all other cuts."""
        behind = [self._ports[name] for name in others]
        self._change(cut=[[self._ports[name], other] for name in some for other in behind])

    def disturb(self, delay_ms: float, loss: float) -> None:
        """Delay all packets about so long, and lose this share of them."""
        self._change(delay_ms=delay_ms, loss=loss)

    def mend(self) -> None:
        """Let all packets pass at once."""
        self._change(cut=[], delay_ms=0.0, loss=0.0)

    def _change(self, **like: object) -> None:
        self._like.update(like)
        assert self._switch is not None
        assert self._switch.stdin is not None
        print(json.dumps(self._like), file=self._switch.stdin, flush=True)

    def close(self) -> None:
        """Remove all of it."""
        switch = self._switch
        if switch is not None:
            assert switch.stdin is not None
            assert switch.stdout is not None
            switch.stdin.close()
            switch.wait(30.0)
            switch.stdout.close()
        for space in reversed(self._made):
            _ip("netns", "delete", space)  # and with the switch's, all pairs of interfaces
        self._made.clear()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
