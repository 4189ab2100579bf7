"""Owns TLS on the server's side: its certificate, and the handshake of each connection."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import anyio
import anyio.abc
from anyio.streams.tls import TLSStream

from tmqp_server.config import ConfigError
from tmqp_server.io.transport import StreamTransport
from tmqp_server.settings.tls import TlsSettings

__all__ = ["secure", "server_context"]


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """TLS 1.2 or newer with the server's certificate; clients are told apart by their tokens.

    :raises ConfigError: when a file cannot be read, is not what it should be, or does not fit the
        other.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    certificate = Path(settings.certificate)
    key = Path(settings.key or settings.certificate)
    for name, path in (("certificate", certificate), ("key", key)):
        try:
            path.open("rb").close()  # the library does not say which of the two it could not read
        except OSError as error:
            raise ConfigError(f"tls.{name}: cannot read {path}: {error.strerror}") from error
    try:
        context.load_cert_chain(certificate, key, _no_password)
    except _EncryptedError:
        raise ConfigError(f"tls.key: {key} is encrypted; the server asks nobody") from None
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            words = f"tls.key: {key} is not the key of the certificate {certificate}"
        else:
            why = (error.reason or "not PEM").replace("_", " ").lower()
            words = f"tls: {certificate} and {key} are no certificate and key in PEM ({why})"
        raise ConfigError(words) from error
    return context


class _EncryptedError(Exception):
    """The key wants a password."""


def _no_password() -> str:
    raise _EncryptedError


async def secure(
    sock: socket.socket, peer: str, context: ssl.SSLContext, timeout_s: float
) -> StreamTransport:
    """Go through the handshake; the socket is closed if it fails.

    :raises OSError: when the peer does not speak TLS, refuses the certificate, or takes too long.
    """
    stream: anyio.abc.SocketStream | None = None
    try:
        with anyio.fail_after(timeout_s):
            stream = await anyio.abc.SocketStream.from_socket(sock)
            wrapped = await TLSStream.wrap(
                stream,
                server_side=True,
                ssl_context=context,
                # The end of the stream is as good as a closing alert: frames say where they end.
                standard_compatible=False,
            )
    except BaseException as error:
        if stream is None:
            sock.close()
        else:
            await anyio.aclose_forcefully(stream)
        if isinstance(error, TimeoutError):
            raise ConnectionAbortedError(f"no TLS handshake within {timeout_s:g} s") from None
        if isinstance(error, ssl.SSLError):
            why = (error.reason or str(error)).replace("_", " ").lower()
            raise ConnectionAbortedError(f"the TLS handshake failed: {why}") from None
        if isinstance(error, anyio.BrokenResourceError | anyio.EndOfStream):
            raise ConnectionAbortedError("closed during the TLS handshake") from None
        raise
    return StreamTransport(wrapped, peer)
