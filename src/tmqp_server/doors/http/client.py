"""An HTTP client, and the messages in flight to it."""

from __future__ import annotations

import hashlib
import hmac
from collections import OrderedDict
from typing import Final, final

from tmqp.hello import ConnectionInformation
from tmqp_server.doors.http.bodies import DOOR_NAME
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.doors.http.manner import Manner
from tmqp_server.doors.http.messages import HttpRequest
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.port import IdSource
from tmqp_server.engine.commands import Connect, Credentials

__all__ = ["CONNECTED", "STRANGER", "WAITING", "ClientState"]

#: Nothing was asked about it; the broker was asked; the broker has accepted it.
STRANGER: Final = 0
WAITING: Final = 1
CONNECTED: Final = 2

_MAX_AGENT_CHARACTERS: Final = 200


@final
class ClientState:
    """What a session knows of its client.

    A connection belongs to one client: its first request that needs rights decides with its
    credentials who that is, and later requests must bring the same ones.

    Attributes: ``standing``, ``client_id`` once it is connected; ``confirms``, who waits for the
    confirm of which message; ``offset_s``, what to add to the engine's time for Unix time;
    ``deliveries``, the messages it has not acknowledged, by channel, queue and id; ``letters``,
    who reads messages of other doors.
    """

    __slots__ = (
        "_credentials",
        "_manner",
        "client_id",
        "confirms",
        "deliveries",
        "letters",
        "limits",
        "new_id",
        "number",
        "offset_s",
        "standing",
    )

    def __init__(
        self,
        number: int,
        limits: HttpLimits,
        new_id: IdSource,
        letters: Letters,
        offset_s: float = 0.0,
        manner: Manner | None = None,
    ) -> None:
        self.number = number
        self._manner = Manner() if manner is None else manner
        self.letters = letters
        self.offset_s = offset_s
        self.limits = limits
        self.new_id = new_id
        self.standing = STRANGER
        self.client_id = ""
        self.confirms: dict[str, object] = {}
        self.deliveries: OrderedDict[tuple[str, int, str], None] = OrderedDict()
        self._credentials = b""

    @property
    def proof(self) -> bytes:
        """A digest of what the client has shown, which tells clients apart."""
        return hashlib.sha256(self._credentials).digest()

    def is_same(self, request: HttpRequest, now: float) -> bool:
        """Whether a request brings the credentials that the connection belongs to.

        :raises BadRequest: for credentials that cannot be read.
        """
        given, _ = self._manner.identify(request, now)
        return hmac.compare_digest(given, self._credentials)

    def connect(self, request: HttpRequest, door: str, now: float) -> Connect:
        """Ask the broker to accept the client.

        :raises BadRequest: for credentials that cannot be read.
        """
        self._credentials, credentials = self._manner.identify(request, now)
        self.standing = WAITING
        return self._introduced(self.number, request, door, credentials)

    def introduce(self, number: int, request: HttpRequest, door: str, now: float) -> Connect:
        """Ask the broker to accept another session of the same client, which has this number.

        :raises BadRequest: for credentials that cannot be read.
        """
        _, credentials = self._manner.identify(request, now)
        return self._introduced(number, request, door, credentials)

    def _introduced(
        self, number: int, request: HttpRequest, door: str, credentials: Credentials | None
    ) -> Connect:
        name = "" if credentials is None else credentials.user
        agent = (request.header(b"user-agent") or b"").decode("latin-1")[:_MAX_AGENT_CHARACTERS]
        kept = {"User-Agent": agent} if agent else {}
        who = ConnectionInformation("", name, DOOR_NAME, "", kept)
        return Connect(
            number,
            None,
            self.new_id(),
            name or None,
            DOOR_NAME,
            door,
            who,
            kept=kept or None,
            credentials=credentials,
            hears_lapses=True,
        )

    def forget(self) -> None:
        """The connection will belong to another client: nothing of this one's is left."""
        self.standing = WAITING
        self.client_id = ""
        self.confirms.clear()
        self.deliveries.clear()

    def hold(self, channel: str, queue_id: int, message_id: str) -> None:
        """A message was given to the client, which is to acknowledge it."""
        key = (channel.lower(), queue_id, message_id)
        self.deliveries[key] = None
        self.deliveries.move_to_end(key)

    def release(self, channel: str, queue_id: int, message_id: str) -> bool:
        """The client answers for a message; False if it does not have it."""
        key = (channel.lower(), queue_id, message_id)
        if key not in self.deliveries:
            return False
        del self.deliveries[key]
        return True
