"""Reads JSON text within limits, and writes it byte for byte as the original server does.

Theory of operation.  A JSON body may come from an attacker, who can abuse the standard library's
parser in three ways: nesting (``RecursionError``), long numbers (quadratic conversion, then
``ValueError``) and sheer size.  So ``load`` first checks the bytes, in a few passes at the speed of
C:

1. the size is compared with the caller's limit;
2. the bytes must be UTF-8 (a leading byte order mark is skipped);
3. the text *outside* of strings is extracted: escaped backslashes and quotes are dropped, the rest
   is split at the quotes and every second piece is kept.  A stray backslash or quote can make this
   wrong only after the point where the parser stops with an error; everything before it is correct;
4. in that text, runs of digits and the nesting of brackets are limited, and so are the numbers of
   values and of objects and arrays, because each needs many times its bytes in memory.

Then the parser runs.  An object with very many properties, or with a repeated name, is refused (two
readers could disagree about which one counts), and so are the words NaN and Infinity, which are not
JSON.  In one flat object, or an array of flat objects, a repeated name shows in the number of
colons.  A hook for each object would take three times as long as the parsing, and is used only for
nested bodies and to name the repeated property.

Text is written as the original server writes it (F65): without spaces, with nulls, and only quotes,
backslashes, control characters and three line separators are escaped.
"""

from __future__ import annotations

import json
from typing import Final

__all__ = [
    "MAX_NESTING_DEPTH",
    "MAX_NUMBER_DIGITS",
    "MAX_PROPERTIES",
    "MIN_BYTES_PER_CONTAINER",
    "MIN_BYTES_PER_NESTED",
    "MIN_BYTES_PER_VALUE",
    "JsonRefusedError",
    "dump",
    "load",
]

#: Nested objects and arrays; the deepest body of the protocol has three levels (a list of
#: channels, each with its queue ids), the rest is for properties of later versions.
MAX_NESTING_DEPTH: Final = 32
#: The most consecutive digits; a 64-bit number has 19, the rest is for fractions in unknown
#: properties.
MAX_NUMBER_DIGITS: Final = 40
#: The most properties of one object; the largest model has 51, the rest is for later versions.
MAX_PROPERTIES: Final = 256
#: A body may contain one object or array for this many bytes of its size limit: the smallest item
#: of a list has about 40 bytes, but an empty array of 3 bytes needs 56 in memory.
MIN_BYTES_PER_CONTAINER: Final = 16
#: The same for values of any kind; the smallest is a queue id of five digits and its comma.
MIN_BYTES_PER_VALUE: Final = 6

#: The same for nested objects and arrays, which cost more to read.
MIN_BYTES_PER_NESTED: Final = 64
#: This number of objects and arrays may always be nested.
_NESTED: Final = 4_096

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_NOT_A_BRACKET: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")
_DIGIT_TO_ZERO: Final = bytes(0x30 if byte in b"0123456789" else 0x20 for byte in range(256))
_SHOWN_CHARACTERS: Final = 40
#: The largest flat body that is parsed a second time to say what is wrong with its names.
_EXPLAINED_BYTES: Final = 65_536
_TOO_MANY_DIGITS: Final = b"0" * (MAX_NUMBER_DIGITS + 1)
#: Newtonsoft escapes these although JSON does not require it; they can only be in strings.
_LINE_SEPARATORS: Final = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


class JsonRefusedError(Exception):
    """A body that cannot be read; the text completes the sentence "the body must be ..., got
    ..."."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(expected, got)
        self.expected = expected
        self.got = got


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make the dict of one JSON object; refuse too many names, or a repeated one."""
    if len(pairs) > MAX_PROPERTIES:
        got = f"{len(pairs)} of them"
        raise JsonRefusedError(f"JSON with at most {MAX_PROPERTIES} properties an object", got)
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _value in pairs]
        doubled = next(name for name in names if names.count(name) > 1)
        got = f"{doubled[:_SHOWN_CHARACTERS]!r} twice"
        raise JsonRefusedError("JSON with each name once in an object", got)
    return result


def _refuse_constant(word: str) -> object:
    raise JsonRefusedError("JSON, which has no such numbers", word)


_PLAIN: Final = json.JSONDecoder(parse_constant=_refuse_constant)
_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)
_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
)


def load(data: bytes | str, max_bytes: int) -> object:
    """Return the JSON value in *data*, at cost linear in its size and bounded in depth.

    :param max_bytes: the largest size read, in bytes of UTF-8.
    :raises JsonRefusedError: if it is not one JSON value within the limits.
    """
    if isinstance(data, str):
        if len(data) > max_bytes:  # never fewer bytes than characters: no need to encode it
            raise JsonRefusedError(f"JSON of at most {max_bytes} bytes", f"{len(data)} characters")
        try:
            raw = data.encode("utf-8")
        except UnicodeEncodeError as error:
            raise JsonRefusedError("UTF-8", f"half a surrogate pair at {error.start}") from None
    else:
        raw = bytes(data)
    if len(raw) > max_bytes:
        raise JsonRefusedError(f"JSON of at most {max_bytes} bytes", f"{len(raw)} bytes")
    if not raw:
        raise JsonRefusedError("JSON", "no bytes")
    raw = raw.removeprefix(_BYTE_ORDER_MARK)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = f"byte 0x{raw[error.start]:02x} at {error.start}"
        raise JsonRefusedError("UTF-8", bad) from None
    pairs = _check_bounds(raw, max_bytes)
    try:
        if pairs >= 0:
            value: object = _PLAIN.decode(text)
            if _has_each_once(value, pairs):
                return value
            if len(raw) > _EXPLAINED_BYTES:
                got = "an object with more, or with a name twice"
                raise JsonRefusedError(f"JSON with at most {MAX_PROPERTIES} properties", got)
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise JsonRefusedError("valid JSON", f"a fault at {error.pos} ({error.msg})") from None


def _has_each_once(value: object, pairs: int) -> bool:
    """Whether the objects of a flat body have this total of properties, and none has too many."""
    if isinstance(value, dict):
        return len(value) == pairs <= MAX_PROPERTIES
    assert isinstance(value, list), "flat: an object or an array"
    sizes = [len(item) for item in value if type(item) is dict]
    return sum(sizes) == pairs and max(sizes, default=0) <= MAX_PROPERTIES


def _check_bounds(raw: bytes, max_bytes: int) -> int:
    """Check the length of numbers, the nesting and the number of values, in the text outside of
    strings.

    :returns: the number of properties in one object, or in an array of objects with nothing inside;
        -1 for a body of another shape.
    """
    most = max(max_bytes // MIN_BYTES_PER_VALUE, 1)
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    if raw.count(b'"') > 4 * most:  # a value has two for its name and two for its text
        raise JsonRefusedError(f"JSON with at most {most} values", "more")
    outside = b'"'.join(raw.split(b'"')[::2])
    if _TOO_MANY_DIGITS in outside.translate(_DIGIT_TO_ZERO):
        raise JsonRefusedError(f"JSON with numbers of at most {MAX_NUMBER_DIGITS} digits", "more")
    if outside.count(b",") >= most:
        raise JsonRefusedError(f"JSON with at most {most} values", "more")
    brackets = outside.translate(None, _NOT_A_BRACKET)
    most = max(max_bytes // MIN_BYTES_PER_CONTAINER, 1)
    if len(brackets) > 2 * most:
        raise JsonRefusedError(f"JSON with at most {most} objects and arrays", "more")
    if brackets == b"{}" or brackets == b"[" + b"{}" * (len(brackets) // 2 - 1) + b"]":
        return outside.count(b":")
    most = max(max_bytes // MIN_BYTES_PER_NESTED, _NESTED)
    if len(brackets) > 2 * most:
        raise JsonRefusedError(f"JSON with at most {most} nested objects and arrays", "more")
    depth = 0
    for bracket in brackets:
        if bracket in b"[{":
            depth += 1
            if depth > MAX_NESTING_DEPTH:
                raise JsonRefusedError(f"JSON nested at most {MAX_NESTING_DEPTH} deep", "more")
        else:
            depth -= 1
    return -1


def dump(value: object) -> bytes:
    """Return *value* as JSON, byte for byte as the original server writes it (F65).

    :param value: dicts, lists, tuples, text, integers, booleans and None only; text is valid UTF-8
        (the models see to it).
    """
    text = _ENCODER.encode(value)
    if not text.isascii():
        text = text.translate(_LINE_SEPARATORS)
    return text.encode("utf-8")
