"""``Client``: a connected peer; and ``Origin``, the part of it that messages refer to.

``Client`` is the part of a session that messages and delivery handlers see.  A message refers to
the origin of its producer and, while it is in flight, to its consumer; ``alive`` tells whether that
client is still connected, without a look-up.
"""

from __future__ import annotations

__all__ = ["Client", "Origin"]


class Origin:
    """The producer of a message: the part of a session that its messages refer to.

    Messages may wait long after their producer has disconnected, so an origin is small, and the
    name and type are dropped when the session ends.  Otherwise an attacker could leave one message
    of each of many sessions with long names, and only the id counts in the size of a message.
    """

    __slots__ = ("number", "client_id", "name", "client_type", "door", "alive")

    def __init__(
        self, number: int, client_id: str, name: str | None, client_type: str | None, door: str
    ) -> None:
        self.number = number
        self.client_id = client_id
        self.name = name
        self.client_type = client_type
        self.door = door
        self.alive = True

    def end(self) -> None:
        """Note that the producer has disconnected."""
        self.alive = False
        self.name = None
        self.client_type = None

    def __repr__(self) -> str:
        return f"Origin({self.number}, {self.client_id!r})"


class Client:
    """One connected peer; ``alive`` is false after its connection has ended.

    ``number`` is the connection's number, unique in the process; ``client_id`` is the client's id
    in the protocol, never empty.  ``door`` is the name of its protocol.  ``properties`` are further
    properties of the connection information (F29), without the token; None if there are none.
    ``origin`` is the part that its messages refer to.  ``node`` is true for a slave of this server
    (F133).
    """

    __slots__ = (
        "number",
        "client_id",
        "name",
        "client_type",
        "door",
        "properties",
        "authenticated",
        "connected_at",
        "node",
        "host",
        "alive",
        "blocked",
        "full",
        "termed",
        "closely",
        "most",
        "hears_lapses",
        "in_flight",
        "pushed",
        "delivered",
        "acknowledged",
        "negative_acks",
        "ack_timeouts",
        "unknown_acks",
        "answer_bytes",
        "origin",
    )

    def __init__(
        self,
        number: int,
        client_id: str,
        name: str | None,
        client_type: str | None,
        door: str,
        properties: dict[str, str] | None,
        authenticated: bool,
        connected_at: float,
        node: bool = False,
        host: str = "",
    ) -> None:
        self.number = number
        self.client_id = client_id
        self.name = name
        self.client_type = client_type
        self.door = door
        self.properties = properties
        self.authenticated = authenticated
        #: Monotonic seconds.
        self.connected_at = connected_at
        #: It is another server of the cluster, on the machine of this name.
        self.node = node
        self.host = host
        self.alive = True
        #: Its outbound buffer is full; Block and Unblock set this.
        self.blocked = False
        #: It has as many unanswered deliveries as the limits allow.
        self.full = False
        #: It has, or had, a subscription with terms.
        self.termed = False
        #: It is full or has terms: its answers need further handling.
        self.closely = False
        #: From so many deliveries in flight on, each further one must be examined; 0 until that is
        #: known.
        self.most = 0
        #: It is notified when it loses a delivery (``Lapsed``).
        self.hears_lapses = False
        #: Deliveries sent to it whose acknowledgement is awaited.
        self.in_flight = 0
        self.pushed = 0
        #: Deliveries to it, except those that went to a whole audience (see ``Audience``).
        self.delivered = 0
        self.acknowledged = 0
        self.negative_acks = 0
        self.ack_timeouts = 0
        #: Acknowledgements of messages that were not in flight to it: ignored, and counted here
        #: (F95).
        self.unknown_acks = 0
        #: Bytes of other clients' answers sent to it since it was blocked, see ``direct.py``.
        self.answer_bytes = 0
        self.origin = Origin(number, client_id, name, client_type, door)

    def __repr__(self) -> str:
        return f"Client({self.number}, {self.client_id!r})"
