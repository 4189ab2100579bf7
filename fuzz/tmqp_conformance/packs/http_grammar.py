"""The grammar of an HTTP/1.1 interface for the wire fuzzer.

Only requests without any doubt are judged: where HTTP leaves the server a choice (other versions,
chunks, ``Connection``, strange fields), it must live and answer readably, and no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from tmqp.testing import Seeded
from tmqp_conformance.packs.grammar import PackGrammar, choice, of_size
from tmqp_conformance.packs.units import Unit

__all__ = ["HttpGrammar"]

_FIRST: Final = re.compile(
    rb"([A-Z]+ /[!-$&->@-~]*)(?:\?(?:[!-$&-~]|%[0-7][0-9A-Fa-f])*)? HTTP/1\.1"
)
_FIELD: Final = re.compile(rb"[A-Za-z][A-Za-z-]{0,60}:[ \t]*[ -~]{0,200}")
#: Fields that change what the server does with the connection or the body.
_STRANGE: Final = frozenset(
    {b"connection", b"transfer-encoding", b"expect", b"upgrade", b"te", b"trailer", b"keep-alive"}
)
_MOST_HEAD: Final = 4_096
_MOST_BODY: Final = 1_048_576
_SMALL: Final = 100
_HOST: Final = re.compile(rb"[A-Za-z0-9.-]{0,60}(?::[0-9]{1,5})?")
_HEAD_END: Final = b"\r\n\r\n"
_ARGUMENTS: Final = (
    *(b"topic=$tt_____", b"topic=$tt_____%23ephemeral", b"topic=a!b", b"topic=", b"topic"),
    *(b"channel=c", b"channel=c%23ephemeral", b"channel=a!b", b"format=json", b"format=xml"),
    *(
        b"defer=1",
        b"defer=-1",
        b"defer=x",
        b"binary=true",
        b"topic=%zz",
        b"%00=%ff",
        b"=",
        b"node=x",
    ),
)
_FIELDS: Final = (
    *(b"Content-Length: 0", b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: x"),
    *(b"Content-Length: 99999999999", b"Transfer-Encoding: chunked", b"Connection: close"),
    *(
        b"Expect: 100-continue",
        b"Accept: application/json",
        b"X: " + b"y" * 200,
        b"no colon",
        b": x",
    ),
    *(b"Host: other", b"Accept-Encoding: gzip", b"Content-Type: application/json"),
)
_BODIES: Final = (
    b"x",
    b"",
    b"1\n2\n\n3",
    b"\x00\x00\x00\x01\x00\x00\x00\x01x",
    b"0" * 5_000,
    b"{}",
)
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *([^\r]*)", re.IGNORECASE)
_METHODS: Final = (b"GET", b"POST", b"PUT", b"DELETE", b"HEAD", b"OPTIONS", b"get", b"")


class _Reader:
    """Reads requests without any doubt, one after the other.

    :param known: methods and paths; a server may close behind another one.
    """

    def __init__(self, known: Sequence[bytes]) -> None:
        self._known = known
        self.rule = ""
        self.state = "between"
        self.doubtful = False
        self._held = b""

    def read(self, data: bytes) -> None:
        """See :class:`tmqp_conformance.packs.grammar.Reader`."""
        self._held += data
        while self._held and not self.doubtful:
            head, end, rest = self._held.partition(_HEAD_END)
            if not end:
                self.state = "head"
                self.doubtful = len(self._held) > _MOST_HEAD
                return
            size = self._body_size(head)
            if size is None or size > _MOST_BODY:
                self.doubtful = True
                return
            if len(rest) < size:
                self.state = "body"
                return
            self._held = rest[size:]
            self.state = "between"

    @property
    def inside(self) -> bool:
        """See :class:`tmqp_conformance.packs.grammar.Reader`."""
        return bool(self._held)

    @property
    def illegible(self) -> bool:
        """The answer to HEAD announces a body that does not come."""
        return self.doubtful and b"HEAD" in self._held

    def _body_size(self, head: bytes) -> int | None:
        """The size of a request's body; None when the request is not without doubt."""
        first, *lines = head.split(b"\r\n")
        found = _FIRST.fullmatch(first)
        if found is None or found[1] not in self._known or len(head) > _MOST_HEAD:
            return None
        if not all(map(_FIELD.fullmatch, lines)):
            return None
        names = [line.partition(b":")[0].lower() for line in lines]
        if names.count(b"host") != 1 or len({*names}) != len(names) or _STRANGE & {*names}:
            return None
        texts = [line.partition(b":")[2].strip() for line in lines]
        values = dict(zip(names, texts, strict=True))
        if _HOST.fullmatch(values[b"host"]) is None:
            return None
        length = values.get(b"content-length", b"0")
        size = int(length) if length.isdigit() and len(length) < 10 else None
        # The body of a GET means nothing: a server may refuse it (RFC 9110, 9.3.1).
        return None if size and first.startswith(b"GET ") else size


class HttpGrammar(PackGrammar):
    """Requests of HTTP/1.1.

    :param paths: each method and path that the interface has, as ``GET /ping``.
    :param ping: a path that is answered with 200 and ``OK``.
    """

    states: tuple[str, ...] = ("between", "head", "body")
    fields: tuple[str, ...] = (
        *("version=1.1", "version=another", "arguments=none", "arguments=some"),
        *("length=none", "length=right", "length=wrong", "body=0", "body=some", "body=long"),
    )

    def __init__(self, paths: Sequence[bytes], ping: bytes = b"/ping") -> None:
        self.kinds = (*(path.decode() for path in paths), "another")
        self._paths = paths
        self._ping = ping

    def reader(self) -> _Reader:
        """See :class:`PackGrammar`."""
        return _Reader(self._paths)

    def split(self, data: bytes) -> tuple[bytes, list[bytes], bytes]:
        """See :class:`Grammar`: there is no greeting."""
        messages = []
        while (end := data.find(_HEAD_END)) >= 0:
            found = _LENGTH.search(data, 0, end)
            size = int(found[1]) if found and found[1].isdigit() and len(found[1]) < 8 else 0
            after = end + 4 + size
            if len(data) < after:
                break
            messages.append(data[:after])
            data = data[after:]
        return b"", messages, data

    def kind_of(self, message: bytes) -> str:
        """See :class:`PackGrammar`."""
        words = message.partition(b"\r\n")[0].split(b" ")
        kind = b" ".join([words[0], words[1].partition(b"?")[0] if len(words) > 1 else b""])
        text = kind.decode("latin-1")
        return text if text in self.kinds else "another"

    def fields_of(self, message: bytes) -> Iterable[str]:
        """See :class:`PackGrammar`."""
        head, _, body = message.partition(_HEAD_END)
        first = head.partition(b"\r\n")[0]
        yield "version=1.1" if first.endswith(b" HTTP/1.1") else "version=another"
        yield "arguments=some" if b"?" in first else "arguments=none"
        found = _LENGTH.search(head)
        right = found is not None and found[1] == b"%d" % len(body)
        yield f"length={'none' if found is None else 'right' if right else 'wrong'}"
        yield f"body={of_size(len(body), _SMALL, most=_MOST_BODY)}"

    def changed(self, draw: Seeded, message: bytes) -> bytes:
        """See :class:`Grammar`."""
        head, _, body = message.partition(_HEAD_END)
        first, *lines = head.split(b"\r\n")
        words = first.split(b" ")
        field = draw.below(6)
        if field == 0:
            words[0] = choice(draw, _METHODS)
        elif field == 1 and len(words) > 1:
            path = words[1].partition(b"?")[0]
            words[1] = path + b"?" + b"&".join(_some(draw, _ARGUMENTS))
        elif field == 2:
            words[-1] = choice(draw, (b"HTTP/1.0", b"HTTP/1.1", b"HTTP/2", b"http/1.1", b""))
        elif field == 3:
            lines.insert(draw.below(len(lines) + 1), choice(draw, _FIELDS))
        elif field == 4 and lines:
            del lines[draw.below(len(lines))]
        else:
            body = choice(draw, _BODIES)
            lines = [each for each in lines if not each.lower().startswith(b"content-length")]
            lines.append(b"Content-Length: %d" % len(body))
        return b"\r\n".join([b" ".join(words), *lines]) + _HEAD_END + body

    def plain(self, draw: Seeded) -> bytes:
        """See :class:`Grammar`."""
        arguments = (b"topic=$tt_____", b"topic=$tt_____&channel=c", b"")
        return self._request(draw, choice(draw, self._paths), choice(draw, arguments))

    def odd(self, draw: Seeded) -> bytes:
        """See :class:`Grammar`."""
        line = choice(draw, self._paths).partition(b" ")[2]
        path = choice(draw, (line, line + b"/", b"/", b"/nope", b"//", b"/%2e%2e/", b"*", b"x"))
        request = choice(draw, _METHODS) + b" " + path
        return self._request(draw, request, b"&".join(_some(draw, _ARGUMENTS)))

    def _request(self, draw: Seeded, line: bytes, arguments: bytes) -> bytes:
        body = b"" if line.startswith(b"GET") else choice(draw, _BODIES)
        target = line + (b"?" + arguments if arguments else b"")
        head = [target + b" HTTP/1.1", b"Host: localhost"]
        if not line.startswith(b"GET"):
            head.append(b"Content-Length: %d" % len(body))
        return b"\r\n".join(head) + _HEAD_END + body

    def ends_others(self, data: bytes) -> bool:
        """See :class:`PackGrammar`: consumers leave with what is deleted (N71)."""
        return b"/delete" in data

    def fence(self, name: str) -> bytes:
        """The question whether it lives; answers come in the order of requests."""
        return b"GET %s?fence=%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % (self._ping, name.encode())

    def passes(self, unit: object, name: str) -> bool:
        """See :class:`PackGrammar`.

        An earlier answer of this kind may be taken for it: then less is found.
        """
        if not isinstance(unit, Unit) or unit.kind != "http":
            return False
        return unit.fields.get("code") == 200 and unit.fields.get("body") == b"OK"


def _some(draw: Seeded, values: Sequence[bytes]) -> list[bytes]:
    return [choice(draw, values) for _ in range(draw.below(4))]
