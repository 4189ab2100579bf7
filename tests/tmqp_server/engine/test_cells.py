"""Cells: counters and values that live for a time, against a dict with a clock."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tmqp_server.engine.world import World
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    ADD,
    CELL_COUNT,
    CELL_TTL,
    COUNTER,
    MOST_COUNT,
    SET,
    SUBTRACT,
    UNIT_NS,
    VALUE,
    CellPortion,
    CellSnapshot,
    ChangeCell,
    Command,
    Connect,
    DescribeCell,
    DropCell,
    ListCells,
    MakeCounter,
    PutValue,
    ReadCell,
)
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.limits import EngineLimits

ME = 1
SPACE = "s"
SECONDS = 4


class Stage:
    """A broker with one client, and the time."""

    def __init__(self, limits: EngineLimits | None = None) -> None:
        self.broker = Broker(limits)
        self.now = 1_000.0
        self.broker.step(Connect(ME, None, "me"), self.now)

    def ask(self, command: Command) -> tuple[int, object]:
        (reply,) = self.broker.step(command, self.now)
        assert isinstance(reply, Reply)
        return reply.code, reply.body

    def code(self, command: Command) -> int:
        return self.ask(command)[0]

    def wait(self, seconds: float) -> None:
        """Let time pass, with everything that is due on the way."""
        end = self.now + seconds
        for _ in range(100_000):
            due = self.broker.next_deadline()
            if due is None or due > end:
                self.now = end
                return
            self.now = max(self.now, due)
            assert self.broker.on_deadline(self.now) == []
        raise AssertionError("the broker always wants to be called at once")

    def listed(self, limit: int = 1_000) -> list[CellSnapshot]:
        found: list[CellSnapshot] = []
        first = 0
        while True:
            code, body = self.ask(ListCells(ME, "r", SPACE, first, limit))
            assert code == 0
            assert isinstance(body, CellPortion)
            found += body.cells
            first = body.following
            if not first:
                return found

    def check(self) -> None:
        """The books and the counts are what is there."""
        cells = self.broker._cells
        assert self.broker._core.state_bytes >= cells.charged()
        for space in cells._spaces.values():
            there = [cell for table in space._tables for cell in table.values()]
            assert space.count == len(there)
            kinds = [cell.kind for cell in there]
            assert space.counters == kinds.count(COUNTER)
            values = [cell.value for cell in there if cell.kind == VALUE]
            assert space.value_bytes == sum(len(each) for each in values)
            in_order = sorted(there, key=lambda cell: cell.number)
            assert space.listed(0, 10**6) == in_order
        ticks = cells._wheel._ticks.values()
        filed = [cell for tick in ticks for part in tick._parts for cell in part]
        assert sum(tick.count for tick in ticks) == len(filed)
        there = [each for space in cells._spaces.values() for each in space.listed(0, 10**6)]
        assert len(filed) == len(there)
        assert set(filed) == set(there)


def counter(key: bytes = b"k", count: int = 5, ttl: int = 60, unit: int = SECONDS) -> MakeCounter:
    return MakeCounter(ME, "r", SPACE, key, count, ttl, unit)


def value(key: bytes = b"k", data: bytes = b"data", ttl: int = 60) -> PutValue:
    return PutValue(ME, "r", SPACE, key, data, ttl, SECONDS)


def change(how: int, amount: int, key: bytes = b"k", what: int = CELL_COUNT) -> ChangeCell:
    return ChangeCell(ME, "r", SPACE, key, what, how, amount)


def read(key: bytes = b"k", kind: int = -1) -> ReadCell:
    return ReadCell(ME, "r", SPACE, key, kind)


def seen(stage: Stage, key: bytes = b"k") -> CellSnapshot:
    code, body = stage.ask(read(key))
    assert code == 0
    assert isinstance(body, CellSnapshot)
    return body


def test_a_counter_is_made_counted_down_and_ends() -> None:
    stage = Stage()
    assert stage.code(read()) == 404
    assert stage.code(counter(count=2)) == 0
    assert stage.code(counter(count=9)) == 481, "and nothing is changed"
    assert [stage.code(change(SUBTRACT, 1)) for _ in range(3)] == [0, 0, 406]
    assert seen(stage).count == 0
    stage.wait(59.9)
    assert seen(stage).left_ns == 100_000_000
    stage.wait(0.1)
    assert stage.code(read()) == 404
    assert stage.code(counter(count=7)) == 0, "its key is free at once"
    stage.check()


def test_what_nobody_looks_for_is_freed_soon_after_it_has_ended() -> None:
    stage = Stage()
    before = stage.broker._core.state_bytes
    for number in range(1_000):
        assert stage.code(counter(b"%d" % number, ttl=1 + number % 90)) == 0
    stage.check()
    stage.wait(90.0)
    assert stage.broker._cells._spaces[SPACE].count <= 12, "the last ones, for an eighth"
    stage.wait(0.5)
    stage.check()
    assert stage.broker._cells._spaces == {}
    assert stage.broker._core.state_bytes == before
    assert stage.broker.next_deadline() is None


def test_cells_that_live_for_ages_need_few_ticks() -> None:
    stage = Stage()
    for number in range(3_000):
        assert stage.code(counter(b"%d" % number, ttl=7**number % 10**12, unit=SECONDS)) == 0
    assert stage.code(counter(b"x", ttl=2**64 - 1, unit=6)) == 0
    stage.check()
    assert len(stage.broker._cells._wheel._ticks) < 512 * 14
    stage.wait(100_000.0)
    stage.check()


def test_the_order_of_ticks_does_not_grow_with_cells_that_are_dropped() -> None:
    stage = Stage()
    stage.code(counter(b"stays"))
    for number in range(2_000):
        stage.code(counter(b"x", ttl=1 + number, unit=SECONDS))
        assert stage.code(DropCell(ME, "r", SPACE, b"x")) == 0
    assert len(stage.broker._cells._wheel._order) < 100


def test_a_block_that_has_shrunk_is_made_anew() -> None:
    stage = Stage()
    for number in range(512 * 3):
        stage.code(counter(b"%d" % number))
    for number in range(512 * 3):
        if number % 512 != 7:
            assert stage.code(DropCell(ME, "r", SPACE, b"%d" % number)) == 0
    stage.check()
    blocks = stage.broker._cells._spaces[SPACE]._blocks
    assert all(each.__sizeof__() < 1_000 for each in blocks.values())
    (tick,) = stage.broker._cells._wheel._ticks.values()
    assert all(each.__sizeof__() < 1_000 for each in tick._parts)
    assert [cell.key for cell in stage.listed(1)] == [b"7", b"519", b"1031"]


def test_a_value_is_replaced_in_its_place_and_a_counter_is_not() -> None:
    stage = Stage()
    stage.code(value(b"a"))
    stage.code(value(b"b"))
    stage.code(counter(b"c"))
    assert stage.code(value(b"a", b"longer data")) == 0
    assert stage.code(value(b"c")) == 406
    assert stage.code(counter(b"a")) == 481
    assert [(each.key, each.value) for each in stage.listed()] == [
        (b"a", b"longer data"),
        (b"b", b"data"),
        (b"c", b""),
    ]
    stage.check()


def test_a_kind_that_is_not_wanted_is_not_told() -> None:
    stage = Stage()
    stage.code(value(b"v"))
    stage.code(counter(b"c"))
    assert [stage.code(read(b"v", kind)) for kind in (-1, COUNTER, VALUE)] == [0, 406, 0]
    assert [stage.code(read(b"c", kind)) for kind in (-1, COUNTER, VALUE)] == [0, 0, 406]
    assert stage.code(change(ADD, 1, b"v")) == 406


def test_a_sum_begins_again_at_its_modulus_or_is_refused() -> None:
    stage = Stage()
    stage.code(counter(count=250))
    wrapping = ChangeCell(ME, "r", SPACE, b"k", CELL_COUNT, ADD, 10, modulus=256)
    assert stage.code(wrapping) == 0
    assert seen(stage).count == 4
    assert stage.code(change(SET, MOST_COUNT)) == 0
    assert stage.code(change(ADD, 1)) == 406
    assert seen(stage).count == MOST_COUNT


def test_a_counter_is_made_by_the_change_that_begins_with_it_or_not_at_all() -> None:
    stage = Stage()
    begin = ChangeCell(
        ME, "r", SPACE, b"k", CELL_COUNT, SUBTRACT, 2, initial=5, ttl=60, ttl_unit=SECONDS
    )
    found = []
    for _ in range(3):
        code, body = stage.ask(begin)
        found.append((code, body.count if isinstance(body, CellSnapshot) else None))
    assert found == [(0, 3), (0, 1), (406, None)]
    too_much = ChangeCell(ME, "r", SPACE, b"n", CELL_COUNT, SUBTRACT, 6, initial=5, ttl=60)
    assert stage.code(too_much) == 406
    assert stage.code(read(b"n")) == 404


@pytest.mark.parametrize(
    ("how", "amount", "left_s"),
    [(SET, 10, 10), (ADD, 10, 60), (SUBTRACT, 10, 40), (SUBTRACT, 50, None), (SET, 0, None)],
)
def test_a_time_to_live_is_set_or_moved(how: int, amount: int, left_s: int | None) -> None:
    stage = Stage()
    stage.code(counter(ttl=60))
    stage.wait(10.0)
    assert stage.code(change(how, amount, what=CELL_TTL)) == 0, "in the unit of the cell"
    stage.check()
    if left_s is None:
        assert stage.code(read()) == 404
    else:
        assert seen(stage).left_ns == left_s * UNIT_NS[SECONDS]
        stage.wait(left_s - 0.001)
        assert stage.code(read()) == 0
        stage.wait(0.001)
        assert stage.code(read()) == 404


def test_what_cannot_be_is_refused_and_changes_nothing() -> None:
    stage = Stage()
    stage.code(counter())
    before = seen(stage).count
    for command in (
        counter(b"n", unit=0),
        counter(b"n", unit=7),
        counter(b"n", count=-1),
        counter(b"n", count=MOST_COUNT + 1),
        counter(b"n", ttl=-1),
        PutValue(ME, "r", SPACE, b"n", b"", 1, 9),
        MakeCounter(ME, "r", "", b"n", 1, 1),
        change(3, 1),
        change(3, 1, what=CELL_TTL),
        change(ADD, -1),
        change(ADD, 1, what=2),
    ):
        assert stage.code(command) == 400, command
    assert seen(stage).count == before
    assert len(stage.listed()) == 1


def test_figures_are_those_of_the_last_minute_and_of_all_time() -> None:
    stage = Stage()
    stage.code(counter(ttl=1_000))
    for _ in range(3):
        stage.code(read())
    stage.code(change(ADD, 1))

    def figures() -> tuple[int, int, int, int]:
        code, body = stage.ask(DescribeCell(ME, "r", SPACE, b"k"))
        assert code == 0
        assert isinstance(body, CellSnapshot)
        return body.reads_per_minute, body.writes_per_minute, body.reads, body.writes

    assert figures() == (3, 2, 3, 2)
    stage.wait(49.0)
    stage.code(read())
    assert figures() == (4, 2, 4, 2)
    stage.wait(12.0)
    assert figures() == (1, 0, 4, 2)
    stage.wait(60.0)
    assert figures() == (0, 0, 4, 2)


def test_cells_are_listed_in_portions() -> None:
    stage = Stage(EngineLimits(max_cells_listed=10))
    for number in range(95):
        stage.code(counter(b"%d" % number, ttl=1 + number % 2))
    code, body = stage.ask(ListCells(ME, "r", SPACE))
    assert isinstance(body, CellPortion)
    assert (code, len(body.cells), body.following, body.counters) == (0, 10, 11, 95)
    stage.wait(1.5)
    assert [each.key for each in stage.listed(3)] == [b"%d" % n for n in range(1, 95, 2)]
    code, body = stage.ask(ListCells(ME, "r", SPACE, 0, 0))
    assert isinstance(body, CellPortion)
    assert (body.cells, body.counters) == ([], 47)
    code, body = stage.ask(ListCells(ME, "r", "other"))
    assert isinstance(body, CellPortion)
    assert (body.cells, body.counters, body.values) == ([], 0, 0)


LIMITS = EngineLimits(
    max_cell_spaces=3,
    max_cells_per_space=3,
    max_cell_key_bytes=3,
    max_cell_value_bytes=3,
)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        (
            "max_cell_spaces",
            lambda n: [MakeCounter(ME, "r", f"s{i}", b"k", 0, 9) for i in range(n)],
        ),
        ("max_cells_per_space", lambda n: [counter(b"%d" % i) for i in range(n)]),
        ("max_cell_key_bytes", lambda n: [counter(b"k" * n)]),
        ("max_cell_value_bytes", lambda n: [value(data=b"v" * n)]),
    ],
)
def test_at_the_limit_cells_are_made_and_above_they_are_refused(name: str, make: object) -> None:
    assert callable(make)
    at_limit, above = Stage(LIMITS), Stage(LIMITS)
    assert [at_limit.code(each) for each in make(getattr(LIMITS, name))][-1] == 0
    assert [above.code(each) for each in make(getattr(LIMITS, name) + 1)][-1] == 482
    above.check()


def test_a_full_space_has_room_once_cells_have_ended() -> None:
    stage = Stage(LIMITS)
    for number in range(3):
        stage.code(counter(b"%d" % number, ttl=1))
    stage.now += 2.0  # nothing was freed in the meantime
    assert stage.code(counter(b"n")) == 0


def test_the_answer_to_a_list_is_bounded() -> None:
    stage = Stage(replace(LIMITS, max_cells_listed=2))
    for number in range(3):
        stage.code(counter(b"%d" % number))
    code, body = stage.ask(ListCells(ME, "r", SPACE))
    assert code == 0
    assert isinstance(body, CellPortion)
    assert (len(body.cells), body.following) == (2, 3)


def test_cells_share_the_memory_with_everything_else() -> None:
    stage = Stage(EngineLimits(max_total_bytes=100_000))
    found = [stage.code(value(b"%d" % n, bytes(1_000))) for n in range(200)]
    assert found.count(0) > 30
    assert found[-1] == 503
    assert stage.broker._core.state_bytes <= 100_000
    assert stage.code(value(b"0", bytes(100_000))) == 503, "nor may one grow"
    assert seen(stage, b"0").value == bytes(1_000)
    stage.check()


def test_the_books_of_a_world_know_cells() -> None:
    world = World()
    world.connect("admin")
    assert world.step(MakeCounter(1, "r", SPACE, b"k", 1, 10)) == ["admin r: 0"]
    assert world.step(PutValue(1, "r", SPACE, b"v", b"data", 10)) == ["admin r: 0"]
    world.wait(1.0)
    assert world.broker._cells._spaces == {}


# --- The model -----------------------------------------------------------------------------------


@dataclass
class Known:
    """A cell as the model has it."""

    kind: int
    data: int | bytes
    due_ns: int
    unit: int


@dataclass
class Model:
    """A dict with a clock."""

    cells: dict[bytes, Known] = field(default_factory=dict)

    def find(self, key: bytes, now_ns: int) -> Known | None:
        known = self.cells.get(key)
        if known is not None and known.due_ns <= now_ns:
            del self.cells[key]
            return None
        return known

    def carry_out(self, command: Command, now_ns: int) -> tuple[int, object]:
        """The code, and what a cell holds if that is told."""
        if isinstance(command, MakeCounter):
            if self.find(command.key, now_ns) is not None:
                return 481, None
            due_ns = now_ns + command.ttl * UNIT_NS[command.unit]
            self.cells[command.key] = Known(COUNTER, command.count, due_ns, command.unit)
            return 0, None
        if isinstance(command, PutValue):
            known = self.find(command.key, now_ns)
            if known is not None and known.kind == COUNTER:
                return 406, None
            due_ns = now_ns + command.ttl * UNIT_NS[command.unit]
            self.cells[command.key] = Known(VALUE, command.value, due_ns, command.unit)
            return 0, None
        assert isinstance(command, (ReadCell, ChangeCell, DropCell))
        known = self.find(command.key, now_ns)
        if known is None:
            return 404, None
        if isinstance(command, DropCell):
            del self.cells[command.key]
            return 0, None
        if isinstance(command, ChangeCell):
            code = self._change(command, known, now_ns)
            if code:
                return code, None
        return 0, (known.data, max(known.due_ns - now_ns, 0))

    def _change(self, command: ChangeCell, known: Known, now_ns: int) -> int:
        amount = command.amount
        if command.what == CELL_TTL:
            span_ns = amount * UNIT_NS[known.unit]
            begin = {SET: now_ns, ADD: known.due_ns, SUBTRACT: known.due_ns}[command.change]
            known.due_ns = begin - span_ns if command.change == SUBTRACT else begin + span_ns
            return 0
        if not isinstance(known.data, int):
            return 406
        total = {SET: amount, ADD: known.data + amount, SUBTRACT: known.data - amount}
        if total[command.change] < 0:
            return 406
        known.data = total[command.change] % command.modulus
        return 0


KEYS = st.sampled_from([b"", b"a", b"b", b"c"])
COUNTS = st.integers(0, 255)
TTLS = st.tuples(st.integers(0, 3), st.integers(1, 5))


@st.composite
def commands(draw: st.DrawFn) -> Command:
    key = draw(KEYS)
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return MakeCounter(ME, "r", SPACE, key, draw(COUNTS), *draw(TTLS))
    if kind == 1:
        return PutValue(ME, "r", SPACE, key, draw(st.binary(max_size=3)), *draw(TTLS))
    if kind == 2:
        return DropCell(ME, "r", SPACE, key)
    if kind == 3:
        return ReadCell(ME, "r", SPACE, key)
    what = draw(st.sampled_from([CELL_COUNT, CELL_TTL]))
    how = draw(st.sampled_from([SET, ADD, SUBTRACT]))
    amount = draw(COUNTS) if what == CELL_COUNT else draw(st.integers(0, 3))
    return ChangeCell(ME, "r", SPACE, key, what, how, amount, modulus=256)


@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(
            commands(), st.sampled_from([0.0, 1e-6, 0.001, 0.1, 0.5, 1.0, 3.0, 60.0]), st.booleans()
        ),
        max_size=40,
    )
)
def test_cells_are_a_dict_with_a_clock(history: list[tuple[Command, float, bool]]) -> None:
    stage, model = Stage(), Model()
    for command, seconds, on_time in history:
        if on_time:
            stage.wait(seconds)
        else:
            stage.now += seconds  # the broker was not called in the meantime
        now_ns = int(stage.now * 1e9)
        code, told = stage.ask(command)
        shown: object = None
        if isinstance(told, CellSnapshot):
            data = told.count if told.kind == COUNTER else told.value
            shown = (data, told.left_ns)
        assert (code, shown) == model.carry_out(command, now_ns)
        living = [key for key in list(model.cells) if model.find(key, now_ns) is not None]
        assert {each.key for each in stage.listed(2)} == set(living)
    stage.check()
    stage.wait(1_000.0)
