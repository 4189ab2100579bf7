"""The connections to lookupds: which exist, and when the next is attempted.

The code that owns the sockets dials what :meth:`Announcer.due` returns, and reports the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, final

from tmqp.backoff import Backoff

__all__ = ["Announcer"]

#: Questions that wait to be asked.
_MAX_QUESTIONS: Final = 10_000


@final
class _Link:
    """The connection to one lookupd."""

    __slots__ = ("busy", "due_s", "failures")

    def __init__(self) -> None:
        self.due_s = 0.0
        self.busy = False
        self.failures = 0


@final
class Announcer:
    """The connections of one server to its lookupds.

    :param backoff: how long it waits after failures.
    :param chance: returns a random number from 0 up to 1.

    Attributes: ``removed``, addresses whose connections must end; ``questions``, new topics to ask
    about, with the HTTP addresses to ask.  Both stay until they are taken.
    """

    def __init__(self, backoff: Backoff, chance: Callable[[], float]) -> None:
        self._backoff = backoff
        self._chance = chance
        self._links: dict[str, _Link] = {}
        self.removed: list[str] = []
        self.questions: list[tuple[str, bytes]] = []
        self._woken: Callable[[], None] | None = None

    def wake(self, woken: Callable[[], None]) -> None:
        """Set the function that is called when there is a new question."""
        self._woken = woken

    def ask(self, address: str, topic: bytes) -> None:
        """Queue the question which channels a new topic has; dropped if too many questions wait."""
        if len(self.questions) < _MAX_QUESTIONS:
            self.questions.append((address, topic))
            if self._woken is not None:
                self._woken()

    def set(self, addresses: Sequence[str]) -> None:
        """Set the addresses to connect to; other connections must end."""
        for address in list(self._links):
            if address not in addresses and self._links.pop(address).busy:
                self.removed.append(address)
        for address in addresses:
            if address in self.removed:
                self.removed.remove(address)
                self._links.setdefault(address, _Link()).busy = True
            self._links.setdefault(address, _Link())

    def due(self, now: float) -> list[str]:
        """The addresses to dial now; they count as being dialled from now on."""
        found = [
            address for address, link in self._links.items() if not link.busy and link.due_s <= now
        ]
        for address in found:
            self._links[address].busy = True
        return found

    def next_due(self) -> float:
        """When to dial the next address; infinity if there is none."""
        return min((link.due_s for link in self._links.values() if not link.busy), default=math.inf)

    def accepted(self, address: str) -> None:
        """Note that a lookupd has answered."""
        link = self._links.get(address)
        if link is not None:
            link.failures = 0

    def ended(self, address: str, now: float) -> None:
        """Note that a connection failed or ended; the address is dialled again later."""
        link = self._links.get(address)
        if link is None:
            return
        link.busy = False
        link.failures += 1
        link.due_s = now + self._backoff.delay_s(link.failures, self._chance())
