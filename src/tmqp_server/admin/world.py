"""What the admin door sees of the server; the wiring fills it in as the parts start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, final

from tmqp_server.cluster.relay import ClusterStatistics
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.histograms import Histogram
from tmqp_server.replication.view import GroupView
from tmqp_server.shell.tallies import ProcessFacts
from tmqp_server.shell.turn import Turn

__all__ = ["AdminWorld", "BackupDesk", "CopyBlock", "CopyDesk"]

#: Seconds without a beat of the event loop's timer after which the server is not alive.
_PULSE_S: Final = 10.0


def _no_random(count: int) -> bytes:
    raise NotImplementedError(f"there is no source of {count} random bytes")


def _ignore(_word: str) -> None:
    """Do nothing: there is no log."""


def _no_tls() -> None:
    """Return None: the server has no TLS."""


def _nothing() -> None:
    """Do nothing: there is nothing to carry out."""


def _never() -> float | None:
    """Return None: the server has no certificate."""
    return None


class BackupDesk(Protocol):
    """Makes backups."""

    @property
    def possible(self) -> bool:
        """Whether backups are possible: the server keeps messages on disk."""

    @property
    def complete_s(self) -> float | None:
        """When the last complete backup ended, in Unix time; None if there was none."""

    @property
    def last(self) -> Mapping[str, Any] | None:
        """The state of the backup that was begun last; None if there was none."""

    def begin(self, directory: str) -> bool:
        """Begin a backup in this directory; return False while another one is made."""


class CopyBlock(Protocol):
    """A block of a copy, while it is read."""

    @property
    def done(self) -> bool:
        """Whether the reading has ended."""

    @property
    def data(self) -> bytes | None:
        """The block, once it was read; empty at the end of the copy, None if it cannot be read."""


class CopyDesk(Protocol):
    """Makes copies for other servers of the group."""

    @property
    def last(self) -> Mapping[str, Any] | None:
        """The state of the current copy; None if there is none."""

    def begin(self) -> bool:
        """Begin a copy; return False if there is one already."""

    def read(self, name: str, offset: int) -> CopyBlock | None:
        """Begin to read a block; return None if there is no complete copy of this name."""

    def remove(self, name: str) -> bool:
        """Remove a copy, as soon as it is complete; return False if there is none of this name."""


@final
class AdminWorld:
    """One server, as its admin doors see it.  The comments at the attributes describe them."""

    def __init__(self) -> None:
        #: The server's turn; None until it has been built.
        self.turn: Turn | None = None
        #: Asks the operating system about this process.
        self.facts: Callable[[], ProcessFacts] = ProcessFacts
        #: The labels of the metric ``build_info``.
        self.build: Mapping[str, str] = {
            "version": "",
            "python": "",
            "build": "",
            "backend": "",
        }
        #: When the server started, in Unix time.
        self.started_s = 0.0
        self.limits = EngineLimits()
        self.max_connections = 0
        #: How many connections are open.
        self.connections: Callable[[], int] = int
        #: Free disk space that the storage leaves; 0 if nothing is stored.
        self.floor_bytes = 0
        #: Reloads the configuration; None if that is not possible.
        self.reload: Callable[[], None] | None = None
        #: The settings of the configuration and their names.
        self.settings: Callable[[], Iterable[tuple[str, object]]] = tuple
        #: Returns this many bytes that nobody can guess.
        self.random: Callable[[int], bytes] = _no_random
        #: When the certificate of TLS expires, in Unix time; None if there is none.
        self.certificate_expires_s: Callable[[], float | None] = _never
        #: The last changes that clients have requested, the latest last.
        self.audit: Sequence[Mapping[str, Any]] = ()
        #: Whether the audit cannot be written.
        self.audit_fails: Callable[[], bool] = bool
        #: What this server and others have exchanged; None if it is in no cluster.
        self.cluster: ClusterStatistics | None = None
        #: The state of this server's replication group; None if it is in none.
        self.group: Callable[[], GroupView] | None = None
        self.listening = False
        self.draining = False
        #: When the event loop's timer fired last, in the engine's time; below 0 if never.
        self.beat_s = -1.0
        #: How often the configuration was reloaded, by result.
        self.reloads = {"done": 0, "failed": 0}
        self.last_reload_failed = False
        #: Functions to call several times a second between turns, with the engine's time.
        self.beats: list[Callable[[float], None]] = []
        #: Carries out what the beats led to.
        self.attend: Callable[[], None] = _nothing
        #: The last lines of the log.
        self.log: Callable[[], Sequence[Mapping[str, Any]]] = tuple
        #: The log level, one of ``settings.log.LEVELS``.
        self.log_level: Callable[[], str] = str
        self.set_log_level: Callable[[str], None] = _ignore
        #: The settings of TLS; None if there is none.
        self.tls: Callable[[], Mapping[str, Any] | None] = _no_tls
        #: Reads the files of TLS again; returns what is wrong with them, or nothing.
        self.renew_tls: Callable[[], str] = str
        #: Makes backups; None if that is not possible.
        self.backups: BackupDesk | None = None
        #: Makes copies for other servers of the group; None if it is in none.
        self.copies: CopyDesk | None = None
        #: How many lines were logged, by level.
        self.log_lines: Mapping[str, int] = {}
        #: How many messages were converted, by the door they came from.
        self.conversions: Mapping[str, int] = {}
        #: How long the storage's syncs took; None if it has none.
        self.syncs: Histogram | None = None
        #: Bytes that wait to be sent to other servers of the cluster.
        self.cluster_waiting: Callable[[], int] = int
        #: A monotonic clock in seconds, which also advances during a step of the engine.
        self.clock: Callable[[], float] = float

    def clock_s(self) -> float:
        """The time of ``clock``."""
        return self.clock()

    def busy_s(self, now: float) -> float:
        """For how many seconds in all the loop was busy until now; below 0 if not measured."""
        return -1.0 if self.turn is None else self.turn.pulse.busy_s(now)

    def wake(self, session: int) -> None:
        """Make the hub look again at the deadline of a session."""
        if self.turn is not None:
            self.turn.hub.wake(session)

    def random_bytes(self, count: int) -> bytes:
        """Return this many bytes that nobody can guess."""
        return self.random(count)

    def count_reload(self, *, ok: bool) -> None:
        """Count a reload of the configuration, and whether it has succeeded."""
        self.reloads["done" if ok else "failed"] += 1
        self.last_reload_failed = not ok

    def is_alive(self, now: float) -> bool:
        """Whether the event loop's timer fires."""
        return self.beat_s < 0.0 or now - self.beat_s <= _PULSE_S

    def saves(self) -> bool:
        """Whether the storage saves messages; also True if there is no storage."""
        saving = None if self.turn is None else self.turn.saving
        return saving is None or not saving.failing

    def problems(self, *, storage: bool = True, standby: bool = True) -> list[str]:
        """Why the server is not ready, as words; empty if it is.

        :param storage: whether a storage that does not save is a problem.
        :param standby: whether it is a problem that another server of the group leads.
        """
        found: list[str] = []
        if self.turn is None or not self.listening:
            found.append("starting")
        elif standby and self.turn.hub.stands_by:
            found.append("standby")
        if self.draining:
            found.append("draining")
        if storage and not self.saves():
            found.append("storage")
        return found
