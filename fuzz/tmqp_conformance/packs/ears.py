"""The ears of the packs: readers of what servers of other protocols say."""

from __future__ import annotations

import json
from typing import Any, Final

from tmqp_conformance.packs.units import Unit

__all__ = ["Buffered", "HttpEar", "LineEar", "ObjectEar", "SizedEar"]

_MOST_BYTES: Final = 33_554_432
_NEWLINE: Final = b"\n"


class Buffered:
    """What the ears have in common: bytes that wait for the rest of a unit."""

    def __init__(self) -> None:
        self.complaint = ""
        self._held = b""

    @property
    def held_bytes(self) -> int:
        """What has come of a unit that is not whole."""
        return len(self._held)

    def feed(self, data: bytes) -> list[Unit]:
        """The units that are whole with these bytes."""
        if self.complaint:
            return []
        self._held += data
        units = []
        while (unit := self.next_unit()) is not None:
            units.append(unit)
        if len(self._held) > _MOST_BYTES:
            self.complaint = f"more than {_MOST_BYTES} bytes without an end"
        return units

    def next_unit(self) -> Unit | None:
        """Take one unit from what is held; None if it is not whole."""
        raise NotImplementedError

    def cut(self, size: int) -> bytes:
        """Take so many bytes from what is held."""
        data, self._held = self._held[:size], self._held[size:]
        return data


class LineEar(Buffered):
    """Lines of text: units ``line`` with their ``text``."""

    def next_unit(self) -> Unit | None:
        """See the base."""
        place = self._held.find(_NEWLINE)
        return None if place < 0 else Unit("line", text=self.cut(place + 1)[:-1])


class ObjectEar(Buffered):
    """JSON objects, one a line: units ``object``, and ``blank`` for an empty line."""

    def next_unit(self) -> Unit | None:
        """See the base."""
        place = self._held.find(_NEWLINE)
        if place < 0:
            return None
        line = self.cut(place + 1)[:-1]
        if not line:
            return Unit("blank")
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            self.complaint = f"the peer sent what is no JSON object: {line[:100]!r}"
            return None
        return Unit("object", json=line, keys=" ".join(sorted(value)))


class SizedEar(Buffered):
    """A size of four bytes and data: units ``answer`` with their ``data``, and ``error``.

    :param errors: what the data of an error begins with.
    """

    def __init__(self, errors: bytes = b"E_") -> None:
        super().__init__()
        self._errors = errors

    def next_unit(self) -> Unit | None:
        """See the base."""
        if len(self._held) < 4:
            return None
        size = int.from_bytes(self._held[:4], "big")
        if size > _MOST_BYTES:
            self.complaint = f"the peer announces an answer of {size} bytes"
            return None
        if len(self._held) < 4 + size:
            return None
        data = self.cut(4 + size)[4:]
        if data.startswith(self._errors):
            code, _, text = data.partition(b" ")
            return Unit("error", code=code, text=text)
        return Unit("answer", data=data)


class HttpEar(Buffered):
    """Answers of HTTP/1.1: units ``http`` with status (``code``), ``body`` and header fields.

    A field is called as it is written in small letters, with an underscore for each hyphen.
    """

    def next_unit(self) -> Unit | None:
        """See the base."""
        end = self._held.find(b"\r\n\r\n")
        if end < 0:
            return None
        first, *lines = self._held[:end].split(b"\r\n")
        words = first.split(b" ", 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
            self.complaint = f"the peer sent what is no answer of HTTP: {first[:100]!r}"
            return None
        fields: dict[str, Any] = {}
        for line in lines:
            name, _, value = line.partition(b":")
            key = name.decode("latin-1").lower().replace("-", "_")
            fields[key] = value.strip().decode("latin-1")
        body = self._body(fields, end + 4)
        if body is None:
            return None
        fields.pop("body", None), fields.pop("code", None)
        return Unit("http", code=int(words[1]), body=body, **fields)

    def _body(self, fields: dict[str, Any], start: int) -> bytes | None:
        """Take head and body; None if the body is not whole."""
        if fields.get("transfer_encoding", "").lower() == "chunked":
            return self._chunks(start)
        length = fields.get("content_length", "0")
        if not length.isdigit():
            self.complaint = f"the peer announces a body of {length!r} bytes"
            return None
        if len(self._held) < start + int(length):
            return None
        return self.cut(start + int(length))[start:]

    def _chunks(self, at: int) -> bytes | None:
        parts: list[bytes] = []
        while True:
            end = self._held.find(b"\r\n", at)
            if end < 0:
                return None
            try:
                size = int(self._held[at:end].split(b";")[0], 16)
            except ValueError:
                self.complaint = f"the size of a chunk is {self._held[at:end][:20]!r}"
                return None
            after = end + 2 + size + 2
            if len(self._held) < after:
                return None
            if size == 0:
                self.cut(after)
                return b"".join(parts)
            parts.append(self._held[end + 2 : end + 2 + size])
            at = after
