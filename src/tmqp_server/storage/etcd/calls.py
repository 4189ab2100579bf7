"""Calls to etcd: the choice of the server, the credentials, and the timeouts.

Theory of operation.  Each address has a channel, and one of them is used at a time.  If it does not
answer in time, or fails, the next request uses the next one; this module does not repeat the
request, because only its sender knows whether that is safe.  The exception is an expired token:
etcd did nothing then, so a new token is fetched and the call is repeated once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from threading import Event
from typing import Any, Final

import grpc

from tmqp_server.storage.etcd.messages import message
from tmqp_server.storage.log import UnansweredError

__all__ = ["EtcdAccess", "EtcdCalls"]

#: The requests bound etcd's answers, and etcd is trusted.
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.use_local_subchannel_pool", 1),
)
#: Where each call is, and its answer.
_UNARY: Final = {
    "Range": ("KV/Range", "RangeResponse"),
    "Put": ("KV/Put", "PutResponse"),
    "Txn": ("KV/Txn", "TxnResponse"),
    "Compact": ("KV/Compact", "CompactionResponse"),
    "LeaseGrant": ("Lease/LeaseGrant", "LeaseGrantResponse"),
    "LeaseRevoke": ("Lease/LeaseRevoke", "LeaseRevokeResponse"),
    "Status": ("Maintenance/Status", "StatusResponse"),
    "Authenticate": ("Auth/Authenticate", "AuthenticateResponse"),
}


class EtcdAccess:
    """How to reach etcd.

    :param addresses: ``host:port`` of each server; at least one.
    :param timeout_s: the time after which a server counts as not answering.
    :param user: the name to log in with; empty for no log-in.
    :param ca: the certificates that sign etcd's, in PEM; None for no TLS.
    :param certificate: our own certificate and key, in PEM, if etcd requires one.
    """

    def __init__(
        self,
        addresses: list[str],
        *,
        timeout_s: float = 0.7,
        user: str = "",
        password: str = "",
        ca: bytes | None = None,
        certificate: tuple[bytes, bytes] | None = None,
    ) -> None:
        self.addresses = addresses
        self.timeout_s = timeout_s
        self.user = user
        self.password = password
        self.ca = ca
        self.certificate = certificate


class EtcdCalls:
    """Makes calls to etcd; any number of threads may use it."""

    def __init__(self, access: EtcdAccess) -> None:
        self._access = access
        self._channels = [_channel(access, each) for each in access.addresses]
        self._at = 0
        self._token = ""

    def close(self) -> None:
        """Close the connections."""
        for each in self._channels:
            each.close()

    def call(self, name: str, request: Any) -> Any:
        """Send a request, and return the answer.

        :raises UnansweredError: when there is none.
        """
        path, answer = _UNARY[name]
        for is_again in (False, True):
            at = self._at
            call = self._channels[at].unary_unary(
                f"/etcdserverpb.{path}",
                request_serializer=_to_bytes,
                response_deserializer=_reader_of(answer),
            )
            try:
                metadata = None if name == "Authenticate" else self._metadata()
                return call(request, timeout=self._access.timeout_s, metadata=metadata)
            except grpc.RpcError as error:
                if is_again or not self._expired(error):
                    raise self._failed(error, at) from error
        raise AssertionError("the second attempt has an answer or none")

    def keep_alive(self, lease: int) -> int:
        """Renew a lease.  Return its remaining seconds, 0 if it has ended.

        :raises UnansweredError: when there is no answer.
        """
        request = message("LeaseKeepAliveRequest", ID=lease)
        timeout_s = self._access.timeout_s
        for answer in self._stream("Lease/LeaseKeepAlive", request, "LeaseKeepAlive", timeout_s):
            return int(answer.TTL)
        return 0

    def wait(self, key: bytes, end: bytes, revision: int, wait_s: float) -> None:
        """Wait for a change in a range of keys after a revision, for at most ``wait_s``.

        :raises UnansweredError: when the server fails or cannot be reached.
        """
        create = message("WatchCreateRequest", key=key, range_end=end, start_revision=revision + 1)
        request = message("WatchRequest", create_request=create)
        with suppress(_TimeIsOverError):
            for answer in self._stream("Watch/Watch", request, "Watch", wait_s):
                if answer.events or answer.canceled:
                    return

    def _stream(self, path: str, request: Any, name: str, timeout_s: float) -> Iterator[Any]:
        at = self._at
        call = self._channels[at].stream_stream(
            f"/etcdserverpb.{path}",
            request_serializer=_to_bytes,
            response_deserializer=_reader_of(f"{name}Response"),
        )
        done = Event()
        answers = call(_one(request, done), timeout=timeout_s, metadata=self._metadata())
        try:
            yield from answers
        except grpc.RpcError as error:
            if name == "Watch" and error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                raise _TimeIsOverError from None
            if self._expired(error):
                self._token = ""
            raise self._failed(error, at) from error
        finally:
            done.set()
            answers.cancel()

    def _metadata(self) -> tuple[tuple[str, str], ...] | None:
        access = self._access
        if not access.user:
            return None
        if not self._token:
            asked = message("AuthenticateRequest", name=access.user, password=access.password)
            self._token = self.call("Authenticate", asked).token
        return (("token", self._token),)

    def _expired(self, error: grpc.RpcError) -> bool:
        """Forget the token if it has expired, and return whether a new one may help."""
        if not self._token or error.code() != grpc.StatusCode.UNAUTHENTICATED:
            return False
        self._token = ""
        return True

    def _failed(self, error: grpc.RpcError, at: int) -> UnansweredError:
        """Use the next server from now on, and return the error to raise."""
        address = self._access.addresses[at]
        if self._at == at:
            self._at = (at + 1) % len(self._channels)
        return UnansweredError(f"etcd at {address}: {error.details() or error.code().name}")


class _TimeIsOverError(Exception):
    """The wait has ended without a change."""


def _channel(access: EtcdAccess, address: str) -> grpc.Channel:
    if access.ca is None:
        return grpc.insecure_channel(address, options=_OPTIONS)
    certificate, key = access.certificate or (None, None)
    credentials = grpc.ssl_channel_credentials(access.ca, key, certificate)
    return grpc.secure_channel(address, credentials, options=_OPTIONS)


def _to_bytes(request: Any) -> bytes:
    made: bytes = request.SerializeToString()
    return made


def _reader_of(name: str) -> Any:
    return type(message(name)).FromString


def _one(request: Any, done: Event) -> Iterator[Any]:
    """A request stream with one request; it stays open."""
    yield request
    done.wait()
