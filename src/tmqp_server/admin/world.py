"""What the admin door sees of the server: filled in by the wiring, piece by piece as it starts."""

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
    """There is no log."""


def _no_tls() -> None:
    """There is none."""


def _nothing() -> None:
    """Nobody carries anything out."""


def _never() -> float | None:
    """There is no certificate."""
    return None


class BackupDesk(Protocol):
    """Who makes backups.

    Attributes: ``last``, the one that was begun last; ``complete_s``, when the last complete one
    ended, in Unix time; ``possible``, there is something to copy.
    """

    @property
    def possible(self) -> bool:
        """Whether the server keeps anything."""

    @property
    def complete_s(self) -> float | None:
        """When the last complete one ended, in Unix time; None if there was none."""

    @property
    def last(self) -> Mapping[str, Any] | None:
        """What has become of the last one."""

    def begin(self, directory: str) -> bool:
        """Begin one in this directory; False while another one runs."""


class CopyBlock(Protocol):
    """A block of a copy that is being read."""

    @property
    def done(self) -> bool:
        """Whether it was read."""

    @property
    def data(self) -> bytes | None:
        """What it has then; empty behind the end, None if it cannot be read."""


class CopyDesk(Protocol):
    """Who makes copies for other servers of the group.

    Attributes: ``last``, the copy that there is, or None.
    """

    @property
    def last(self) -> Mapping[str, Any] | None:
        """What has become of it."""

    def begin(self) -> bool:
        """Begin one; False while there is one."""

    def read(self, name: str, offset: int) -> CopyBlock | None:
        """Begin to read a block; None if there is no complete copy of this name."""

    def remove(self, name: str) -> bool:
        """Remove one, at the latest when it has been made; False if there is none of this name."""


@final
class AdminWorld:
    """One server, for its admin doors.

    Attributes: ``turn``, None before it is there; ``facts`` asks the operating system; ``build``
    are the labels of ``build_info``; ``started_s``, in Unix time; ``limits`` of the engine;
    ``max_connections`` and ``connections``, how many there are; ``floor_bytes`` of the storage, 0
    where nothing is kept; ``certificate_expires_s``, when the one of TLS does, in Unix time, None
    where there is none; ``audit``, the last changes that were asked for, the latest last, and
    ``audit_fails``, whether they cannot be written; ``group`` says how this server's group with one
    log is, None where it is in none; ``cluster``, what passed between this server
    and others, None while it stands alone; ``listening`` and ``draining``; ``beat_s``, when the
    event loop's timer fired last, in the engine's time, below 0 if never; ``reloads`` of the
    configuration by result, and ``last_reload_failed``; ``reload`` has the configuration read
    again, None where nobody can; ``settings`` of the configuration, by their names; ``random``
    makes so many bytes that nobody can guess; ``beats``, called several times a second outside of
    all turns, with the engine's time, and ``attend`` has carried out what they led to; ``log``, the
    last lines; ``log_level`` and ``set_log_level``, one of ``settings.log.LEVELS``; ``tls``, how it
    is set, None where there is none; ``renew_tls`` reads its files again and says what is wrong
    with them; ``backups``, None where nobody can make any; ``copies`` for other servers of the
    group, None where there is none; ``log_lines``, how many there were by
    level; ``conversions`` of messages by their door; ``syncs``, how long those of the storage took,
    None where there are none; ``cluster_waiting``, bytes that wait for other servers; ``clock``,
    seconds of any beginning, which continue while the server works.
    """

    def __init__(self) -> None:
        self.turn: Turn | None = None
        self.facts: Callable[[], ProcessFacts] = ProcessFacts
        self.build: Mapping[str, str] = {
            "version": "",
            "python": "",
            "build": "",
            "backend": "",
        }
        self.started_s = 0.0
        self.limits = EngineLimits()
        self.max_connections = 0
        self.connections: Callable[[], int] = int
        self.floor_bytes = 0
        self.reload: Callable[[], None] | None = None
        self.settings: Callable[[], Iterable[tuple[str, object]]] = tuple
        self.random: Callable[[int], bytes] = _no_random
        self.certificate_expires_s: Callable[[], float | None] = _never
        self.audit: Sequence[Mapping[str, Any]] = ()
        self.audit_fails: Callable[[], bool] = bool
        self.cluster: ClusterStatistics | None = None
        self.group: Callable[[], GroupView] | None = None
        self.listening = False
        self.draining = False
        self.beat_s = -1.0
        self.reloads = {"done": 0, "failed": 0}
        self.last_reload_failed = False
        self.beats: list[Callable[[float], None]] = []
        self.attend: Callable[[], None] = _nothing
        self.log: Callable[[], Sequence[Mapping[str, Any]]] = tuple
        self.log_level: Callable[[], str] = str
        self.set_log_level: Callable[[str], None] = _ignore
        self.tls: Callable[[], Mapping[str, Any] | None] = _no_tls
        self.renew_tls: Callable[[], str] = str
        self.backups: BackupDesk | None = None
        self.copies: CopyDesk | None = None
        self.log_lines: Mapping[str, int] = {}
        self.conversions: Mapping[str, int] = {}
        self.syncs: Histogram | None = None
        self.cluster_waiting: Callable[[], int] = int
        self.clock: Callable[[], float] = float

    def clock_s(self) -> float:
        """What the clock reads."""
        return self.clock()

    def busy_s(self, now: float) -> float:
        """For how many seconds the event loop has been busy, below 0 where nobody measures it."""
        return -1.0 if self.turn is None else self.turn.pulse.busy_s(now)

    def wake(self, session: int) -> None:
        """Have the deadline of a session looked at again."""
        if self.turn is not None:
            self.turn.hub.wake(session)

    def random_bytes(self, count: int) -> bytes:
        """So many bytes that nobody can guess."""
        return self.random(count)

    def count_reload(self, *, ok: bool) -> None:
        """Count that the configuration was read again, and whether it could be used."""
        self.reloads["done" if ok else "failed"] += 1
        self.last_reload_failed = not ok

    def is_alive(self, now: float) -> bool:
        """Whether the event loop's timer fires."""
        return self.beat_s < 0.0 or now - self.beat_s <= _PULSE_S

    def saves(self) -> bool:
        """Whether the storage saves messages, or there is none."""
        saving = None if self.turn is None else self.turn.saving
        return saving is None or not saving.failing

    def problems(self, *, storage: bool = True, standby: bool = True) -> list[str]:
        """Why the server is not ready, in words; nothing if it is.

        :param storage: count a storage that does not save as a problem.
        :param standby: count it as a problem that another server of the group takes clients.
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
