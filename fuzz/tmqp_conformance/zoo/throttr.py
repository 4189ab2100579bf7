"""A small server of Throttr, right in what it does, and copies that are broken in one thing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

from tmqp.testing.conformance import Case
from tmqp_conformance.packs.throttr.words import MOST_BYTES, NEWER, WIDTH
from tmqp_conformance.zoo.small import SmallMachine, SmallSession
from tmqp_wires.throttr import Request, RequestDecoder, Violation, replies, words
from tmqp_wires.throttr.requests import inner_request
from tmqp_wires.throttr.words import DIALECT_71, DIALECT_73, NO, YES

__all__ = ["BROKEN_THROTTR", "SmallThrottr"]

_UNITS_S: Final = {1: 1e-9, 2: 1e-6, 3: 1e-3, 4: 1.0, 5: 60.0, 6: 3_600.0}
_NS: Final = 1_000_000_000
_MODULUS: Final = 1 << (8 * WIDTH)


class Session(SmallSession):
    """One connection, and the channels that it is on; one twice is on it twice."""

    def __init__(self, dialect: str, identity: bytes) -> None:
        super().__init__()
        self.dialect = dialect
        self.identity = identity
        self.decoder = RequestDecoder(dialect, WIDTH, MOST_BYTES)
        self.channels: list[bytes] = []


class Cell:
    """What a key has; ``end_s`` is when it is over."""

    def __init__(self, unit: int, end_s: float, quota: int, value: bytes | None) -> None:
        self.unit = unit
        self.end_s = end_s
        self.quota = quota
        self.value = value


class SmallThrottr(SmallMachine[Session]):
    """The server, at one address with each dialect: keys, and who is on a channel."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.cells: dict[bytes, Cell] = {}
        self._identities = count(1)
        self._answers: dict[int, Callable[[Session, Request], bytes]] = {
            words.INSERT: self.insert,
            words.QUERY: self.query,
            words.UPDATE: self.update,
            words.PURGE: self.purge,
            words.SET: self.put,
            words.GET: self.get,
            words.LIST: self.list_keys,
            words.INFO: self.info,
            words.STAT: self.stat,
            words.STATS: self.stats,
            words.SUBSCRIBE: self.subscribe,
            words.UNSUBSCRIBE: self.unsubscribe,
            words.PUBLISH: self.publish,
            words.CONNECTIONS: self.connections,
            words.CONNECTION: self.connection,
            words.CHANNELS: self.channels,
            words.CHANNEL: self.channel,
            words.WHOAMI: self.whoami,
            words.EVENT: self.event,
        }

    def open(self, case: Case, now: float) -> int | None:
        """See :class:`SmallMachine`."""
        self.now = now
        return super().open(case, now)

    def receive(self, number: int, data: bytes, now: float) -> None:
        """See :class:`SmallMachine`."""
        self.now = now
        super().receive(number, data, now)

    def made(self) -> Session:
        """See :class:`SmallMachine`."""
        # No first byte of an id is that of a reply.
        identity = b"\xaa" + next(self._identities).to_bytes(15, "big")
        session = Session(DIALECT_73 if self.place == NEWER else DIALECT_71, identity)
        if session.dialect == DIALECT_73:
            session.channels = self.first_channels(session)
        return session

    def heard(self, session: Session, data: bytes) -> None:
        """See :class:`SmallMachine`."""
        for event in session.decoder.receive(data):
            if session.closed or self.crashed:
                return
            if isinstance(event, Violation):
                self.on_unknown(session)
            else:
                self.reply(session, event)

    def left(self, session: Session) -> None:
        """A connection is over."""
        session.channels = []

    def reply(self, session: Session, request: Request) -> None:
        """Answer a request; pushes that it leads to precede its reply."""
        data = self.answer(session, request)
        session.out += data

    def answer(self, session: Session, request: Request) -> bytes:
        """The reply to a request."""
        return self._answers[request.code](session, request)

    def found(self, key: bytes) -> Cell | None:
        """What is there at this time."""
        cell = self.cells.get(key)
        if cell is not None and cell.end_s <= self.now:
            del self.cells[key]
            return None
        return cell

    def end_of(self, request: Request) -> float | None:
        """When what is made now will be over; None for a unit that there is not."""
        unit_s = _UNITS_S.get(request.ttl_type)
        return None if unit_s is None else self.now + request.ttl * unit_s

    def left_of(self, cell: Cell) -> int:
        """The whole units that are left."""
        return max(0, int((cell.end_s - self.now) / _UNITS_S.get(cell.unit, 1.0)))

    def live(self) -> list[tuple[bytes, Cell]]:
        """Every key."""
        return [(key, cell) for key in [*self.cells] if (cell := self.found(key)) is not None]

    # -- what the broken ones change ------------------------------------------------------------

    def on_unknown(self, session: Session) -> None:
        """A request that there is not."""
        session.out += NO
        session.closed = True
        self.left(session)

    def first_channels(self, session: Session) -> list[bytes]:
        """What a connection of 7.3 is on from the beginning."""
        return [b"*", session.identity.hex().encode()]

    def insert(self, session: Session, request: Request) -> bytes:
        """INSERT."""
        end_s = self.end_of(request)
        if end_s is None or self.found(request.key) is not None:
            return NO
        self.cells[request.key] = Cell(request.ttl_type, end_s, request.amount, None)
        return YES

    def query(self, session: Session, request: Request) -> bytes:
        """QUERY."""
        cell = self.found(request.key)
        if cell is None or cell.value is not None:
            return NO
        return replies.query_reply(cell.quota, cell.unit, self.left_of(cell), WIDTH)

    def update(self, session: Session, request: Request) -> bytes:
        """UPDATE."""
        cell = self.found(request.key)
        if cell is None or request.change > words.CHANGE_DECREASE:
            return NO
        if request.attribute == words.ATTRIBUTE_TTL:
            return self.update_ttl(cell, request)
        if request.attribute != words.ATTRIBUTE_QUOTA or cell.value is not None:
            return NO
        quota = request.amount
        if request.change == words.CHANGE_INCREASE:
            quota = cell.quota + request.amount
        elif request.change == words.CHANGE_DECREASE:
            quota = cell.quota - request.amount
        if quota < 0 and not self.wraps_below_zero():
            return NO
        cell.quota = quota % _MODULUS
        return YES

    def wraps_below_zero(self) -> bool:
        """Whether more may be taken off than there is."""
        return False

    def update_ttl(self, cell: Cell, request: Request) -> bytes:
        """UPDATE of the time to live."""
        by_s = request.amount * _UNITS_S[cell.unit]
        if request.change == words.CHANGE_PATCH:
            cell.end_s = self.now + by_s
        else:
            cell.end_s += by_s if request.change == words.CHANGE_INCREASE else -by_s
        return YES

    def purge(self, session: Session, request: Request) -> bytes:
        """PURGE."""
        if self.found(request.key) is None:
            return NO
        del self.cells[request.key]
        return YES

    def put(self, session: Session, request: Request) -> bytes:
        """SET."""
        end_s = self.end_of(request)
        cell = self.found(request.key)
        if end_s is None or (cell is not None and cell.value is None):
            return NO
        self.cells[request.key] = Cell(request.ttl_type, end_s, 0, request.value)
        return YES

    def get(self, session: Session, request: Request) -> bytes:
        """GET."""
        cell = self.found(request.key)
        if cell is None or cell.value is None:
            return NO
        return replies.get_reply(cell.unit, self.left_of(cell), cell.value, WIDTH)

    def list_keys(self, session: Session, request: Request) -> bytes:
        """LIST."""
        listing = replies.Fragments()
        for key, cell in self.live():
            kind = words.COUNTER if cell.value is None else words.BUFFER
            size = WIDTH if cell.value is None else len(cell.value)
            end_ns = max(0, int(cell.end_s * _NS))
            head = replies.list_head(key, kind, cell.unit, end_ns, size, WIDTH)
            listing.add(head, key, replies.LIST_WEIGHT + WIDTH + len(key))
        return listing.reply()

    def info(self, session: Session, request: Request) -> bytes:
        """INFO."""
        numbers = [0] * len(words.INFO_FIELDS)
        numbers[0] = int(self.now)
        return replies.info_reply(numbers, "small")

    def stat(self, session: Session, request: Request) -> bytes:
        """STAT."""
        if self.found(request.key) is None:
            return NO
        return replies.stat_reply(0, 0, 0, 0)

    def stats(self, session: Session, request: Request) -> bytes:
        """STATS."""
        listing = replies.Fragments()
        for key, _ in self.live():
            listing.add(replies.stats_head(key, 0, 0, 0, 0), key, replies.STATS_WEIGHT + len(key))
        return listing.reply()

    def on(self, channel: bytes) -> list[Session]:
        """Who is on a channel, once for each time."""
        return [
            each
            for each in self.sessions.values()
            for name in each.channels
            if name == channel and not each.closed
        ]

    def subscribe(self, session: Session, request: Request) -> bytes:
        """SUBSCRIBE."""
        if request.key not in session.channels:
            session.channels.append(request.key)
        return YES

    def unsubscribe(self, session: Session, request: Request) -> bytes:
        """UNSUBSCRIBE."""
        if request.key not in session.channels:
            return NO
        session.channels = [name for name in session.channels if name != request.key]
        return YES

    def receivers(self, session: Session, channel: bytes) -> list[Session]:
        """Who gets what this connection publishes."""
        return [
            each
            for each in self.on(channel)
            if each is not session or session.dialect == DIALECT_73
        ]

    def publish(self, session: Session, request: Request) -> bytes:
        """PUBLISH: a publisher's own message precedes its status."""
        found = self.receivers(session, request.key)
        for each in found:
            dialect = self.dialect_of_pushes(each)
            each.out += replies.push_bytes(dialect, request.key, request.value, WIDTH)
        return YES if found else NO

    def dialect_of_pushes(self, session: Session) -> str:
        """In which form a connection is sent messages."""
        return session.dialect

    def connections(self, session: Session, request: Request) -> bytes:
        """CONNECTIONS."""
        listing = replies.Fragments()
        for each in self.sessions.values():
            if not each.closed:
                listing.add(self.entry(each, session), b"", replies.CONNECTION_WEIGHT)
        return listing.reply()

    def connection(self, session: Session, request: Request) -> bytes:
        """CONNECTION."""
        for each in self.sessions.values():
            if each.identity == request.key and not each.closed:
                return YES + self.entry(each, session)
        return NO

    def entry(self, session: Session, asking: Session) -> bytes:
        """What is reported about a connection."""
        figures, requests = [0] * 7, [0] * len(words.ORDER_IN_CONNECTION)
        dialect = self.dialect_of_entries(asking)
        return replies.connection_entry(
            session.identity, "127.0.0.1", 5_000, figures, requests, dialect
        )

    def dialect_of_entries(self, session: Session) -> str:
        """In which form a connection is notified of others."""
        return session.dialect

    def channels(self, session: Session, request: Request) -> bytes:
        """CHANNELS."""
        listing = replies.Fragments()
        names = {name for each in self.sessions.values() for name in each.channels}
        for name in sorted(names):
            head = replies.channel_head(name, 0, 0, len(self.on(name)))
            listing.add(head, name, replies.CHANNEL_WEIGHT)
        return listing.reply()

    def channel(self, session: Session, request: Request) -> bytes:
        """CHANNEL."""
        entries = [
            replies.subscriber_entry(each.identity, int(self.now * _NS), 0, 0)
            for each in self.on(request.key)
        ]
        return replies.channel_reply(entries) if entries else NO

    def whoami(self, session: Session, request: Request) -> bytes:
        """WHOAMI."""
        return replies.whoami_reply(session.identity)

    def event(self, session: Session, request: Request) -> bytes:
        """EVENT."""
        inner = inner_request(request, WIDTH)
        return YES + (NO if inner is None else self.answer(session, inner))


# -- the broken ones ------------------------------------------------------------------------------


class _InsertsAgain(SmallThrottr):
    def insert(self, session: Session, request: Request) -> bytes:
        self.cells.pop(request.key, None)
        return super().insert(session, request)


class _GoesBelowZero(SmallThrottr):
    def wraps_below_zero(self) -> bool:
        return True


class _KeepsTheEnd(SmallThrottr):
    def update_ttl(self, cell: Cell, request: Request) -> bytes:
        return YES


class _CutsValues(SmallThrottr):
    def put(self, session: Session, request: Request) -> bytes:
        request.value = request.value[:255]
        return super().put(session, request)


class _KeepsTheFirst(SmallThrottr):
    def put(self, session: Session, request: Request) -> bytes:
        return NO if self.found(request.key) is not None else super().put(session, request)


class _PurgesNothing(SmallThrottr):
    def purge(self, session: Session, request: Request) -> bytes:
        return YES


class _AnyKind(SmallThrottr):
    def get(self, session: Session, request: Request) -> bytes:
        cell = self.found(request.key)
        if cell is not None and cell.value is None:
            return replies.get_reply(cell.unit, self.left_of(cell), b"", WIDTH)
        return super().get(session, request)


class _BlocksWhatIsOver(SmallThrottr):
    """A key stays taken for ten seconds more, as with the original."""

    def insert(self, session: Session, request: Request) -> bytes:
        cell = self.cells.get(request.key)
        if cell is not None and cell.end_s <= self.now:
            return NO
        return super().insert(session, request)

    def found(self, key: bytes) -> Cell | None:
        cell = self.cells.get(key)
        return None if cell is None or cell.end_s <= self.now else cell


class _LivesForEver(SmallThrottr):
    def found(self, key: bytes) -> Cell | None:
        return self.cells.get(key)


class _AnyUnit(SmallThrottr):
    def end_of(self, request: Request) -> float | None:
        return self.now + request.ttl * _UNITS_S.get(request.ttl_type, 1.0)


class _LosesRequests(SmallThrottr):
    """It carries out a hundred requests of a segment."""

    def heard(self, session: Session, data: bytes) -> None:
        for event in session.decoder.receive(data)[:100]:
            if isinstance(event, Violation):
                self.on_unknown(session)
            else:
                self.reply(session, event)


class _ReadsSegments(SmallThrottr):
    def heard(self, session: Session, data: bytes) -> None:
        super().heard(session, data)
        session.decoder.forget()


class _TextKeys(SmallThrottr):
    def answer(self, session: Session, request: Request) -> bytes:
        if request.code <= words.GET:
            request.key = request.key.decode("ascii", "ignore").encode()
        return super().answer(session, request)


class _HangsOnUnknown(SmallThrottr):
    def on_unknown(self, session: Session) -> None:
        return


class _StaysOnUnknown(SmallThrottr):
    def on_unknown(self, session: Session) -> None:
        session.out += NO


class _CrashesOnUnknown(SmallThrottr):
    def on_unknown(self, session: Session) -> None:
        self.crashed = True


class _SilentPublish(SmallThrottr):
    """PUBLISH has no answer, as with the first servers."""

    def publish(self, session: Session, request: Request) -> bytes:
        super().publish(session, request)
        return b""


class _AlwaysHeard(SmallThrottr):
    def publish(self, session: Session, request: Request) -> bytes:
        super().publish(session, request)
        return YES


class _NewerPushes(SmallThrottr):
    def dialect_of_pushes(self, session: Session) -> str:
        return DIALECT_73


class _OlderPushes(SmallThrottr):
    def dialect_of_pushes(self, session: Session) -> str:
        return DIALECT_71


class _StatusFirst(SmallThrottr):
    def publish(self, session: Session, request: Request) -> bytes:
        before, session.out = session.out, b""
        status = super().publish(session, request)
        pushed, session.out = session.out, before
        return status + pushed


class _ServesThePublisher(SmallThrottr):
    def receivers(self, session: Session, channel: bytes) -> list[Session]:
        return self.on(channel)


class _SubscribesTwice(SmallThrottr):
    def subscribe(self, session: Session, request: Request) -> bytes:
        session.channels.append(request.key)
        return YES


class _AlwaysLeaves(SmallThrottr):
    def unsubscribe(self, session: Session, request: Request) -> bytes:
        super().unsubscribe(session, request)
        return YES


class _BareIds(SmallThrottr):
    def whoami(self, session: Session, request: Request) -> bytes:
        return session.identity


class _OlderEntries(SmallThrottr):
    def dialect_of_entries(self, session: Session) -> str:
        return DIALECT_71


class _ShortInfo(SmallThrottr):
    """INFO has the 236 bytes of the document."""

    def info(self, session: Session, request: Request) -> bytes:
        return super().info(session, request)[:236]


class _BareListings(SmallThrottr):
    """Listings begin with the number of fragments, as in the document."""

    def list_keys(self, session: Session, request: Request) -> bytes:
        return super().list_keys(session, request)[1:]


class _TwoZeros(SmallThrottr):
    def stat(self, session: Session, request: Request) -> bytes:
        found = super().stat(session, request)
        return NO + NO if found == NO else found


class _ShortSubscribers(SmallThrottr):
    """CHANNEL has a count of 4 bytes and 28 for each subscriber, as in the document."""

    def channel(self, session: Session, request: Request) -> bytes:
        found = self.on(request.key)
        entries = [each.identity + bytes(12) for each in found]
        return YES + len(found).to_bytes(4, "little") + b"".join(entries) if found else NO


class _NobodyIsOnItsOwn(SmallThrottr):
    def first_channels(self, session: Session) -> list[bytes]:
        return []


class _ForgetsEvents(SmallThrottr):
    """It takes an EVENT and does not carry it out."""

    def event(self, session: Session, request: Request) -> bytes:
        return YES


#: name -> what is wrong with it, and how to make one.
BROKEN_THROTTR: Final[dict[str, tuple[str, Callable[[], SmallThrottr]]]] = {
    "inserts-again": ("lets INSERT replace a live key", _InsertsAgain),
    "goes-below-zero": ("takes more off a quota than there is", _GoesBelowZero),
    "keeps-the-end": ("answers an UPDATE of the time to live and does nothing", _KeepsTheEnd),
    "cuts-values": ("cuts values after 255 bytes", _CutsValues),
    "keeps-the-first": ("refuses to overwrite a buffer", _KeepsTheFirst),
    "purges-nothing": ("answers PURGE with 0x01 and does nothing", _PurgesNothing),
    "any-kind": ("answers GET of a counter with an empty value", _AnyKind),
    "blocks-what-is-over": ("does not free the key of what is over", _BlocksWhatIsOver),
    "lives-for-ever": ("ends no key", _LivesForEver),
    "any-unit": ("takes an unknown unit for seconds", _AnyUnit),
    "loses-requests": ("carries out a hundred requests of a segment", _LosesRequests),
    "reads-segments": ("drops what of a segment is no whole request", _ReadsSegments),
    "text-keys": ("leaves out bytes of keys that are no ASCII", _TextKeys),
    "hangs-on-unknown": ("does not answer an unknown request", _HangsOnUnknown),
    "stays-on-unknown": ("does not close behind an unknown request", _StaysOnUnknown),
    "crashes-on-unknown": ("dies of an unknown request", _CrashesOnUnknown),
    "silent-publish": ("does not answer PUBLISH", _SilentPublish),
    "always-heard": ("answers PUBLISH with 0x01 without subscribers", _AlwaysHeard),
    "newer-pushes": ("pushes in the form of 7.3 only", _NewerPushes),
    "older-pushes": ("pushes in the form of 7.1 only", _OlderPushes),
    "status-first": ("answers a publisher before its own message", _StatusFirst),
    "serves-the-publisher": ("sends a publisher of 7.1 its own message", _ServesThePublisher),
    "subscribes-twice": ("sends a message for each SUBSCRIBE", _SubscribesTwice),
    "always-leaves": ("answers UNSUBSCRIBE with 0x01 always", _AlwaysLeaves),
    "bare-ids": ("answers WHOAMI without a status", _BareIds),
    "older-entries": ("tells of a connection in 235 bytes only", _OlderEntries),
    "short-info": ("answers INFO with 236 bytes", _ShortInfo),
    "bare-listings": ("answers LIST without a status", _BareListings),
    "two-zeros": ("answers STAT of an unknown key with two bytes", _TwoZeros),
    "short-subscribers": ("answers CHANNEL with 28 bytes a subscriber", _ShortSubscribers),
    "nobody-is-on-its-own": ("puts no connection on a channel by itself", _NobodyIsOnItsOwn),
    "forgets-events": ("takes an EVENT and does not carry it out", _ForgetsEvents),
}
