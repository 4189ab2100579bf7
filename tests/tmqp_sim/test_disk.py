"""The audit of the disk under test: what is missing is seen, and what has come back."""

from __future__ import annotations

import pytest

from tmqp.blocks import StoredMessage
from tmqp_server.engine.effects import Append, ClearStored, Erase
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import MARK_HIGH, Message
from tmqp_server.storage.memory import MemoryStore
from tmqp_server.storage.port import KeepQueue, Retention, StoreBatch
from tmqp_sim.audit import Audit
from tmqp_sim.world import Violation

KEY = 3


def append(sequence: int, *, high: bool = False, transient: bool = False, old: int = 0) -> Append:
    """A message is to be kept."""
    producer = Origin(1, "producer", None, None, "tmqp")
    marks = MARK_HIGH if high else 0
    message = Message(f"m{sequence}", producer, "ch", 1, 5, "wire", marks, sequence)
    return Append(sequence, message, "ch", 1, KEY, sequence, transient, KEY if old else 0, old)


def erase(sequence: int) -> Erase:
    """A message is settled."""
    return Erase(0, KEY, sequence)


def store_of(*sequences: int) -> MemoryStore:
    """A disk that holds these."""
    store = MemoryStore()
    batch = StoreBatch()
    batch.changes.append(KeepQueue(KEY, "ch", 1, b"", Retention()))
    batch.appended[KEY] = [
        StoredMessage(sequence, 1, 0, 0, 0, 0, 0, 0, 0, 1, b"x") for sequence in sequences
    ]
    store.write(batch, 1)
    return store


def batch_of(audit: Audit, *effects: Append | Erase | ClearStored, ok: bool = True) -> None:
    """One batch, written or not."""
    audit.see(list(effects))
    audit.taken()
    audit.written(ok)


def problem(audit: Audit, *sequences: int) -> str:
    """What the audit says of a disk that holds these; empty if all is well."""
    store = store_of(*sequences)
    try:
        audit.check(store, store.recover())
    except Violation as violation:
        return str(violation).removeprefix("storage: ")
    return ""


def test_what_was_written_must_be_there() -> None:
    audit = Audit()
    batch_of(audit, append(1), append(2))
    assert problem(audit, 1, 2) == ""
    assert problem(audit, 1) == "not on the disk any more: m2 (queue 3, sequence 2)"


def test_what_was_settled_must_be_gone() -> None:
    audit = Audit()
    batch_of(audit, append(1), append(2), erase(1))
    assert problem(audit, 2) == ""
    assert problem(audit, 1, 2) == "settled, and on the disk again: (3, 1)"


def test_a_failed_batch_leaves_nothing_and_owes_its_settling() -> None:
    audit = Audit()
    batch_of(audit, append(1))
    batch_of(audit, append(2), erase(1), ok=False)
    assert problem(audit, 1) == ""
    batch_of(audit, append(3))
    assert problem(audit, 3) == ""
    assert "again: (3, 1)" in problem(audit, 1, 3)


def test_a_newer_copy_takes_the_place_of_the_older() -> None:
    audit = Audit()
    batch_of(audit, append(1))
    batch_of(audit, append(2, old=1), ok=False)
    assert problem(audit, 1) == ""
    batch_of(audit, append(2, old=1))
    assert problem(audit, 2) == ""


def test_transient_messages_are_nobodys_loss() -> None:
    audit = Audit()
    batch_of(audit, append(1, transient=True), append(2))
    assert problem(audit, 2) == ""


def test_a_cleared_range_is_of_one_priority() -> None:
    audit = Audit()
    batch_of(audit, append(1), append(2, high=True), append(3), append(4))
    batch_of(audit, ClearStored(KEY, False, 1, 3))
    assert problem(audit, 2, 4) == ""


def test_what_a_store_holds_is_what_it_owes() -> None:
    audit = Audit()
    batch_of(audit, append(1), append(2))
    audit.check_store(store_of(1, 2))
    for sequences, text in (
        ((1,), r"\[\(3, 2\)\] are not there, and \[\] are"),
        ((1, 2, 4), r"\[\] are not there, and \[\(3, 4\)\] are"),
    ):
        with pytest.raises(Violation, match=text):
            audit.check_store(store_of(*sequences))


@pytest.mark.parametrize("kept", [True, False])
def test_a_crash_keeps_the_batch_under_way_or_loses_it(kept: bool) -> None:
    audit = Audit()
    audit.see([append(1)])
    audit.taken()
    audit.see([append(2)])
    audit.crashed(kept)
    assert problem(audit, *([1] if kept else [])) == ""
