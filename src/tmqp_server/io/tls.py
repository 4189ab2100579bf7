"""TLS on the server's side: its certificate, and the transport of encrypted connections."""

from __future__ import annotations

import hashlib
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, final

import anyio

from tmqp_server.access.certificates import PeerCertificate, read_peer_certificate
from tmqp_server.config import ConfigError
from tmqp_server.io.der import expiry_of
from tmqp_server.io.read_buffer import READ_BYTES, ReadBuffer
from tmqp_server.io.transport import Bytes, SocketTransport, Transport
from tmqp_server.settings.tls import NO_CERTIFICATE, TlsSettings, requires

__all__ = [
    "TlsContexts",
    "TlsTransport",
    "agree",
    "digest_of",
    "expiry_of_certificate",
    "secure",
    "server_context",
]

#: The most bytes in a record, and the largest record with its head and authentication tag.
_RECORD_PAYLOAD_BYTES: Final = 16_384
_RECORD_BYTES: Final = _RECORD_PAYLOAD_BYTES + 512
_VERSIONS: Final = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
#: The buffer for decrypted bytes; no task waits while it is in use.
_decrypted: Final = ReadBuffer()


@final
class TlsContexts:
    """The TLS contexts for each policy about clients' certificates in use.

    :param timeout_s: how long a handshake may take.
    :param policies: the policies in use, in addition to that of the settings.
    :raises ConfigError: as :func:`server_context`.

    Attributes: ``expires_s``, when the certificate expires, in Unix time; None if there is none;
    ``digest``, that of its files when the server started.
    """

    def __init__(
        self, settings: TlsSettings, timeout_s: float, policies: Iterable[str] = ()
    ) -> None:
        self._settings = settings
        self._timeout_s = timeout_s
        self._contexts: dict[str, ssl.SSLContext] = {}
        self.expires_s = expiry_of_certificate(settings)
        self.digest = digest_of(settings)
        for policy in ("", *policies):
            self.of(policy)

    def renewed(self, settings: TlsSettings) -> dict[str, ssl.SSLContext]:
        """Make the contexts with the current files, for each policy in use, without using them yet.

        :raises ConfigError: as :func:`server_context`, and if the policy of ``[tls]`` itself, or
            whether there is a certificate, has changed: the doors depend on both; or when the
            certificate has expired.
        """
        if bool(settings.certificate) != bool(self._settings.certificate):
            raise ConfigError("tls: a reload cannot add or remove the certificate")
        if settings.client_policy != self._settings.client_policy:
            raise ConfigError("tls: a reload cannot change the policy for client certificates")
        found = {policy: server_context(settings, policy) for policy in self._contexts}
        expiry = expiry_of_certificate(settings)
        if expiry is not None and expiry <= time.time():
            when = time.strftime("%Y-%m-%d", time.gmtime(expiry))
            raise ConfigError(f"tls.certificate: {settings.certificate} has expired on {when}")
        return found

    def replace(self, settings: TlsSettings, contexts: dict[str, ssl.SSLContext]) -> None:
        """Use these contexts for new connections; existing connections keep theirs."""
        self._settings = settings
        self._contexts = contexts
        self.expires_s = expiry_of_certificate(settings)

    def of(self, policy: str = "") -> tuple[ssl.SSLContext, float] | None:
        """The context for a policy (empty: that of ``[tls]``), and the time limit of a handshake in
        seconds; None without a certificate.

        :raises ConfigError: as :func:`server_context`, at the first call for a policy.
        """
        if not self._settings.certificate:
            return None
        policy = policy or self._settings.client_policy
        if policy not in self._contexts:
            self._contexts[policy] = server_context(self._settings, policy)
        return self._contexts[policy], self._timeout_s


def expiry_of_certificate(settings: TlsSettings) -> float | None:
    """Return when the server's certificate expires, in Unix time; None if it cannot be read."""
    if not settings.certificate:
        return None
    try:
        text = Path(settings.certificate).read_text("ascii")
        head = text.index(ssl.PEM_HEADER)
        end = text.index(ssl.PEM_FOOTER, head) + len(ssl.PEM_FOOTER)
        return expiry_of(ssl.PEM_cert_to_DER_cert(text[head:end]))
    except (OSError, ValueError):
        return None


def digest_of(settings: TlsSettings) -> bytes:
    """Return a digest of the files of the settings, to detect changes; an unreadable file counts as
    empty."""
    found = hashlib.sha256()
    files = (settings.certificate, settings.key)
    for name in (*files, settings.client_authorities, settings.client_revocations):
        try:
            data = Path(name).read_bytes() if name else b""
        except OSError:
            data = b""
        found.update(hashlib.sha256(data).digest())
    return found.digest()


def server_context(settings: TlsSettings, policy: str = "") -> ssl.SSLContext:
    """Make the TLS context with the server's certificate, and with the settings' lowest version.

    :param policy: which certificates clients must show; empty for the settings' policy.
    :raises ConfigError: when a file cannot be read or is not valid, or certificate and key do not
        match.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[settings.minimum_version]
    if settings.ciphers:
        try:
            context.set_ciphers(settings.ciphers)
        except ssl.SSLError as error:
            words = f"tls.ciphers: {settings.ciphers!r} chooses no cipher of TLS 1.2"
            raise ConfigError(words) from error
    # So that sending never waits for bytes of the peer.
    context.options |= ssl.OP_NO_RENEGOTIATION
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
        raise ConfigError(f"tls.key: {key} is encrypted; decrypt it first") from None
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            words = f"tls.key: {key} is not the key of the certificate {certificate}"
        else:
            why = (error.reason or "not PEM").replace("_", " ").lower()
            words = f"tls: {certificate} and {key} are not a certificate and key in PEM ({why})"
        raise ConfigError(words) from error
    policy = policy or settings.client_policy
    if policy != NO_CERTIFICATE:
        _take_client_certificates(context, settings.client_authorities, policy)
        if settings.client_revocations:
            _refuse_revoked(context, settings.client_revocations)
    return context


def _take_client_certificates(context: ssl.SSLContext, path: str, policy: str) -> None:
    _load(context, path, "tls.client_authorities", "certificates")
    context.verify_mode = ssl.CERT_REQUIRED if requires(policy) else ssl.CERT_OPTIONAL


def _refuse_revoked(context: ssl.SSLContext, path: str) -> None:
    """Check each certificate against its authority's revocation list, which must exist and be
    valid.
    """
    before = context.cert_store_stats()["crl"]
    _load(context, path, "tls.client_revocations", "lists")
    if context.cert_store_stats()["crl"] == before:
        raise ConfigError(f"tls.client_revocations: {path} has no lists in PEM")
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _load(context: ssl.SSLContext, path: str, setting: str, what: str) -> None:
    try:
        context.load_verify_locations(path)
    except ssl.SSLError as error:
        raise ConfigError(f"{setting}: {path} has no {what} in PEM") from error
    except OSError as error:
        raise ConfigError(f"{setting}: cannot read {path}: {error.strerror}") from error


def _shown(tls: ssl.SSLObject) -> PeerCertificate | None:
    """The verified certificate of the peer; None if it has shown none."""
    certificate = tls.getpeercert()
    raw = tls.getpeercert(binary_form=True)
    if not certificate or raw is None:
        return None
    return read_peer_certificate(certificate, hashlib.sha256(raw).hexdigest())


class _EncryptedError(Exception):
    """The key needs a password."""


def _no_password() -> str:
    raise _EncryptedError


class TlsTransport(Transport):
    """TLS over a socket.  Its memory is constant, whatever is sent: OpenSSL's buffers never shrink,
    so they get one record at a time."""

    def __init__(self, sock: socket.socket, peer: str, context: ssl.SSLContext) -> None:
        self._socket = SocketTransport(sock, peer, _RECORD_BYTES)
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        #: Encrypted bytes that were not sent: after a cancelled send, the next one continues with
        #: them.
        self._unsent = b""
        self._sending = anyio.Lock()
        #: Whether there is a key: until then, only the handshake sends.
        self._agreed = anyio.Event()
        self.peer = peer
        self.secure = True
        self.waited = False

    async def handshake(self) -> None:
        """Perform the TLS handshake.

        :raises OSError: when it fails (``ssl.SSLError``) or the connection ends.
        """
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._fill():
                    raise ConnectionAbortedError("closed during the TLS handshake") from None
            except ssl.SSLError:
                self._unsent += self._outgoing.read()
                self._socket.send(self._unsent)  # the alert that says why, if there is room
                raise
            else:
                self.certificate = _shown(self._tls)
                if self.certificate is not None:
                    self.common_name = self.certificate.common_name
                await self._flush()
                self._agreed.set()
                return

    def watch(self, ready: Callable[[], None]) -> bool:
        """Return False: a part of a record may have arrived, so a task must read."""
        return False

    def unwatch(self) -> None:
        """Do nothing: it is never watched."""

    def receive_now(self) -> bytes | None:
        """Return nothing: receiving needs a task."""
        return None

    async def receive(self) -> bytes:
        """The next bytes; empty at the end of the stream, with a closing alert or without one."""
        self.waited = False
        have = 0
        while True:
            try:
                count = self._read(have)
                if not count:
                    break  # a closing alert, if nothing was sent to the peer after it
                have += count
            except ssl.SSLWantReadError:
                if have:
                    if not self._fill_now():
                        break
                    continue
                if self._outgoing.pending:
                    await self._flush()
                if not await self._fill():
                    break
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                break
            except ssl.SSLError as error:
                if have:
                    break  # the next call says so
                raise ConnectionResetError("the stream broke") from error
            if have == READ_BYTES:
                break
        return bytes(_decrypted.view[:have])

    def _read(self, have: int) -> int:
        count: object = self._tls.read(READ_BYTES - have, _decrypted.view[have:])
        assert isinstance(count, int), "with a buffer it returns how much is in it"
        return count

    def _fill_now(self) -> bool:
        """Fill the buffer with received bytes; return False if there are none."""
        try:
            data = self._socket.receive_now()
        except OSError:
            return False  # the next read reports it
        if data:
            self._incoming.write(data)
        return bool(data)

    async def _fill(self) -> bool:
        """Wait for the peer's next bytes; return False at the end of its stream."""
        data = await self._socket.receive()
        self.waited = self.waited or self._socket.waited
        if data:
            self._incoming.write(data)
        return bool(data)

    def send(self, data: Bytes) -> int:
        """Return 0: sending needs a task."""
        return 0

    async def send_some(self, data: Bytes) -> int:
        """Wait until a record was sent; return how many bytes of ``data`` are in it."""
        await self._agreed.wait()
        await self._flush()
        try:
            sent = self._tls.write(data[:_RECORD_PAYLOAD_BYTES])
        except ssl.SSLError as error:
            raise ConnectionResetError("the stream broke") from error
        await self._flush()
        return sent

    async def _flush(self) -> None:
        """Send the encrypted bytes; reader and writer take turns."""
        async with self._sending:
            self._unsent += self._outgoing.read()
            while self._unsent:
                self._unsent = self._unsent[await self._socket.send_some(self._unsent) :]

    async def aclose(self) -> None:
        """Close at once, without a closing alert: the end of the stream serves as one."""
        await self._socket.aclose()


async def secure(
    sock: socket.socket, peer: str, context: ssl.SSLContext, timeout_s: float
) -> TlsTransport:
    """Perform the handshake; the socket is closed if it fails.

    :raises OSError: when the peer does not speak TLS, refuses the certificate, or takes too long.
    """
    transport = TlsTransport(sock, peer, context)
    try:
        await agree(transport, timeout_s)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await transport.aclose()
        raise
    return transport


async def agree(transport: TlsTransport, timeout_s: float) -> None:
    """Perform the handshake of a transport.

    :raises OSError: as :func:`secure`.
    """
    try:
        with anyio.fail_after(timeout_s):
            await transport.handshake()
    except TimeoutError:
        raise ConnectionAbortedError(f"no TLS handshake within {timeout_s:g} s") from None
    except ssl.SSLError as error:
        why = (error.reason or str(error)).replace("_", " ").lower()
        raise ConnectionAbortedError(f"the TLS handshake failed: {why}") from None
