"""Opens the socket of a connection to the broker: TCP, TLS, or a Unix socket."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Final

from tmqp.address import Address
from tmqp_spark.errors import TlsMistake
from tmqp_spark.options import ConnectionOptions

__all__ = ["dial"]

#: OpenSSL's errors if the peer answers a TLS hello with something else.
_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNEXPECTED_EOF_WHILE_READING"})


def dial(options: ConnectionOptions, address: Address, timeout_s: float) -> socket.socket:
    """Connect to an address, with TLS if the options request it.

    :raises TlsMistake: if the server's certificate is not accepted, the server does not speak TLS,
        or a file of this client cannot be used.
    :raises OSError: if the connection fails.
    """
    if address.socket_path:
        plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            plain.settimeout(timeout_s)
            plain.connect(address.socket_path)
        except BaseException:
            plain.close()
            raise
        return plain
    sock = socket.create_connection((address.host, address.port), timeout_s)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not (address.tls or options.tls):
            return sock
        context = _tls_context(options)
        return context.wrap_socket(sock, server_hostname=address.host)
    except ssl.SSLCertVerificationError as error:
        sock.close()
        trusted = f"the authorities in {options.tls_ca}" if options.tls_ca else "the system's"
        raise TlsMistake(
            f"{options.url}: the broker's certificate is refused: {error.verify_message}"
            f" (trusted are {trusted}; see the option tls.ca)"
        ) from None
    except ssl.SSLError as error:
        sock.close()
        if error.reason in _NO_TLS:
            raise TlsMistake(
                f"{options.url} does not speak TLS ({error.reason}); is it plain (tmq://)?"
            ) from None
        raise
    except BaseException:
        sock.close()
        raise


def _tls_context(options: ConnectionOptions) -> ssl.SSLContext:
    """Make the TLS context.

    :raises TlsMistake: if one of its files cannot be used; the text names the file.
    """
    for name, path in (
        ("tls.ca", options.tls_ca),
        ("tls.cert", options.tls_cert),
        ("tls.key", options.tls_key),
    ):
        try:
            if path:
                Path(path).read_bytes()
        except OSError as error:
            raise TlsMistake(f"{name}: cannot read {path}: {error.strerror}") from None
    try:
        context = ssl.create_default_context(cafile=options.tls_ca or None)
    except ssl.SSLError as error:
        words = f"tls.ca: {options.tls_ca} holds no certificates ({error.reason or error})"
        raise TlsMistake(words) from None
    try:
        if options.tls_cert:
            context.load_cert_chain(options.tls_cert, options.tls_key or None)
    except ssl.SSLError as error:
        files = (
            f"{options.tls_cert} with {options.tls_key}" if options.tls_key else options.tls_cert
        )
        words = f"tls.cert, tls.key: {files} is not a certificate with its key"
        raise TlsMistake(f"{words} ({error.reason or error})") from None
    return context
