"""A client's connection: identification, layers, AUTH and heartbeats; the caller does the rest.

::

    connection = ClientConnection({"client_id": "c", "hostname": "h"})
    send(connection.data_to_send())
    for event in connection.receive(data):
        ...

The connection requests features in its IDENTIFY and applies the layers that the server grants: the
caller provides TLS (``wants_tls``, then :meth:`ClientConnection.secured`), and passes in the layers
for compression.  ``ready`` is set when all of this is done; then the messages that were queued
meanwhile with :meth:`ClientConnection.send` are sent.  Heartbeats are answered automatically.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from tmqp_wires.nsq.events import ErrorReceived, Event, Heartbeat, ResponseReceived, Violation
from tmqp_wires.nsq.frames import DEFAULT_MAX_FRAME_BYTES, FrameDecoder
from tmqp_wires.nsq.layers import Layer, LayerError
from tmqp_wires.nsq.writing import MAGIC, NOP, auth, identify

__all__ = ["ClientConnection"]

_IDENTIFYING: Final = 0
_LAYERING: Final = 1
_AUTHENTICATING: Final = 2
_READY: Final = 3


class ClientConnection:
    """One connection to nsqd, or to a server with the same protocol.

    :param fields: the fields of IDENTIFY besides ``feature_negotiation``; ``tls_v1`` asks for TLS.
    :param snappy: the layer to use if the server grants snappy, which is requested if this is
        given.
    :param deflate: the same for deflate; a server grants only one of the two.
    :param secret: for AUTH, sent when the server requires it.
    :param max_frame_bytes: the largest frame that is accepted.

    Attributes: ``ready``; ``wants_tls``, change to TLS now, and send nothing before; ``closed``,
    the server has ended the connection with an error, or sent invalid bytes; ``features``, the
    server's answer to IDENTIFY, empty before it and if the server has no features.
    """

    def __init__(
        self,
        fields: Mapping[str, object],
        snappy: Layer | None = None,
        deflate: Layer | None = None,
        secret: bytes = b"",
        max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES,
    ) -> None:
        self.wants_tls = False
        self.closed = False
        self.features: dict[str, Any] = {}
        self._layers = {"snappy": snappy, "deflate": deflate}
        self._secret = secret
        self._decoder = FrameDecoder(max_frame_bytes)
        self._decoder.one_by_one = True
        self._stage = _IDENTIFYING
        self._layer: Layer | None = None
        #: Layers that the server has granted and that have not begun.
        self._granted: list[str] = []
        asked = {**fields, "feature_negotiation": True}
        for name, layer in self._layers.items():
            if layer is not None:
                asked[name] = True
        self._out = [MAGIC, identify(asked)]
        self._later: list[bytes] = []

    @property
    def ready(self) -> bool:
        """Whether commands are sent at once."""
        return self._stage == _READY

    def send(self, command: bytes) -> None:
        """Queue a command (``writing``); it is sent when the connection is ready."""
        if self._stage == _READY:
            self._write(command)
        else:
            self._later.append(command)

    def data_to_send(self) -> bytes:
        """Everything queued since the last call."""
        data = b"".join(self._out)
        self._out = []
        if data and self._layer is not None:
            return self._layer.encoded(data)
        return data

    def receive(self, data: bytes) -> list[Event]:
        """The server's frames, except those of identification and heartbeats.

        An error that ends the connection, or a violation, is the last event.
        """
        found: list[Event] = []
        if self.closed:
            return found
        try:
            if self._layer is not None:
                data = self._layer.decoded(data)
            while data and not self.closed:
                if self.wants_tls:
                    self._broken(b"unencrypted data after the change to TLS", found)
                    break
                data = self._read(data, found)
        except LayerError as error:
            self._broken(str(error).encode(), found)
        return found

    def secured(self) -> None:
        """Continue after the TLS handshake."""
        self.wants_tls = False

    def _read(self, data: bytes, found: list[Event]) -> bytes:
        """Read frames.  Until the connection is ready, read only one, and return the bytes after
        it, decoded by the layer that applies from there on."""
        before = self._layer
        self._decoder.one_by_one = self._stage != _READY
        events = self._decoder.feed(data)
        for event in events:
            self._take(event, found)
        if self.closed or not events or not self._decoder.one_by_one:
            return b""
        rest = self._decoder.take_rest()
        if self._layer is not before and self._layer is not None and rest:
            return self._layer.decoded(rest)
        return rest

    # -- stages ---------------------------------------------------------------------------------

    def _take(self, event: Event, found: list[Event]) -> None:
        if isinstance(event, Heartbeat):
            self._write(NOP)
            return
        if isinstance(event, Violation) or (isinstance(event, ErrorReceived) and event.is_fatal):
            self.closed = True
            found.append(event)
            return
        if self._stage == _READY or not isinstance(event, ResponseReceived):
            found.append(event)
            return
        if self._stage == _IDENTIFYING:
            self._identified(event.data, found)
        elif self._stage == _AUTHENTICATING or event.data == b"OK":
            self._go_on()
        else:
            self._broken(b"%s where OK was expected" % event.data[:100], found)

    def _identified(self, answer: bytes, found: list[Event]) -> None:
        if answer != b"OK":
            try:
                features = json.loads(answer)
            except (ValueError, RecursionError):
                features = None
            if not isinstance(features, dict):
                self._broken(b"the answer to IDENTIFY is not a JSON object", found)
                return
            self.features = features
            for name in ("tls_v1", "snappy", "deflate"):
                if features.get(name) is True:
                    if name != "tls_v1" and self._layers[name] is None:
                        self._broken(b"%s was not asked for" % name.encode(), found)
                        return
                    self._granted.append(name)
        self._go_on()

    def _go_on(self) -> None:
        """Begin the next stage."""
        if self._granted:
            self._stage = _LAYERING
            name = self._granted.pop(0)
            if name == "tls_v1":
                self.wants_tls = True
            else:
                self._layer = self._layers[name]
        elif self._stage != _AUTHENTICATING and self._secret and self.features.get("auth_required"):
            self._stage = _AUTHENTICATING
            self._write(auth(self._secret))
        else:
            self._stage = _READY
            for command in self._later:
                self._write(command)
            self._later = []

    def _write(self, data: bytes) -> None:
        self._out.append(data)

    def _broken(self, why: bytes, found: list[Event]) -> None:
        self.closed = True
        found.append(Violation(b"", why))
