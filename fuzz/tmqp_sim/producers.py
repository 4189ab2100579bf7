"""The producers: honest ones, which send again until they are notified that all is well, and
careless ones, which never ask; those who push in bulk write many messages at once.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Final
from zlib import crc32

from tmqp.constants import HEADER_VALUE_YES, HeaderName
from tmqp.errors import LocalProtocolError
from tmqp.extensions import (
    HEADER_DELAY,
    HEADER_GROUP_KEY,
    HEADER_MESSAGE_ID,
    HEADER_PRIORITY,
    HEADER_RECEIVERS,
    HEADER_WAIT,
    OP_CANCEL_MESSAGE,
    OP_REMOVE_MESSAGE,
)
from tmqp_client._core.pending import Kind, Pending
from tmqp_client._core.requests import Request
from tmqp_client.config import ClientLimits
from tmqp_client.errors import ClientError, NegativeAcknowledge, OperationFailed, OperationTimeout
from tmqp_sim.burials import FORGED
from tmqp_sim.clients import SimClient
from tmqp_sim.history import Sent
from tmqp_sim.stage import Stage

__all__ = ["BulkProducer", "Producer"]

#: How long an honest producer waits before it tries a refused message again.
RETRY_S: Final = 0.4

#: How often a message is refused before its producer waits longer, twice as long each time.
_PROMPT_RETRIES: Final = 16

#: The most times that the wait is doubled.
_MOST_DOUBLINGS: Final = 6
#: How long it waits for the first confirm; twice as long each time, or its repetitions alone could
#: keep a slow consumer busy for ever.
_PATIENCE_S: Final = 2.0
_LONGEST_PATIENCE_S: Final = 16.0
#: One message of so many waits for room in a queue that may be full, so many milliseconds.
_WAITS: Final = 4
_WAIT_MS: Final = "300"


class Producer(SimClient):
    """Sends its messages in order, each until it is confirmed.

    :param window: messages that may be unconfirmed at one time.
    """

    def __init__(self, simulation: Stage, name: str, limits: ClientLimits, window: int) -> None:
        super().__init__(simulation, name, limits)
        self.window = window
        #: To be sent, in order; what is refused or lost comes back to the front.
        self.ready: deque[Sent] = deque()
        self.under_way: dict[str, Sent] = {}
        self._waiting = False

    @property
    def owes(self) -> int:
        """Messages that are not confirmed."""
        return len(self.ready) + len(self.under_way)

    def give(self, sent: Sent) -> None:
        """A message to send has come up."""
        self.ready.append(sent)
        self.work()

    def begin(self) -> None:
        """Go on where the last connection ended."""
        self.work()

    def headers_of(self, sent: Sent) -> tuple[tuple[str, str], ...]:
        """The headers of a message, such as its kind, where consumers choose by it."""
        headers: tuple[tuple[str, str], ...] = ()
        if sent.delay_s:
            headers = ((HEADER_DELAY, str(round(sent.delay_s * 1_000))),)
        if kinds := sent.place.kinds:
            headers = (*headers, ("Kind", f"k{crc32(sent.uid.encode()) % kinds}"))
        if groups := sent.place.groups:
            group = crc32(f"{sent.uid}/key".encode()) % (groups + 1)
            if group:  # the others have none
                headers = (*headers, (HEADER_GROUP_KEY, f"g{group}"))
        if sent.priority >= 0:
            headers = (*headers, (HEADER_PRIORITY, str(sent.priority)))
        if sent.place.dead_letter is not None and crc32(sent.uid.encode()) % 3 == 0:
            headers = (*headers, *FORGED)
        can_be_full = sent.place.message_limit or sent.place.disk_limit_bytes
        if can_be_full and not sent.counts and crc32(f"{sent.uid}/room".encode()) % _WAITS == 0:
            headers = (*headers, (HEADER_WAIT, _WAIT_MS))
        return (*headers, (HEADER_RECEIVERS, HEADER_VALUE_YES)) if sent.counts else headers

    def _cancel(self, sent: Sent) -> None:
        """Take a message back that may not be due yet, or waits; nobody is owed it any more."""
        if not self.usable:
            return
        place = sent.place
        headers = ((HeaderName.QUEUE_ID.value, str(place.queue_id)), (HEADER_MESSAGE_ID, sent.uid))
        operation = OP_CANCEL_MESSAGE if sent.delay_s else OP_REMOVE_MESSAGE
        request = Request(operation, "cancel", place.channel, headers)
        with suppress(ClientError, LocalProtocolError):
            self.machine.request(request, self.world.now)
            self.simulation.history.excused[sent.uid] = None
            self.flush()

    def work(self) -> None:
        """Push what may be pushed."""
        if not self.usable:
            return
        machine = self.machine
        while self.ready and len(self.under_way) < self.window and not machine.full:
            sent = self.ready[0]
            place = sent.place
            try:
                machine.push(
                    place.channel,
                    place.queue_id,
                    sent.payload(),
                    self.headers_of(sent),
                    self.world.now,
                    confirm=sent.asks,
                    high_priority=sent.high,
                    message_id=sent.uid,
                    timeout_s=min(_PATIENCE_S * 2**sent.pushes, _LONGEST_PATIENCE_S),
                )
            except LocalProtocolError:
                return  # the same message is in progress still
            self.ready.popleft()
            sent.pushes += 1
            if sent.pushes > 1:
                self.world.mark("pushed again")
            if sent.asks:
                self.under_way[sent.uid] = sent
        self.flush()

    def settled(self, pending: Pending) -> None:
        """Told, refused, or not told in time."""
        if pending.kind != Kind.PUSH:
            return
        sent = self.under_way.pop(pending.message_id, None)
        if sent is None:
            return
        error = pending.error
        if error is None:
            sent.confirms += 1
            sent.last_life = self.link.life
            self.world.note("confirmed", self.name, sent.uid)
            if sent.cancel_s >= 0:
                self.world.after(sent.cancel_s, self._cancel, sent)
            self.work()
            return
        if isinstance(error, (NegativeAcknowledge, OperationFailed)):
            sent.refusals += 1
            self.world.mark("push refused")
            self.world.note("refused", self.name, sent.uid, str(error))
        elif isinstance(error, OperationTimeout):
            self.world.mark("confirm timed out")
        else:
            self.world.mark("confirm lost with the connection")
        self.ready.appendleft(sent)
        self.try_later()

    def try_later(self) -> None:
        """Once for all that is refused or not confirmed meanwhile.

        If each refusal had all of it pushed again there would be ever more of them (seed 1010132).
        And what a queue takes in but cannot save, it refuses each time and has once more: if its
        producer did not wait longer and longer, it would grow for ever (seed 60798).
        """
        if not self._waiting:
            self._waiting = True
            refusals = max((sent.refusals for sent in self.ready), default=0)
            doublings = min(max(0, refusals - _PROMPT_RETRIES), _MOST_DOUBLINGS)
            self.world.after(RETRY_S * 2**doublings, self._try_again)

    def _try_again(self) -> None:
        self._waiting = False
        self.work()

    def forgets(self) -> None:
        """An honest producer keeps what it has to send in safety."""
        for sent in reversed(list(self.under_way.values())):
            self.ready.appendleft(sent)
        self.under_way.clear()


class BulkProducer(Producer):
    """Gathers what comes up for a moment, and writes all of it together.

    :param linger_s: how long it gathers.
    """

    def __init__(
        self,
        simulation: Stage,
        name: str,
        limits: ClientLimits,
        window: int,
        linger_s: float,
        traces: bool,
    ) -> None:
        super().__init__(simulation, name, limits, window)
        self.linger_s = linger_s
        #: Its messages have headers, which say nothing to the server.
        self.traces = traces
        self._gathering = False

    def headers_of(self, sent: Sent) -> tuple[tuple[str, str], ...]:
        """The headers of a message."""
        traces = (("Trace", sent.uid), ("Sort", "bulk")) if self.traces else ()
        return traces + super().headers_of(sent)

    def work(self) -> None:
        """Push what may be pushed, soon."""
        if not self._gathering:
            self._gathering = True
            self.world.after(self.linger_s, self._push_all)

    def _push_all(self) -> None:
        self._gathering = False
        super().work()
