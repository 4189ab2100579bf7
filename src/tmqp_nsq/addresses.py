"""Addresses as the originals' flags have them: ``HOST:PORT``, ``:PORT``, ``[::1]:PORT``, a path."""

from __future__ import annotations

from dataclasses import dataclass

from tmqp_nsq.flags import FlagError

__all__ = ["Address", "parse_address"]


@dataclass(frozen=True)
class Address:
    """Where to listen or to connect: a host and a port, or the path of a unix socket."""

    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return self.path
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, flag: str, *, listening: bool = False) -> Address:
    """Read an address.

    An empty host means every address of the machine for a listener, and this machine otherwise.

    :raises FlagError: naming *flag*, if the text is not an address.
    """
    if listening and text.startswith(("/", "./")):
        return Address("", 0, text)
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise FlagError(f"--{flag} must be HOST:PORT, not {text!r}")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise FlagError(f"--{flag}: write [{host}]:{port}, not {text!r}")
    if int(port) == 0 and not listening:
        raise FlagError(f"--{flag} needs a port, not {text!r}")
    return Address(host or ("0.0.0.0" if listening else "127.0.0.1"), int(port))  # noqa: S104
