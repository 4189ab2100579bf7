"""The door of Throttr against a dict with a clock, for whatever clients ask."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tmqp_server.doors.throttr.talk import Peer, world_with
from tmqp_server.doors.throttr.options import ThrottrOptions
from tmqp_wires.throttr import Reply, Request, words

UNIT_NS = {1: 1, 2: 10**3, 3: 10**6, 4: 10**9, 5: 60 * 10**9, 6: 3_600 * 10**9}


@dataclass
class Known:
    """A key as the model has it."""

    content: int | bytes
    ttl_type: int
    due_ns: int
    reads: int = 0
    writes: int = 1


@dataclass
class Model:
    """A dict with a clock; what is told of a request is its status and whatever follows."""

    width: int
    keys: dict[bytes, Known] = field(default_factory=dict)

    def find(self, key: bytes, now_ns: int) -> Known | None:
        known = self.keys.get(key)
        if known is not None and known.due_ns <= now_ns:
            del self.keys[key]
            return None
        return known

    def living(self, now_ns: int) -> list[bytes]:
        return [key for key in list(self.keys) if self.find(key, now_ns) is not None]

    def ask(self, request: Request, now_ns: int) -> tuple[object, ...]:
        known = self.find(request.key, now_ns)
        most = words.most_of(self.width)
        code = request.code
        if code == words.INSERT:
            return (self._insert(request, known, now_ns),)
        if code == words.SET:
            return (self._set(request, known, now_ns),)
        if code == words.LIST:
            return (True, *self.living(now_ns))
        if known is None:
            return (False,)
        if code == words.PURGE:
            del self.keys[request.key]
            return (True,)
        if code == words.STAT:
            return (True, known.reads, known.writes)
        if code == words.UPDATE:
            return (self._update(request, known, now_ns),)
        if isinstance(known.content, int) != (code == words.QUERY):
            return (False,)
        known.reads += 1
        ttl = min((known.due_ns - now_ns) // UNIT_NS[known.ttl_type], most)
        return (True, known.content, known.ttl_type, ttl)

    def _insert(self, request: Request, known: Known | None, now_ns: int) -> bool:
        if known is not None or request.ttl_type not in UNIT_NS:
            return False
        due_ns = now_ns + request.ttl * UNIT_NS[request.ttl_type]
        self.keys[request.key] = Known(request.amount, request.ttl_type, due_ns)
        return True

    def _set(self, request: Request, known: Known | None, now_ns: int) -> bool:
        if request.ttl_type not in UNIT_NS:
            return False
        due_ns = now_ns + request.ttl * UNIT_NS[request.ttl_type]
        if known is None:
            self.keys[request.key] = Known(request.value, request.ttl_type, due_ns)
            return True
        if isinstance(known.content, int):
            return False
        known.content, known.ttl_type, known.due_ns = request.value, request.ttl_type, due_ns
        known.writes += 1
        return True

    def _update(self, request: Request, known: Known, now_ns: int) -> bool:
        if request.change > 2 or request.attribute > 1:
            return False
        if request.attribute == words.ATTRIBUTE_TTL:
            span_ns = request.amount * UNIT_NS[known.ttl_type]
            ways = (now_ns + span_ns, known.due_ns + span_ns, known.due_ns - span_ns)
            known.due_ns = ways[request.change]
        else:
            if not isinstance(known.content, int):
                return False
            total = (
                request.amount,
                (known.content + request.amount) % (words.most_of(self.width) + 1),
                known.content - request.amount,
            )[request.change]
            if total < 0:
                return False
            known.content = total
        known.writes += 1
        return True


def told(reply: Reply) -> tuple[object, ...]:
    """A reply as the model tells it."""
    if not reply.ok:
        return (False,)
    if reply.code == words.QUERY:
        return (True, reply.amount, reply.ttl_type, reply.ttl)
    if reply.code == words.GET:
        return (True, reply.value, reply.ttl_type, reply.ttl)
    if reply.code == words.LIST:
        return (True, *[item.name for item in reply.items])
    if reply.code == words.STAT:
        return (True, reply.numbers["reads"], reply.numbers["writes"])
    return (True,)


KEYS = st.sampled_from([b"", b"a", b"b", b"\xff"])
UNITS = st.sampled_from([0, 1, 2, 3, 4, 4, 4, 5, 6, 7])


@st.composite
def requests(draw: st.DrawFn) -> Request:
    numbers = st.sampled_from([0, 1, 2, 3, 100, 254, 255])
    code = draw(
        st.sampled_from(
            [
                words.INSERT,
                words.SET,
                words.QUERY,
                words.GET,
                words.UPDATE,
                words.UPDATE,
                words.PURGE,
                words.STAT,
                words.LIST,
            ]
        )
    )
    key = b"" if code == words.LIST else draw(KEYS)
    if code == words.INSERT:
        return Request(code, key, b"", draw(numbers), draw(UNITS), draw(numbers))
    if code == words.SET:
        return Request(code, key, draw(st.binary(max_size=3)), 0, draw(UNITS), draw(numbers))
    if code == words.UPDATE:
        which, how = draw(st.integers(0, 2)), draw(st.integers(0, 3))
        return Request(code, key, b"", draw(numbers), 0, 0, which, how)
    return Request(code, key)


CHUNKS = st.lists(
    st.tuples(
        st.lists(requests(), min_size=1, max_size=6),
        st.sampled_from([0.0, 1e-6, 1e-3, 0.1, 0.9, 1.0, 59.0, 3_600.0]),
    ),
    max_size=12,
)


@settings(max_examples=200)
@given(CHUNKS, st.sampled_from(words.DIALECTS), st.sampled_from(words.VALUE_SIZES))
def test_the_door_is_a_dict_with_a_clock(
    history: list[tuple[list[Request], float]], dialect: str, width: int
) -> None:
    world = world_with(ThrottrOptions(dialect=dialect, value_bytes=width))
    peer, model = Peer(world), Model(width)
    for asked, seconds in history:
        world.now += seconds
        now_ns = int(world.now * 1e9)
        expected = [model.ask(each, now_ns) for each in asked]
        assert [told(each) for each in peer.ask(*asked)] == expected
    now_ns = int(world.now * 1e9)
    counts = peer.one(Request(words.INFO)).numbers
    contents = [model.keys[key].content for key in model.living(now_ns)]
    counters = [each for each in contents if isinstance(each, int)]
    assert counts["keys"] >= len(contents)
    world.now += 0.5
    world.settle()
    after = peer.one(Request(words.INFO)).numbers
    there = model.living(int(world.now * 1e9))
    assert after["keys"] == len(there)
    assert after["counters"] == sum(isinstance(model.keys[key].content, int) for key in there)
    assert len(counters) >= after["counters"]
