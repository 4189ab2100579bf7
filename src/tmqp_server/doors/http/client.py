"""Who an HTTP client is, and what it has in hand."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections import OrderedDict
from typing import Final, final

from tmqp.hello import ConnectionInformation
from tmqp.names import fault_of_name
from tmqp_server.doors.http.bodies import DOOR_NAME
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.doors.http.messages import BadRequest, HttpRequest
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.port import IdSource
from tmqp_server.engine.commands import Connect, Credentials

__all__ = ["CONNECTED", "STRANGER", "WAITING", "ClientState", "credentials_of"]

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
    ) -> None:
        self.number = number
        self.letters = letters
        self.offset_s = offset_s
        self.limits = limits
        self.new_id = new_id
        self.standing = STRANGER
        self.client_id = ""
        self.confirms: dict[str, object] = {}
        self.deliveries: OrderedDict[tuple[str, int, str], None] = OrderedDict()
        self._credentials = b""

    def is_same(self, request: HttpRequest) -> bool:
        """Whether a request brings the credentials that the connection belongs to."""
        given = request.header(b"authorization") or b""
        return hmac.compare_digest(given, self._credentials)

    def connect(self, request: HttpRequest, door: str) -> Connect:
        """Ask the broker to accept the client.

        :raises BadRequest: for credentials that cannot be read.
        """
        given = request.header(b"authorization") or b""
        credentials = credentials_of(given)
        name = "" if credentials is None else credentials.user
        self._credentials = given
        self.standing = WAITING
        agent = (request.header(b"user-agent") or b"").decode("latin-1")[:_MAX_AGENT_CHARACTERS]
        kept = {"User-Agent": agent} if agent else {}
        who = ConnectionInformation("", name, DOOR_NAME, "", kept)
        return Connect(
            self.number,
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


def credentials_of(value: bytes) -> Credentials | None:
    """What the field Authorization shows; None where it is empty.

    The user of the scheme Basic is the client's name as well.

    :raises BadRequest: when they cannot be read.
    """
    if not value:
        return None
    scheme, _, rest = value.partition(b" ")
    rest = rest.strip()
    kind = scheme.lower()
    try:
        if kind == b"bearer" and rest:
            return Credentials("token", rest.decode("ascii"))
        if kind == b"basic":
            user, colon, secret = base64.b64decode(rest, validate=True).partition(b":")
            name = user.decode("utf-8")
            if colon and not fault_of_name(name):
                return Credentials("password", secret.decode("utf-8"), name)
    except (binascii.Error, UnicodeDecodeError):
        pass
    if kind in (b"basic", b"bearer"):
        raise BadRequest(400, "the field Authorization cannot be read")
    raise BadRequest(401, "the scheme of the field Authorization must be Bearer or Basic")
