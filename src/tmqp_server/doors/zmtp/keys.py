"""The CURVE keys of an endpoint: its own, from a file, and that of a server."""

from __future__ import annotations

from collections.abc import Callable

from tmqp_server.doors.zmtp.options import ZmtpOptions
from tmqp_wires.zmtp import CurveKeys
from tmqp_wires.zmtp.config import CURVE
from tmqp_wires.zmtp.keys import key_from, secret_key_in
from tmqp_wires.zmtp.sodium import sodium

__all__ = ["EndpointKeys", "endpoint_keys"]


class EndpointKeys:
    """The keys of one endpoint.

    Attributes: ``serving``, for connections in which it is the CURVE server; ``calling``, for
    connections that it makes as a CURVE client, None if it is the server in these, too.
    """

    def __init__(self, serving: CurveKeys, calling: CurveKeys | None) -> None:
        self.serving = serving
        self.calling = calling


def endpoint_keys(options: ZmtpOptions, read: Callable[[str], str]) -> EndpointKeys | None:
    """The keys that the options name; None with another mechanism.

    :param read: reads the file with a name.
    :raises ValueError: when a file has no key.
    :raises ModuleNotFoundError: when the package for the cryptography is not installed.
    """
    if options.mechanism != CURVE.lower():
        return None
    cryptography = sodium()
    name = options.curve_secret_key_file
    contents = read(name)
    try:
        secret = secret_key_in(contents)
    except ValueError as error:
        raise ValueError(f"curve_secret_key_file: {name}: {error}") from None
    calling: CurveKeys | None = None
    if options.curve_server_key:
        calling = CurveKeys(
            cryptography=cryptography,
            secret_key=secret,
            server_key=key_from(options.curve_server_key),
        )
    return EndpointKeys(CurveKeys(cryptography=cryptography, secret_key=secret), calling)
