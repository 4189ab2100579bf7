"""Resolves the options about offsets and times to the places where a reader begins and ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tmqp_spark.catalog import QueueState
from tmqp_spark.errors import InvalidOption
from tmqp_spark.offsets import EARLIEST, LATEST, Place, Places, parse_places
from tmqp_spark.options import SourceOptions

__all__ = ["Edge", "ending_edge", "starting_edge"]


class Edge:
    """Where to begin, or to end: one word for all queues, or a number for each.

    ``word`` is ``earliest``, ``latest``, ``committed`` or empty; ``numbers`` are sequences, -1 for
    latest and -2 for earliest; ``times`` are milliseconds of Unix time, ``time`` is that of all
    other queues.
    """

    __slots__ = ("numbers", "time", "times", "word")

    def __init__(
        self,
        word: str = "",
        numbers: dict[str, int] | None = None,
        time: int | None = None,
        times: dict[str, int] | None = None,
    ) -> None:
        self.word = word
        self.numbers = numbers or {}
        self.time = time
        self.times = times or {}

    def resolve(
        self,
        states: Mapping[str, QueueState],
        at: Callable[[int], Mapping[str, QueueState]],
        otherwise: str,
        when_later: str,
    ) -> Places:
        """Return the place in each queue.

        :param at: requests the states of the queues with a time.
        :param otherwise: the word for queues without a number or time.
        :param when_later: ``error`` or ``latest``: what to do if no message arrived at a time or
            later.
        :raises InvalidOption: for a number or time of a queue that is not read; with ``error``, for
            a time after the last message.
        """
        unknown = sorted((self.numbers.keys() | self.times.keys()) - states.keys())
        if unknown:
            raise InvalidOption(
                f"offsets are given for {', '.join(unknown)}, which the source does not read;"
                f" it reads {', '.join(states) or 'no queue'}"
            )
        found: Places = {}
        looks: dict[int, Mapping[str, QueueState]] = {}
        for key, state in states.items():
            time = self.times.get(key, self.time)
            if time is None:
                number = self.numbers.get(key)
                found[key] = Place(state.incarnation, _place(state, self.word or otherwise, number))
                continue
            if time not in looks:
                looks[time] = at(time)
            seen = looks[time].get(key, state)
            # Messages that arrived between two requests must not shift the end of the first.
            first = seen.latest + 1 if seen.at is None else seen.at
            if first > seen.latest and when_later == "error":
                raise InvalidOption(
                    f"{key}: no message came at {time} (ms since 1970) or later; the last is"
                    f" {seen.latest}; set startingOffsetsByTimestampStrategy=latest to begin there"
                )
            found[key] = Place(state.incarnation, first)
        return found


def _place(state: QueueState, word: str, number: int | None) -> int:
    if number == LATEST or (number is None and word == "latest"):
        return state.latest + 1
    if number == EARLIEST or (number is None and word == "earliest"):
        return state.earliest
    if number is None:
        assert word == "committed", f"{word!r} was checked"
        committed = -1 if state.committed is None else state.committed
        return state.earliest if committed < 0 else committed + 1
    return number


def starting_edge(options: SourceOptions, default: str) -> Edge:
    """Return where to begin according to the options.

    :param default: the word to use if no option is set.
    :raises InvalidOption: if several options say it, or one is invalid.
    """
    by_time = options.starting_offsets_by_timestamp
    given = [
        name
        for name, is_given in (
            ("startingOffsets", bool(options.starting_offsets)),
            ("startingTimestamp", options.starting_timestamp is not None),
            ("startingOffsetsByTimestamp", bool(by_time)),
        )
        if is_given
    ]
    if len(given) > 1:
        raise InvalidOption(f"options {' and '.join(given)} both say where to begin; give one")
    if by_time:
        return Edge(times=parse_places("startingOffsetsByTimestamp", by_time, 0))
    if options.starting_timestamp is not None:
        return Edge(time=options.starting_timestamp)
    edge = _edge("startingOffsets", options.starting_offsets or default)
    if edge.word == "committed" and not options.group:
        raise InvalidOption("startingOffsets=committed needs the option group: committed by whom?")
    return edge


def ending_edge(options: SourceOptions) -> Edge:
    """Return where a batch ends according to the options; as :func:`starting_edge`."""
    by_time = options.ending_offsets_by_timestamp
    if by_time and options.ending_timestamp is not None:
        raise InvalidOption(
            "options endingTimestamp and endingOffsetsByTimestamp both say where to end; give one"
        )
    if by_time:
        return Edge(times=parse_places("endingOffsetsByTimestamp", by_time, 0))
    if options.ending_timestamp is not None:
        return Edge(time=options.ending_timestamp)
    edge = _edge("endingOffsets", options.ending_offsets)
    if edge.word in ("earliest", "committed") or EARLIEST in edge.numbers.values():
        raise InvalidOption("endingOffsets is latest, or JSON with sequences or -1 for the latest")
    return edge


def _edge(name: str, text: str) -> Edge:
    word = text.strip().lower()
    words = ("earliest", "latest", "committed")
    if word in words:
        return Edge(word)
    if not text.lstrip().startswith("{"):
        raise InvalidOption(f"option {name} is {', '.join(words)} or JSON, got {text[:100]!r}")
    return Edge(numbers=parse_places(name, text))
