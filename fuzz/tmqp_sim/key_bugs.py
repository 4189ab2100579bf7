"""The bugs that are planted where the keys of messages count; see ``mutants.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tmqp_server.engine.delivery.keyed_choosing import KeyChooser
from tmqp_server.engine.model.keyed import KeyedList
from tmqp_server.engine.model.keys import Bucket, KeyTable
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.queues import Queue

__all__ = ["KEY_BUGS"]


def _locks_nothing(_original: Any) -> Any:
    def in_order(
        self: KeyChooser, queue: Queue, waiting: KeyedList, message: Message, _key: str,
        takers: int, ready: int, now: float,
    ) -> bool:  # fmt: skip
        return self._to_anybody(queue, waiting, message, takers & ready, now)

    return in_order


def _belongs_to_nobody(_original: Any) -> Any:
    def to_owner(
        self: KeyChooser, queue: Queue, waiting: KeyedList, message: Message, _number: int,
        takers: int, ready: int, now: float,
    ) -> bool:  # fmt: skip
        return self._to_anybody(queue, waiting, message, takers & ready, now)

    return to_owner


def _does_not_wait(original: Any) -> Any:
    def close(self: KeyTable, bucket: Bucket) -> bool:
        bucket.in_hand = 0
        free: bool = original(self, bucket)
        return free

    return close


def _frees_nobody(_original: Any) -> Any:
    def free(_self: KeyedList, _name: object) -> bool:
        """They wait on."""
        return False

    return free


#: What makes each of them: name, text, owner, attribute, and the change.
KEY_BUGS: Final[tuple[tuple[str, str, Any, str, Callable[[Any], Any]], ...]] = (
    (
        "key-not-locked", "several messages of a key are sent at a time",
        KeyChooser, "_in_order", _locks_nothing,
    ),
    (
        "bucket-is-nobodys", "consumers take turns though a bucket is somebody's",
        KeyChooser, "_to_owner", _belongs_to_nobody,
    ),
    (
        "successor-does-not-wait", "a bucket goes to another while somebody has something of it",
        KeyTable, "close", _does_not_wait,
    ),
    (
        "key-never-free", "what waits for others of its key waits for good",
        KeyedList, "free", _frees_nobody,
    ),
)  # fmt: skip
