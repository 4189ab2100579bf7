"""The grammar of selectors: parses a text into nodes.

Operators from the weakest to the strongest: OR; AND; NOT; comparisons, BETWEEN, IN, LIKE, IS NULL;
``+ -``; ``* /``; a sign.  Keywords ignore case, names do not.  A text is in single quotes, and two
single quotes inside mean one.

The length and the nesting depth of a selector are limited.
"""

from __future__ import annotations

from typing import Final, final

from tmqp_server.doors.selecting import MAX_FILTER_BYTES, FilterError
from tmqp_server.doors.selector.nodes import (
    And,
    Between,
    Compared,
    Counted,
    Identifier,
    In,
    IsNull,
    Like,
    Literal,
    Node,
    Not,
    Or,
    Signed,
    Value,
)

__all__ = ["MAX_DEPTH", "read_selector"]

#: How deep parentheses, NOT and signs may nest.
MAX_DEPTH: Final = 50

_KEYWORDS: Final = frozenset(
    {"AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE", "FALSE"}
)
_COMPARISONS: Final = ("<=", ">=", "<>", "=", "<", ">")
_SIGNS: Final = ("<=", ">=", "<>", "=", "<", ">", "(", ")", ",", "+", "-", "*", "/")
_DIGITS: Final = "0123456789"

_NAME: Final = 0
_WORD: Final = 1
_SIGN: Final = 2
_TEXT: Final = 3
_NUMBER: Final = 4
_END: Final = 5


@final
class _Token:
    """A word of a selector: a name, a keyword, a sign, a text or a number."""

    __slots__ = ("kind", "text", "value")

    def __init__(self, kind: int, text: str, value: Value = None) -> None:
        self.kind = kind
        self.text = text
        self.value = value


def _is_name_start(character: str) -> bool:
    return character.isalpha() or character in "_$"


def _is_name_part(character: str) -> bool:
    return character.isalnum() or character in "_$"


def _tokens(text: str) -> list[_Token]:
    """Divide a selector into tokens.

    :raises FilterError: for an invalid token.
    """
    found: list[_Token] = []
    at = 0
    while at < len(text):
        character = text[at]
        if character.isspace():
            at += 1
        elif _is_name_start(character):
            end = at
            while end < len(text) and _is_name_part(text[end]):
                end += 1
            word = text[at:end]
            is_keyword = word.upper() in _KEYWORDS
            found.append(_Token(_WORD, word.upper()) if is_keyword else _Token(_NAME, word))
            at = end
        elif character == "'":
            at = _read_text(text, at, found)
        elif character in _DIGITS or (character == "." and text[at + 1 : at + 2] in tuple(_DIGITS)):
            at = _read_number(text, at, found)
        else:
            at = _read_sign(text, at, found)
    found.append(_Token(_END, "its end"))
    return found


def _read_text(text: str, at: int, found: list[_Token]) -> int:
    parts: list[str] = []
    at += 1
    while True:
        end = text.find("'", at)
        if end < 0:
            raise FilterError("a string of the selector has no end")
        parts.append(text[at:end])
        if text[end + 1 : end + 2] != "'":
            break
        parts.append("'")
        at = end + 2
    value = "".join(parts)
    found.append(_Token(_TEXT, f"the text {value[:32]!r}", value))
    return end + 1


def _read_number(text: str, at: int, found: list[_Token]) -> int:
    end = at
    if text[at : at + 2] in ("0x", "0X"):
        end += 2
        while end < len(text) and text[end] in "0123456789abcdefABCDEF":
            end += 1
        return _end_number(text, at, end, found, base=16)
    while end < len(text) and text[end] in _DIGITS:
        end += 1
    is_whole = True
    if text[end : end + 1] == ".":
        is_whole = False
        end += 1
        while end < len(text) and text[end] in _DIGITS:
            end += 1
    if text[end : end + 1] in ("e", "E"):
        behind = end + 1
        if text[behind : behind + 1] in ("+", "-"):
            behind += 1
        if text[behind : behind + 1] in tuple(_DIGITS):
            is_whole = False
            while behind < len(text) and text[behind] in _DIGITS:
                behind += 1
            end = behind
    if is_whole:
        octal = end - at > 1 and text[at] == "0"
        return _end_number(text, at, end, found, base=8 if octal else 10)
    found.append(_Token(_NUMBER, text[at:end], float(text[at:end])))
    return _no_name_behind(text, end)


def _end_number(text: str, at: int, end: int, found: list[_Token], base: int) -> int:
    """Add a whole number, which ``L`` may follow; returns where it ends."""
    try:
        value = int(text[at:end], base)
    except ValueError:
        raise FilterError(f"{text[at:end]!r} is not a number") from None
    found.append(_Token(_NUMBER, text[at:end], value))
    if text[end : end + 1] in ("l", "L"):
        end += 1
    return _no_name_behind(text, end)


def _no_name_behind(text: str, end: int) -> int:
    if end < len(text) and _is_name_part(text[end]):
        raise FilterError(f"a number of the selector is followed by {text[end]!r}")
    return end


def _read_sign(text: str, at: int, found: list[_Token]) -> int:
    for sign in _SIGNS:
        if text.startswith(sign, at):
            found.append(_Token(_SIGN, sign))
            return at + len(sign)
    raise FilterError(f"the selector has {text[at]!r}, which is not valid there")


@final
class _Reader:
    """Parses the tokens of a selector."""

    __slots__ = ("_at", "_converts", "_depth", "_tokens")

    def __init__(self, tokens: list[_Token], *, converts: bool) -> None:
        self._tokens = tokens
        self._converts = converts
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        """Parse all tokens."""
        found = self._or()
        if self._tokens[self._at].kind != _END:
            raise self._unexpected("its end")
        return found

    def _unexpected(self, wanted: str) -> FilterError:
        token = self._tokens[self._at]
        return FilterError(f"the selector has {token.text} where {wanted} should be")

    def _takes(self, kind: int, *texts: str) -> str:
        """Take the next token if it is one of *texts*; else return an empty text and take
        nothing."""
        token = self._tokens[self._at]
        if token.kind != kind or token.text not in texts:
            return ""
        self._at += 1
        return token.text

    def _must(self, kind: int, text: str) -> None:
        if not self._takes(kind, text):
            raise self._unexpected(text)

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise FilterError(f"a selector nests at most {MAX_DEPTH} deep")

    def _or(self) -> Node:
        parts = [self._and()]
        while self._takes(_WORD, "OR"):
            parts.append(self._and())
        return parts[0] if len(parts) == 1 else Or(parts)

    def _and(self) -> Node:
        parts = [self._not()]
        while self._takes(_WORD, "AND"):
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else And(parts)

    def _not(self) -> Node:
        if not self._takes(_WORD, "NOT"):
            return self._comparison()
        self._enter()
        found = Not(self._not())
        self._depth -= 1
        return found

    def _comparison(self) -> Node:
        left = self._sum()
        operator = self._takes(_SIGN, *_COMPARISONS)
        if operator:
            return Compared(left, operator, self._sum(), converts=self._converts)
        if self._takes(_WORD, "IS"):
            negative = self._takes(_WORD, "NOT")
            self._must(_WORD, "NULL")
            return Not(IsNull(left)) if negative else IsNull(left)
        negative = ""
        if self._tokens[self._at].text == "NOT" and self._tokens[self._at].kind == _WORD:
            negative = self._takes(_WORD, "NOT")
        word = self._takes(_WORD, "BETWEEN", "IN", "LIKE")
        if not word:
            if negative:
                raise self._unexpected("BETWEEN, IN or LIKE")
            return left
        found = self._behind(word, left)
        return Not(found) if negative else found

    def _behind(self, word: str, left: Node) -> Node:
        """Parse what follows BETWEEN, IN or LIKE."""
        if word == "BETWEEN":
            low = self._sum()
            self._must(_WORD, "AND")
            return Between(left, low, self._sum(), converts=self._converts)
        if word == "IN":
            self._must(_SIGN, "(")
            texts = [self._text()]
            while self._takes(_SIGN, ","):
                texts.append(self._text())
            self._must(_SIGN, ")")
            return In(left, frozenset(texts))
        pattern = self._text()
        escape = ""
        if self._takes(_WORD, "ESCAPE"):
            escape = self._text()
            if len(escape) != 1:
                raise FilterError("ESCAPE must be followed by a string of one character")
        return Like(left, _segments(pattern, escape))

    def _text(self) -> str:
        token = self._tokens[self._at]
        if token.kind != _TEXT:
            raise self._unexpected("a text")
        self._at += 1
        assert isinstance(token.value, str), "it is a text"
        return token.value

    def _sum(self) -> Node:
        found = self._product()
        while operator := self._takes(_SIGN, "+", "-"):
            found = Counted(found, operator, self._product())
        return found

    def _product(self) -> Node:
        found = self._signed()
        while operator := self._takes(_SIGN, "*", "/"):
            found = Counted(found, operator, self._signed())
        return found

    def _signed(self) -> Node:
        sign = self._takes(_SIGN, "+", "-")
        if not sign:
            return self._primary()
        self._enter()
        found = Signed(self._signed(), negative=sign == "-")
        self._depth -= 1
        return found

    def _primary(self) -> Node:
        token = self._tokens[self._at]
        if token.kind in (_TEXT, _NUMBER):
            self._at += 1
            return Literal(token.value)
        if token.kind == _NAME:
            self._at += 1
            return Identifier(token.text)
        word = self._takes(_WORD, "TRUE", "FALSE", "NULL")
        if word:
            return Literal(None if word == "NULL" else word == "TRUE")
        if not self._takes(_SIGN, "("):
            raise self._unexpected("a value")
        self._enter()
        found = self._or()
        self._must(_SIGN, ")")
        self._depth -= 1
        return found


def _segments(pattern: str, escape: str) -> list[list[str | None]]:
    """Divide a pattern of LIKE at its percent signs; None in a segment is any character.

    :raises FilterError: when nothing follows an escape.
    """
    segments: list[list[str | None]] = [[]]
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == escape:
            if at == len(pattern):
                raise FilterError("a pattern ends with an incomplete escape")
            segments[-1].append(pattern[at])
            at += 1
        elif character == "%":
            segments.append([])
        else:
            segments[-1].append(None if character == "_" else character)
    return segments


def read_selector(text: str, *, converts: bool = False) -> Node:
    """Parse a selector.

    :param converts: convert a text that is compared with a number, or with true or false, if
        possible: for protocols whose properties are all texts.
    :raises FilterError: when it is invalid or too long; the text says why.
    """
    if len(text.encode("utf-8", "replace")) > MAX_FILTER_BYTES:
        raise FilterError(f"a selector has at most {MAX_FILTER_BYTES} bytes")
    return _Reader(_tokens(text), converts=converts).whole()
