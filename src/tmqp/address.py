"""Addresses of TMQP servers, for clients and servers.

==============================  ==================================================
``tmq://host:port/path``        TCP; the path goes into the connection information
``tmqs://host:port/path``       TCP with TLS
``unix:/path/to/socket``        a Unix domain socket
``host:port``, ``host``         short for ``tmq://``; the port defaults to 2622
==============================  ==================================================

IPv6 addresses are in brackets: ``tmq://[::1]:2622``.
"""

from __future__ import annotations

from tmqp.errors import LocalProtocolError

__all__ = ["DEFAULT_PORT", "Address", "parse_address", "parse_addresses"]

#: The specification names no port; this is the default of the protocol's clients.
DEFAULT_PORT = 2622

_LOOPBACK_NAMES = ("localhost", "::1")


class Address:
    """The address on which a server listens, or to which a client connects.

    It has ``host`` and ``port`` for TCP (``socket_path`` is empty), or ``socket_path`` for a Unix
    socket; ``tls`` says whether TLS is used, and ``path`` is sent in the connection information
    (F27).
    """

    __slots__ = ("host", "path", "port", "socket_path", "tls")

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
        *,
        socket_path: str = "",
        tls: bool = False,
        path: str = "/",
    ) -> None:
        self.host = host
        self.port = port
        self.socket_path = socket_path
        self.tls = tls
        self.path = path

    @property
    def is_local(self) -> bool:
        """Whether only programs on this machine can reach it: a Unix socket or a loopback
        address."""
        if self.socket_path:
            return True
        return self.host.lower() in _LOOPBACK_NAMES or self.host.startswith("127.")

    def __str__(self) -> str:
        if self.socket_path:
            return f"unix:{self.socket_path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'tmqs' if self.tls else 'tmq'}://{host}:{self.port}"

    def __repr__(self) -> str:
        return f"<Address {self}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Address):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __hash__(self) -> int:
        return hash((self.host, self.port, self.socket_path, self.tls, self.path))


def parse_address(text: str) -> Address:
    """Read an address in one of the forms of the table above.

    :raises LocalProtocolError: if it is invalid, with the reason.
    """
    text = text.strip()
    if text.startswith("unix:"):
        path = text.removeprefix("unix:").removeprefix("//")
        if not path:
            raise LocalProtocolError("an address unix:PATH needs the path of the socket")
        return Address(socket_path=path)
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "tmq", text
    if scheme.lower() not in ("tmq", "tmqs"):
        raise LocalProtocolError(f"{text!r}: an address must begin with tmq://, tmqs:// or unix:")
    authority, slash, path = rest.partition("/")
    if " " in path or ":" in path:
        raise LocalProtocolError(f"{text!r}: the path must not contain a space or a colon")
    host, port = _split_port(text, authority)
    return Address(host, port, tls=scheme.lower() == "tmqs", path=f"/{path}" if slash else "/")


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Read one address or several, separated by commas: ``tmq://a:2622,tmq://b:2622``.

    The path of a Unix socket may contain commas if it is the only address.

    :raises LocalProtocolError: if one is invalid, with the reason.
    """
    text = text.strip()
    if text.startswith("unix:") and ",unix:" not in text and ",tmq" not in text:
        return (parse_address(text),)
    return tuple([parse_address(each) for each in text.split(",")])


def _split_port(text: str, authority: str) -> tuple[str, int]:
    if authority.startswith("["):
        host, bracket, after = authority[1:].partition("]")
        if not bracket or (after and not after.startswith(":")):
            raise LocalProtocolError(f"{text!r}: write an IPv6 address as [::1]:{DEFAULT_PORT}")
        port_text = after[1:]
    elif authority.count(":") > 1:
        raise LocalProtocolError(f"{text!r}: write an IPv6 address as [::1]:{DEFAULT_PORT}")
    else:
        host, _, port_text = authority.partition(":")
    if not host:
        raise LocalProtocolError(f"{text!r}: the host is missing")
    if not port_text:
        return host, DEFAULT_PORT
    if not (port_text.isascii() and port_text.isdigit()) or not int(port_text) <= 65_535:
        raise LocalProtocolError(f"{text!r}: the port must be 0 to 65535, got {port_text!r}")
    return host, int(port_text)
