"""A consumer that changes the terms of its subscription, and grants credit, while it is there.

What the broker makes of the terms is judged by the ledger (``promises.py``).  What comes of a
credit is counted here as well, where it arrives: behind the answer to a grant no more is delivered
than was granted, whatever else was granted since.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final, Protocol

from tmqp.extensions import PUT_BACK_WORD_END, PUT_BACK_WORD_FRONT, RETURN_WORD_TIMEOUT
from tmqp.frames import Frame
from tmqp_client._core import requests
from tmqp_client._core.inbox import Inbox
from tmqp_client._core.machine import ClientMachine
from tmqp_client._core.pending import Pending
from tmqp_client.errors import ClientError
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation, World

__all__ = ["Tuner"]

_ANY: Final = -1
#: Credits and windows that are asked for.
_CREDITS: Final = (0, 1, 3, 10, _ANY)
_WINDOWS: Final = (0, 1, 2, 5, _ANY)
_TIMEOUTS_S: Final = (0.0, 0.4, 8.0)
_RETURNS: Final = (RETURN_WORD_TIMEOUT, PUT_BACK_WORD_FRONT, PUT_BACK_WORD_END)
#: What keeps no message waiting: the terms in the end.
_OPEN: Final = requests.terms_headers(_ANY, None, 0.0, RETURN_WORD_TIMEOUT, 0, exclusive=False)


class _Consumer(Protocol):
    """Whose subscription it is."""

    simulation: Stage
    world: World
    random: Random
    name: str
    channel: str
    machine: ClientMachine
    inbox: Inbox[Frame]
    joined: bool

    def later(self, delay_s: float, call: Callable[[], None]) -> None: ...

    def flush(self) -> None: ...


class Tuner:
    """The terms of one consumer.

    :param every_s: how often it changes something, about.
    """

    def __init__(self, client: _Consumer, every_s: float) -> None:
        self._client = client
        self._every_s = every_s
        self._random = client.world.child(f"{client.name} retunes")
        #: What is asked and not answered: a credit, or None for terms.
        self._asked: dict[str, int | None] = {}
        #: How many more deliveries may be taken; None while there is no bound to be sure of.
        self._allowed: int | None = None
        #: What has to be answered until nothing keeps a message waiting any more.
        self._opening: set[str] = set()
        self._is_open = False

    def begin(self) -> None:
        """A new connection: what is joined is joined again with the terms as they were."""
        self._asked.clear()
        self._opening.clear()
        self._allowed = None
        self._is_open = False
        self._later()

    def _later(self) -> None:
        self._client.later(self._every_s * (0.2 + self._random.random()), self._retune)

    def _retune(self) -> None:
        client = self._client
        if client.joined and client.simulation.healed:
            self._open()
        elif client.joined:
            self._change()
        if not self._is_open:
            self._later()

    def _open(self) -> None:
        """Let everything come, and make sure of it."""
        if self._opening:
            return
        self._opening = {
            self._ask(requests.set_terms(self._client.channel, _OPEN), None),
            self._ask(requests.grant(self._client.channel, _ANY), _ANY),
        }

    def _change(self) -> None:
        draw = self._random
        channel = self._client.channel
        if draw.random() < 0.5:
            credit = draw.choice(_CREDITS)
            self._ask(requests.grant(channel, credit), credit)
            return
        terms = requests.terms_headers(
            draw.choice((None, *_WINDOWS)),
            None,
            draw.choice((None, *_TIMEOUTS_S)),
            draw.choice((None, *_RETURNS)),
            draw.choice((None, 0, 1)),
            exclusive=draw.choice((None, None, False, True)),
        )
        if terms:
            self._ask(requests.set_terms(channel, terms), None)

    def _ask(self, request: requests.Request, credit: int | None) -> str:
        try:
            pending = self._client.machine.request(request, self._client.world.now)
        except ClientError:
            return ""
        self._asked[pending.message_id] = credit
        if self._allowed is not None and credit is not None:
            # It may hold at once, for what was granted before and did not come yet.
            self._allowed = None if credit < 0 else self._allowed + credit
        self._client.flush()
        return pending.message_id

    # -- what comes of it -----------------------------------------------------------------------

    def settled(self, pending: Pending) -> bool:
        """An answer, or none; False if this is about something else."""
        uid = pending.message_id
        if uid not in self._asked:
            return False
        credit = self._asked.pop(uid)
        if pending.error is None:
            self._confirmed(credit)
        elif uid in self._opening:
            self._opening.clear()  # all of it is asked for again
        if uid in self._opening:
            self._opening.discard(uid)
            self._is_open = not self._opening
        return True

    def _confirmed(self, credit: int | None) -> None:
        if credit is None:
            self._client.world.mark("terms changed by their consumer")
            return
        self._client.world.mark("credit granted by a consumer")
        later = [each for each in self._asked.values() if each is not None]
        if credit < 0 or any(each < 0 for each in later):
            self._allowed = None
        else:
            # What came before the answer may still be in the inbox.
            self._allowed = credit + sum(later) + len(self._client.inbox)

    def takes(self) -> None:
        """A delivery is taken.

        :raises Violation: when it is one too many.
        """
        if self._allowed is None:
            return
        self._allowed -= 1
        if self._allowed < 0:
            raise Violation("credit", f"{self._client.name} gets more than it has granted")
