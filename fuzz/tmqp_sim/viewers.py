"""Those who look into queues, again and again, and take nothing; some for one kind of message."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from tmqp.constants import HeaderName
from tmqp.errors import LocalProtocolError
from tmqp.extensions import HEADER_FILTER, HEADER_FROM, HEADER_LIMIT, OP_BROWSE
from tmqp_client._core.pending import Pending
from tmqp_client._core.requests import Request
from tmqp_client.errors import ClientError
from tmqp_client.reading import peeked_messages
from tmqp_sim.clients import SimClient
from tmqp_sim.world import Violation

__all__ = ["Viewer"]

_PAUSE_S: Final = 0.3
#: How many of the looks into queues with messages of several kinds are for one of these.
_CHOOSES: Final = 0.5


class Viewer(SimClient):
    """Looks into one queue after the other, portion by portion."""

    def begin(self) -> None:
        """Go at it."""
        #: What is asked and not answered, and where it continues.
        self._asked = ""
        self._key = ("", 0)
        self._first = 0
        #: The kind of messages that it looks for; empty for all.
        self._kind = ""
        self._choices = self.world.child(f"{self.name} chooses")
        self.later(_PAUSE_S * self.random.random(), self._look)

    def _look(self) -> None:
        if not self.usable or self._asked:
            return
        if not self._first:
            places = list(self.simulation.places)
            self._key = places[self.random.randrange(len(places))]
            kinds = self.simulation.places[self._key].kinds
            self._kind = ""
            if kinds and self._choices.random() < _CHOOSES:
                self._kind = f"k{self._choices.randrange(kinds)}"
        headers = [
            (HeaderName.QUEUE_ID.value, str(self._key[1])),
            (HEADER_FROM, str(self._first)),
            (HEADER_LIMIT, str(self.random.choice((1, 3, 1_000)))),
        ]
        if self._kind:
            headers.append((HEADER_FILTER, f"kind={self._kind}"))
        request = Request(OP_BROWSE, "look into", self._key[0], tuple(headers))
        with suppress(ClientError, LocalProtocolError):
            self._asked = self.machine.request(request, self.world.now).message_id
            self.flush()

    def settled(self, pending: Pending) -> None:
        """A portion has come, or a refusal.

        :raises Violation: when it shows what nobody sent, or not in its order.
        """
        if pending.message_id != self._asked:
            return
        self._asked = ""
        first, self._first = self._first, 0
        if pending.error is None and pending.answer is not None:
            for message in peeked_messages(pending.answer.payload):
                if message.sequence < first:
                    text = f"{message!r} of {self._key} is shown, {first} was asked for"
                    raise Violation("look", text)
                first = message.sequence + 1
                sent = self.simulation.history.sent.get(message.message_id)
                if sent is None or message.payload != sent.payload():
                    raise Violation("look", f"{message!r} is shown in {self._key}, unsent")
                if self._kind:
                    kind = dict(message.headers).get("Kind")
                    if kind != self._kind:
                        text = f"{message!r} of kind {kind} is shown to who looks for {self._kind}"
                        raise Violation("look", text)
                    self.world.mark("seen: by a filter")
                self._first = first
                self.world.mark(f"seen: {message.state}")
        self.later(_PAUSE_S * self.random.random(), self._look)

    def lost(self) -> None:
        """Nothing is awaited any more."""
        self._asked = ""
        self._first = 0
