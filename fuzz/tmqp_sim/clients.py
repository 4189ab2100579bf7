"""What all simulated clients have in common: a real client machine, driven in virtual time.

Theory of operation.  A client does with its machine what the library's session does over sockets:
it feeds what it reads, sends what is queued as far as there is room, keeps the machine's deadlines,
and stops reading while the machine says so.  When the connection is lost it comes back after a
while, with the same machine (which remembers what was joined), unless it *crashes*: then it comes
back with a new one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, cast

from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp_client._core.inbox import Inbox
from tmqp_client._core.machine import ClientMachine
from tmqp_client._core.outcomes import Accepted, Lost, NotRestored, Outcome
from tmqp_client._core.pending import Pending
from tmqp_client.config import ClientLimits
from tmqp_sim.network import Broken, End, Link
from tmqp_sim.stage import Stage
from tmqp_sim.web_socket import speak_through_web_socket
from tmqp_sim.world import Violation

__all__ = ["FORGERS", "SimClient"]

#: How the names of those begin who answer what nobody asked them.
FORGERS: Final = "forger-"

#: What a closing client gives its last bytes.
CLOSE_S: Final = 2.0
#: How much later than its deadline an answer may be settled.
SETTLE_SLACK_S: Final = 0.01
#: Ways in which the server may seem to break the protocol when it has gone or is suspended.
_HARMLESS: Final = ("handshake-timeout", "torn")


class _Told:
    """Stands in a pending answer that has been settled."""

    def settled(self, pending: Pending) -> None:
        """Nobody calls this."""


_TOLD: Final = _Told()


class SimClient:
    """One client.

    Subclasses say what it does once it is accepted (:meth:`begin`), with what is settled
    (:meth:`settled`) and with what arrives (:meth:`arrived`).
    """

    def __init__(self, simulation: Stage, name: str, limits: ClientLimits) -> None:
        self.simulation = simulation
        self.world = simulation.world
        self.name = name
        self.limits = limits
        self.random = self.world.child(name)
        self.end: End | None = None
        #: Counts connections, so that what belongs to an earlier one is known.
        self.connection = 0
        self.retired = False
        #: Its connections are WebSockets.
        self.by_web_socket = False
        self.unsent = b""
        self._due = math.inf
        self._ids = 0
        self._closing = False
        self.machine = self._new_machine()

    def _new_machine(self) -> ClientMachine:
        information = ConnectionInformation(self.name, self.name, type(self).__name__)
        return ClientMachine(information, self.limits, self._new_id)

    def _new_id(self) -> str:
        self._ids += 1
        return f"{self.name}-{self._ids}"

    # -- what subclasses do ---------------------------------------------------------------------

    def begin(self) -> None:
        """The server accepted."""

    def settled(self, pending: Pending) -> None:
        """Something asked is settled."""

    def not_restored(self, outcome: NotRestored) -> None:
        """What was granted before is refused now."""
        raise Violation("client", f"{self.name} had nothing to restore: {outcome.asked}")

    def arrived(self, inbox: Inbox[Frame]) -> None:
        """Something is in an inbox."""

    def lost(self) -> None:
        """The connection is over."""

    def forgets(self) -> None:
        """The client crashed: what it had only in memory is gone."""

    # -- its life -------------------------------------------------------------------------------

    @property
    def usable(self) -> bool:
        """Whether messages flow."""
        return self.end is not None and self.machine.accepted and not self._closing

    @property
    def link(self) -> Link:
        """The link it is connected by."""
        assert self.end is not None
        return self.end.link

    def connect(self) -> None:
        """Open a connection, if there is none."""
        if self.end is not None or self.retired:
            return
        link = self.simulation.network.open()
        self.connection += 1
        end = speak_through_web_socket(link, self.name) if self.by_web_socket else link.client
        self.end = end
        end.owner = self
        self._closing = False
        self.unsent = b""
        self._due = math.inf
        self.machine.start(self.world.now)
        self.world.note("connects", self.name, "link", link.number)
        self.world.after(self.random.random() * 0.02, self.simulation.server.accept, link)
        self.flush()

    def reconnect_soon(self) -> None:
        """Come back after a while."""
        if not self.retired:
            self.world.after(0.05 + self.random.random() * 0.6, self.connect)

    def leave(self, politely: bool) -> None:
        """End the connection from this side; it comes back as after any loss."""
        if self.end is None or self._closing:
            return
        if not politely:
            link = self.link
            self._detach()
            link.cut(0.0, self.random.random() * 0.3, "the client is gone")
            self._settle(self.machine.fail("left"))
            return
        self.world.mark("client closed politely")
        self._settle(self.machine.close())

    def crash(self, silently: bool) -> None:
        """The process is gone; the server is told, or not."""
        if self.end is None:
            return
        self.world.note("crash", self.name)
        self.world.mark("client crashed silently" if silently else "client crashed")
        link = self.link
        self._detach()
        if silently:
            link.dead = True
        else:
            link.cut(0.0, self.random.random() * 0.3, "the client is gone")
        self.machine = self._new_machine()
        self._due = math.inf
        self.forgets()
        self.reconnect_soon()

    def retire(self) -> None:
        """Go for good."""
        self.retired = True
        self.leave(politely=True)

    def _detach(self) -> None:
        assert self.end is not None
        self.end.closed = True
        self.end = None
        self.unsent = b""

    # -- bytes ----------------------------------------------------------------------------------

    def readable(self) -> None:
        """Read all that is there, or as much as the machine wants."""
        while self.end is not None:
            if self._closing:
                data = self.end.read()
                if data is None:
                    return
                if not data:  # the other side has closed too, and reads no more
                    self._gone()
                    return
                continue
            if self.machine.must_pause(len(self.unsent)):
                self.machine.pause(self.world.now)
                self.world.mark("client paused reading")
                self.keep_time()
                return
            data = self.end.read()
            if data is None:
                return
            if data:
                self._settle(self.machine.receive(data, self.world.now))
            else:
                self._settle(self.machine.receive_eof(self.world.now))
            self.flush()
        self.keep_time()

    def read_on(self) -> None:
        """Something changed that may have kept it from reading."""
        if self.end is not None and not self.machine.must_pause(len(self.unsent)):
            self.machine.resume(self.world.now)
            self.readable()
            self.keep_time()

    def writable(self) -> None:
        """There is room."""
        self.flush()
        if self.end is not None and not self._closing:
            self.read_on()

    def broken(self, reason: str) -> None:
        """The connection broke."""
        if self.end is None:
            return
        if self._closing:
            self._gone()
            return
        self._settle(self.machine.fail(reason))

    def flush(self) -> None:
        """Send what is queued as far as there is room."""
        while self.end is not None:
            if not self.unsent:
                self.unsent = self.machine.data_to_send()
                if not self.unsent:
                    break
            try:
                sent = self.end.send(self.unsent)
            except Broken:
                break
            self.unsent = self.unsent[sent:]
            if self.unsent:
                break
        if self._closing and self.end is not None and not self.unsent:
            self._gone()
        else:
            self.keep_time()

    def _gone(self) -> None:
        if self.end is not None:
            self.end.close()
            self.end = None
            self._closing = False
            self.reconnect_soon()

    # -- time -----------------------------------------------------------------------------------

    def keep_time(self) -> None:
        """See to it that the machine's next deadline is kept."""
        due = self.machine.next_deadline()
        if due is not None and due < self._due:
            self._due = due
            self.world.at(due, self._deadline, due)

    def _deadline(self, due: float) -> None:
        if due != self._due:
            return
        self._due = math.inf
        if self.end is None or self._closing:
            return
        self._settle(self.machine.on_deadline(self.world.now))
        self.flush()

    # -- outcomes -------------------------------------------------------------------------------

    def _settle(self, outcomes: list[Outcome]) -> None:
        told: list[Inbox[Frame]] = []
        for outcome in outcomes:
            if isinstance(outcome, Pending):
                self._check_settled(outcome)
                self.settled(outcome)
            elif isinstance(outcome, Accepted):
                self.world.note("accepted", self.name)
                # A WebSocket is pinged by its own clock as well.
                self.link.greeted = not self.by_web_socket
                self.begin()
            elif isinstance(outcome, Lost):
                self._end_of_connection(outcome)
            elif isinstance(outcome, NotRestored):
                self.not_restored(outcome)
            else:
                outcome.fresh = False
                told.append(cast("Inbox[Frame]", outcome))  # nobody listens to a board here
        for inbox in told:
            self.arrived(inbox)

    def _check_settled(self, pending: Pending) -> None:
        """An answer comes at most once, and not after it was given up."""
        if pending.waiter is _TOLD:
            raise Violation("client", f"{self.name}: settled twice: {pending!r}")
        pending.waiter = _TOLD
        answer = pending.answer
        # Forgers consume nothing, so they answer for no push; only forgers ask a forger.
        if (
            answer is not None
            and answer.source.startswith(FORGERS)
            and not self.name.startswith(FORGERS)
        ):
            text = f"{self.name}: {pending!r} is settled by {answer.source}"
            raise Violation("forgery", text)
        if self.world.now > pending.deadline + SETTLE_SLACK_S:
            raise Violation("client", f"{self.name}: settled late: {pending!r}")

    def _end_of_connection(self, lost: Lost) -> None:
        self.world.note("lost", self.name, lost.reason, lost.message)
        if lost.reason == "local":
            self._closing = True
            self.world.after(CLOSE_S, self._close_at_last, self.connection)
            self.lost()
            self.flush()
            return
        if lost.reason == "violation" and lost.rule not in _HARMLESS:
            raise Violation("client", f"{self.name}: the server broke the protocol: {lost!r}")
        if self.end is not None:
            self.flush()
        if self.end is not None:
            self.end.close()
            self.end = None
        self.unsent = b""
        self.lost()
        self.reconnect_soon()

    def _close_at_last(self, connection: int) -> None:
        if self._closing and self.connection == connection:
            self._gone()

    def later(self, delay_s: float, call: Callable[[], None]) -> None:
        """Do something on this connection after a while, if it still stands then."""
        connection = self.connection
        self.world.after(delay_s, self._if_same, connection, call)

    def _if_same(self, connection: int, call: Callable[[], None]) -> None:
        if self.connection == connection and self.usable:
            call()
