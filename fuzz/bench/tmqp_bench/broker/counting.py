"""What is sent again and again, and how deliveries are counted in a stream without decoding it."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["FixedSize", "Lines", "Pattern", "Rotation"]


class Rotation:
    """Messages encoded beforehand, which come round again: a window must be smaller."""

    __slots__ = ("_at", "_pieces")

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces
        self._at = 0

    def take(self, count: int) -> bytes:
        """The next so many, in one piece."""
        pieces = self._pieces
        at = self._at
        self._at = (at + count) % len(pieces)
        chosen = [*pieces[at : at + count]]
        while len(chosen) < count:
            chosen += pieces[: count - len(chosen)]
        return b"".join(chosen)


class FixedSize:
    """Messages that all have the same number of bytes."""

    __slots__ = ("_over", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._over = 0

    def count(self, data: bytes) -> int:
        """How many messages end in this piece."""
        whole, self._over = divmod(self._over + len(data), self._size)
        return whole


class Pattern:
    """Messages that hold a pattern once, which may lie across two pieces."""

    __slots__ = ("_pattern", "_tail")

    def __init__(self, pattern: bytes) -> None:
        self._pattern = pattern
        self._tail = b""

    def count(self, data: bytes) -> int:
        """How many patterns end in this piece."""
        data = self._tail + data
        keep = len(self._pattern) - 1
        self._tail = data[-keep:] if keep else b""
        return data.count(self._pattern)


class Lines:
    """Answers that take a fixed number of lines."""

    __slots__ = ("_each", "_over")

    def __init__(self, each: int) -> None:
        self._each = each
        self._over = 0

    def count(self, data: bytes) -> int:
        """How many answers end in this piece."""
        whole, self._over = divmod(self._over + data.count(b"\n"), self._each)
        return whole
