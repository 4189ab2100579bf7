"""The TCP door of a lookupd, and the state that it shares with the HTTP door."""

from __future__ import annotations

import json
from typing import Final, final

from tmqp_server.doors.nsq_lookup.session import DOOR_NAME, LookupSession
from tmqp_server.doors.nsq_lookup.table import LookupTable
from tmqp_server.doors.nsq_world import DEFAULT_VERSION
from tmqp_server.doors.port import IdSource, QueuesOnly

__all__ = ["LookupDoor", "Lookupd"]

_HELLO_TIMEOUT_S: Final = 60.0


@final
class Lookupd:
    """One lookupd: the state that its doors share.

    Attributes: ``table``, all registrations; the others are what it tells clients about itself.
    """

    def __init__(self) -> None:
        self.table = LookupTable()
        self.broadcast_address = ""
        self.hostname = ""
        self.tcp_port = 0
        self.http_port = 0
        self.version = DEFAULT_VERSION

    def about(self) -> bytes:
        """The answer to IDENTIFY (N138)."""
        told = {
            "broadcast_address": self.broadcast_address,
            "hostname": self.hostname,
            "http_port": self.http_port,
            "tcp_port": self.tcp_port,
            "version": self.version,
        }
        return json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode()


@final
class LookupDoor(QueuesOnly):
    """Opens sessions for nsqds that register their topics and channels.

    Clients of this door neither push nor get messages, so it encodes and stores nothing.
    """

    def __init__(self, lookupd: Lookupd, new_id: IdSource) -> None:
        super().__init__()
        self.name = DOOR_NAME
        self._lookupd = lookupd
        self._new_id = new_id

    def open(self, session: int, now: float) -> LookupSession:
        """Open a session for a new connection."""
        # A client is disconnected after twice the silence that leaves it out of answers.
        table = self._lookupd.table
        idle_s = 2 * table.limits.inactive_producer_timeout_s
        about = self._lookupd.about
        return LookupSession(session, table, about, self._new_id, now, _HELLO_TIMEOUT_S, idle_s)
