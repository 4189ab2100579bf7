"""Reads a client's credentials from the field Authorization."""

from __future__ import annotations

import base64
import binascii

from tmqp.names import fault_of_name
from tmqp_server.doors.http.messages import BadRequest
from tmqp_server.engine.commands import Credentials

__all__ = ["credentials_of"]


def credentials_of(value: bytes) -> Credentials | None:
    """The credentials in the field Authorization; None if it is empty.

    The user name of the scheme Basic is also the client's name.

    :raises BadRequest: 400 when they are invalid, 401 for any scheme but Bearer and Basic.
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
        raise BadRequest(400, "the field Authorization is invalid")
    raise BadRequest(401, "the scheme of the field Authorization must be Bearer or Basic")
