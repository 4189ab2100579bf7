"""The contract of a store about what is put aside before its commit, held against each adapter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tmqp_server.storage.stores import (
    HOMES,
    NOW_US,
    Home,
    Listed,
    OfStaged,
    Staged,
    batch,
    message,
    owed,
    with_queue,
)
from tmqp_server.storage.port import KeepMark, StoreBatch, StoreError


@pytest.fixture(params=sorted(HOMES))
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    made = HOMES[request.param](tmp_path / "data")
    yield made
    made.open().close(clean=False)


def marks(home: Home) -> list[tuple[str, int, int]]:
    return [(each.application, each.epoch, each.at_us) for each in home.open().recover().marks]


def staging(
    staged: dict[int, Staged] | None = None, dropped: list[int] | None = None, **more: Any
) -> StoreBatch:
    made = batch(*more.pop("changes", []), **more)
    made.staged.update(staged or {})
    made.dropped.extend(dropped or [])
    return made


def test_what_was_put_aside_is_there_with_the_mark_of_its_commit(home: Home) -> None:
    store = with_queue(home.open())
    store.write(staging({1: Staged(1, 2), 2: Staged(3)}), NOW_US)
    store.write(staging({3: Staged(4)}, appended={1: []}), NOW_US)
    assert owed(store) == []
    portions = [OfStaged(1, 1), Listed(1, [message(3)]), OfStaged(1, 3)]
    mark = KeepMark("app", 1, NOW_US)
    store.write(staging(dropped=[1, 2, 9], changes=[mark], portions=portions), NOW_US)
    assert owed(store) == [1, 2, 3, 4]
    assert marks(home) == [("app", 1, NOW_US)]
    store = home.open()
    store.recover()
    assert owed(store) == [1, 2, 3, 4]


@pytest.mark.parametrize("gone", ["never there", "dropped", "of an earlier process"])
def test_a_commit_of_what_is_not_aside_any_more_leaves_nothing(home: Home, gone: str) -> None:
    store = with_queue(home.open())
    store.write(staging({1: Staged(1), 2: Staged(2)}), NOW_US)
    if gone == "dropped":
        store.write(staging(dropped=[2]), NOW_US)
    elif gone == "of an earlier process":
        store = home.open()
        store.recover()
        store.write(staging({1: Staged(1)}), NOW_US)
    other = 3 if gone == "never there" else 2
    portions = [OfStaged(1, 1), OfStaged(1, other)]
    with pytest.raises(StoreError):
        store.write(staging(changes=[KeepMark("app", 1, NOW_US)], portions=portions), NOW_US)
    assert owed(store) == []
    store.write(staging(portions=[OfStaged(1, 1)]), NOW_US)
    assert owed(store) == [1], "what is aside can be committed all the same"
    store = home.open()
    assert [each.application for each in store.recover().marks] == []


def test_a_batch_that_fails_puts_nothing_aside(home: Home) -> None:
    store = with_queue(home.open())
    with pytest.raises((StoreError, ValueError), match="no messages"):
        store.write(staging({1: Staged(1)}, portions=[Listed(1, [])]), NOW_US)
    with pytest.raises(StoreError):
        store.write(staging(portions=[OfStaged(1, 1)]), NOW_US)
    assert owed(store) == []
