"""Compares a recorded answer with a live one, except for ids and times.

When a recording is replayed, the server generates other message ids and client ids, and has another
clock.  :class:`Correspondence` remembers which live id corresponds to which recorded one; with it
:func:`compare` finds all other differences, and its ``translate`` rewrites the recorded client's
next frames.  For each step of an exchange, in order: send the translation of a client's frame,
compare each answer::

    context = Correspondence()
    send(context.translate(recorded_request).raw)
    differences = compare(recorded_answer, receive(), context)
"""

from __future__ import annotations

import json
from typing import Final

from tmqp.frames import Frame

__all__ = ["Correspondence", "compare"]

_GENERATED_ID_CHARACTERS: Final = 32
_HEXADECIMAL: Final = frozenset("0123456789abcdef")
#: JSON properties that hold durations in milliseconds: any number goes.
_DURATIONS: Final = frozenset({"Online", "Lifetime"})
#: JSON properties that hold a time, 0 for never: both must be 0 or neither.
_TIMES: Final = frozenset({"LastMessageReceived", "LastMessageSent"})
_SHOWN_CHARACTERS: Final = 120


class Correspondence:
    """The live ids that correspond to recorded ones.

    The recorded server generated an id if it has the form of one (32 hexadecimal digits, F45) and
    no recorded client sent it before; each of these ids corresponds to exactly one live id.
    """

    __slots__ = ("_live", "_recorded", "_said")

    def __init__(self) -> None:
        self._live: dict[str, str] = {}
        self._recorded: dict[str, str] = {}
        self._said: set[str] = set()

    def live(self, recorded: str) -> str:
        """Return the live text for a recorded one: another id, or the text itself."""
        return self._live.get(recorded, recorded)

    def translate(self, frame: Frame) -> Frame:
        """Return a recorded client's frame as it must be sent now: ids that the recorded server
        generated are replaced in message id, source, target and header values.

        It also remembers that the client sent the other ids, so call it for every frame that is
        sent.  A frame with nothing to replace is returned unchanged.
        """
        texts = [frame.message_id, frame.source, frame.target]
        headers = frame.headers
        for text in (*texts, *[value for _, value in headers]):
            if text not in self._live:
                self._said.add(text)
        live_headers = [(key, self.live(value)) for key, value in headers]
        message_id, source, target = [self.live(text) for text in texts]
        if live_headers == headers:
            if [message_id, source, target] == texts:
                return frame
            return frame.replace(message_id=message_id, source=source, target=target)
        return Frame.build(
            frame.type,
            target,
            frame.content_type,
            frame.payload,
            message_id=message_id,
            source=source,
            headers=live_headers,
            first_acquirer=frame.first_acquirer,
            high_priority=frame.high_priority,
            pending_response=frame.pending_response,
            pending_acknowledge=frame.pending_acknowledge,
            ttl=frame.ttl,
        )

    def said(self, recorded: str) -> bool:
        """Whether a recorded client has sent this text."""
        return recorded in self._said

    def recorded(self, live: str) -> str | None:
        """Return the recorded id of a live one; None if it has none yet."""
        return self._recorded.get(live)

    def learn(self, recorded: str, live: str) -> None:
        """Note that ``live`` corresponds to ``recorded``."""
        self._live[recorded] = live
        self._recorded[live] = recorded


def compare(expected: Frame, actual: Frame, context: Correspondence) -> list[str]:
    """Describe how a live frame differs from the recorded one, except for ids and times.

    It compares the type, the flags, the time to live, the content type, the three names, the
    headers with their order, and the payload: JSON by its values and the order of its properties,
    other payloads byte by byte.

    :returns: a sentence for each difference; if there are none, the context also has the new ids.
    """
    comparison = _Comparison(context)
    comparison.frames(expected, actual)
    if not comparison.differences:
        for recorded, live in comparison.learnt.items():
            context.learn(recorded, live)
    return comparison.differences


class _Comparison:
    """One run of :func:`compare`: the differences, and the new ids."""

    def __init__(self, context: Correspondence) -> None:
        self.context = context
        self.differences: list[str] = []
        self.learnt: dict[str, str] = {}

    def frames(self, expected: Frame, actual: Frame) -> None:
        for what in (
            "type",
            "first_acquirer",
            "high_priority",
            "pending_response",
            "pending_acknowledge",
            "ttl",
            "content_type",
        ):
            self._same(what, getattr(expected, what), getattr(actual, what))
        for what in ("message_id", "source", "target"):
            self._same_text(what, getattr(expected, what), getattr(actual, what))
        self._headers(expected.headers, actual.headers)
        self._payloads(expected.payload, actual.payload)

    def _headers(self, expected: list[tuple[str, str]], actual: list[tuple[str, str]]) -> None:
        expected_keys = [key for key, _ in expected]
        actual_keys = [key for key, _ in actual]
        if expected_keys != actual_keys:
            self._differ("header keys", expected_keys, actual_keys)
            return
        for (key, expected_value), (_, actual_value) in zip(expected, actual, strict=True):
            self._same_text(f"header {key}", expected_value, actual_value)

    def _payloads(self, expected: bytes, actual: bytes) -> None:
        if expected == actual:
            return
        if expected[:1] in (b"{", b"["):
            try:
                wanted, got = json.loads(expected), json.loads(actual)
            except (ValueError, RecursionError):
                self._differ("payload", expected, actual)
                return
            self._json("payload", "", wanted, got)
            return
        self._same_text("payload", *(part.decode("latin-1") for part in (expected, actual)))

    def _json(self, where: str, key: str, expected: object, actual: object) -> None:
        if isinstance(expected, dict) and isinstance(actual, dict):
            if list(expected) != list(actual):
                self._differ(f"{where}: properties", list(expected), list(actual))
                return
            for name, value in expected.items():
                self._json(f"{where}.{name}", name, value, actual[name])
        elif isinstance(expected, list) and isinstance(actual, list):
            if len(expected) != len(actual):
                self._differ(f"{where}: number of items", len(expected), len(actual))
                return
            for index, (wanted, got) in enumerate(zip(expected, actual, strict=True)):
                self._json(f"{where}[{index}]", key, wanted, got)
        elif isinstance(expected, str) and isinstance(actual, str):
            self._same_text(where, expected, actual)
        elif key in _DURATIONS and _is_number(expected) and _is_number(actual):
            return
        elif key in _TIMES and _is_number(expected) and _is_number(actual):
            self._same(f"{where} is 0", expected == 0, actual == 0)
        elif type(expected) is not type(actual) or expected != actual:
            # The types too: 1 and true are the same to Python, but not on the wire.
            self._differ(where, expected, actual)

    def _same_text(self, what: str, expected: str, actual: str) -> None:
        known = self.learnt.get(expected, self.context.live(expected))
        if known != expected or not _generated(expected) or self.context.said(expected):
            self._same(what, known, actual)
            return
        if actual in self.learnt.values() or self.context.recorded(actual) not in (None, expected):
            self.differences.append(f"{what}: {actual!r} stands for another recorded id already")
        elif not actual or self.context.said(actual):
            self._differ(what, "an id made by the server", actual)
        else:
            self.learnt[expected] = actual

    def _same(self, what: str, expected: object, actual: object) -> None:
        if expected != actual:
            self._differ(what, expected, actual)

    def _differ(self, what: str, expected: object, actual: object) -> None:
        self.differences.append(f"{what}: expected {_short(expected)}, got {_short(actual)}")


def _generated(text: str) -> bool:
    return len(text) == _GENERATED_ID_CHARACTERS and _HEXADECIMAL.issuperset(text)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
