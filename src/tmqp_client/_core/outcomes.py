"""What the client's machine reports: outcomes, the end of a connection, and counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tmqp.errors import TmqpError
from tmqp.events import MessageReceived
from tmqp.frames import Frame
from tmqp_client._core.inbox import Inbox
from tmqp_client._core.pending import Pending
from tmqp_client.errors import ClientClosed, ClientError, ConnectionLost

__all__ = ["Accepted", "AnyInbox", "Counters", "Lost", "NotRestored", "Outcome", "ended"]


AnyInbox: TypeAlias = Inbox[Frame] | Inbox[MessageReceived]


class Accepted:
    """The server has accepted this client; ``client_id`` is its id from now on (F31)."""

    __slots__ = ("client_id",)

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id


class NotRestored:
    """The server refused on this connection what it had granted on the previous one; ``asked``
    names it.

    ``inboxes`` get no more messages because of it; ``error`` is the reason, which each of them has.
    """

    __slots__ = ("asked", "error", "inboxes")

    def __init__(self, asked: str, error: TmqpError, inboxes: Sequence[AnyInbox]) -> None:
        self.asked = asked
        self.error = error
        self.inboxes = inboxes


class Lost:
    """The connection is over.

    ``reason`` is a slug as in :class:`ConnectionLost`, or ``local`` if this side closed it;
    ``rule`` names the rule that was broken, if one was; ``code`` is the result code of a refusal,
    else 0; ``node_address`` is the address of the server that serves clients, according to the one
    that refused.
    """

    __slots__ = ("code", "message", "node_address", "reason", "rule")

    def __init__(
        self,
        reason: str,
        message: str,
        rule: str = "",
        code: int = 0,
        node_address: str = "",
    ) -> None:
        self.reason = reason
        self.message = message
        self.rule = rule
        self.code = code
        self.node_address = node_address

    def error(self) -> ClientError:
        """Return a new exception for a waiting caller."""
        if self.reason == "local":
            return ClientClosed("the client was closed")
        return ConnectionLost(self.reason, self.message, self.rule)

    def __repr__(self) -> str:
        return f"<Lost {self.reason}: {self.message}>"


def ended(reason: str, fault: Lost | None, greeted: bool) -> Lost:
    """Describe the end of a connection.

    :param reason: the reason that the connection reports.
    :param fault: what went wrong before, if anything did.
    :param greeted: whether the server had accepted this client.
    """
    if fault is not None:
        return Lost(reason, fault.message, fault.rule, fault.code, fault.node_address)
    if reason == "terminated":
        return Lost(reason, "the server ended it (Terminate)")
    if reason == "local":
        return Lost(reason, "closed on this side")
    if reason == "end-of-stream":
        when = "" if greeted else " before it accepted this client"
        return Lost(reason, f"the server closed the connection{when}")
    return Lost(reason, reason)


class Counters:
    """What has happened since the machine was made; see :class:`tmqp_client.ClientStatistics`."""

    __slots__ = (
        "acknowledged",
        "confirmed",
        "connections",
        "delivered",
        "dropped",
        "lapsed",
        "pauses",
        "pushed",
        "refused",
        "resent",
        "timed_out",
        "unclaimed",
        "unmatched_answers",
        "unsent",
    )

    def __init__(self) -> None:
        self.pushed = 0
        self.confirmed = 0
        self.refused = 0
        self.timed_out = 0
        self.delivered = 0
        self.acknowledged = 0
        self.unmatched_answers = 0
        self.unclaimed = 0
        self.dropped = 0
        self.lapsed = 0
        self.pauses = 0
        self.connections = 0
        self.resent = 0
        self.unsent = 0


#: What the machine returns: see its theory of operation.
Outcome: TypeAlias = Pending | AnyInbox | Accepted | NotRestored | Lost
