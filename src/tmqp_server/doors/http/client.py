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

#: The broker was not asked about the client; was asked; has accepted it.
STRANGER: Final = 0
WAITING: Final = 1
CONNECTED: Final = 2

_MAX_AGENT_CHARACTERS: Final = 200


@final
class ClientState:
    """A session's knowledge about its client.

    A connection belongs to one client.  The credentials of the first request that needs rights
    identify the client, and later requests must have the same credentials.

    Attributes: ``standing``, one of ``STRANGER``, ``WAITING`` and ``CONNECTED``; ``client_id``,
    empty before it is connected; ``confirms``, by message id, the handler that waits for the
    confirm; ``offset_s``, seconds to add to the engine's time for Unix time; ``deliveries``, the
    messages that it has not acknowledged, by channel, queue and id; ``letters``, reads messages of
    other doors.
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
        """A digest of the client's credentials, to distinguish clients."""
        return hashlib.sha256(self._credentials).digest()

    def is_same(self, request: HttpRequest, now: float) -> bool:
        """Whether a request has the credentials of the connection's client.

        :raises BadRequest: when the credentials cannot be read.
        """
        given, _ = self._manner.identify(request, now)
        return hmac.compare_digest(given, self._credentials)

    def connect(self, request: HttpRequest, door: str, now: float) -> Connect:
        """Ask the broker to accept the client.

        :raises BadRequest: when the credentials cannot be read.
        """
        self._credentials, credentials = self._manner.identify(request, now)
        self.standing = WAITING
        return self._introduced(self.number, request, door, credentials)

    def introduce(self, number: int, request: HttpRequest, door: str, now: float) -> Connect:
        """Ask the broker to accept another session of the same client.

        :param number: the other session's number in the engine.

        :raises BadRequest: when the credentials cannot be read.
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
        """Forget this client, because the connection will belong to another one."""
        self.standing = WAITING
        self.client_id = ""
        self.confirms.clear()
        self.deliveries.clear()

    def hold(self, channel: str, queue_id: int, message_id: str) -> None:
        """Note a message that the client must acknowledge."""
        key = (channel.lower(), queue_id, message_id)
        self.deliveries[key] = None
        self.deliveries.move_to_end(key)

    def release(self, channel: str, queue_id: int, message_id: str) -> bool:
        """Remove a message that is no longer in flight; False if the client does not have it."""
        key = (channel.lower(), queue_id, message_id)
        if key not in self.deliveries:
            return False
        del self.deliveries[key]
        return True
