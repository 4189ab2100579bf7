"""The plan of a streaming query: where it begins, the end of each batch, and what is committed.

Theory of operation.  Spark requests the newest offset on each trigger and passes the one up to
which everything is processed and recorded (``start``).  So that is committed for the group
(*eager*), in the same request that asks for new messages; the commit does not wait for the next
batch, and when a query has caught up, the broker keeps nothing for it.  The broker holds the
request until there is something new.

Every decision that a later run could not repeat is in the offset that Spark stores: which queue of
a name was read (its incarnation), and where a queue that appeared meanwhile began.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from tmqp_spark.catalog import Catalog, QueueState, Subscription
from tmqp_spark.draining import check_drain_options, check_drained
from tmqp_spark.errors import DataLost, InvalidOption
from tmqp_spark.groups import Group
from tmqp_spark.offsets import Place, Places, parse_key, read_checkpoint, write_checkpoint
from tmqp_spark.options import SourceOptions
from tmqp_spark.planning import check_there
from tmqp_spark.ranges import QueueRange
from tmqp_spark.splitting import bytes_up_to, split_ranges
from tmqp_spark.starting import starting_edge
from tmqp_spark.transport import BrokerLink

__all__ = ["Following", "check_stream", "share_out"]

_DEFAULT_START: Final = "latest"


def check_stream(options: SourceOptions) -> None:
    """Check that the options are valid for a streaming query.

    :raises InvalidOption: if they are not.
    """
    Subscription(options)
    starting_edge(options, _DEFAULT_START)
    check_drain_options(options)


class Following:
    """A streaming query's reader, on the driver.

    :param clock: returns seconds of a monotonic clock.
    """

    def __init__(
        self,
        link: BrokerLink,
        options: SourceOptions,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._link = link
        self._options = options
        self._clock = clock
        self._subscription = Subscription(options)
        self._catalog = Catalog(link, self._subscription)
        self._group = Group(link, options.group) if options.group else None
        self._eager = options.commit_mode == "eager"
        self._initial: dict[str, Any] | None = None
        self._states: dict[str, QueueState] | None = None
        self._target: dict[str, QueueState] | None = None
        self._read_up_to: Places = {}
        self._last_batch: float | None = None
        self._deferred = False
        self._trigger = 0
        self._to_commit: deque[Places] = deque()

    # --- Where it begins -------------------------------------------------------------------------

    def initial(self) -> dict[str, Any]:
        """Return where a new query begins; the broker stores it if there is a group.

        Spark calls this twice, and again if the query ended before its first batch was recorded.
        """
        if self._initial is None:
            self._initial = write_checkpoint(self._begin())
        return self._initial

    def _begin(self) -> Places:
        edge = starting_edge(self._options, _DEFAULT_START)
        states = self._catalog.look(cursor=self._options.group or None)
        check_there(self._link, self._subscription, states)
        self._check_mode(states.values())
        strategy = self._options.starting_strategy
        if self._group is None:
            return edge.resolve(states, self._catalog.look, _DEFAULT_START, strategy)
        if edge.word:
            if edge.word == "earliest":
                first = {key: state.earliest for key, state in states.items()}
                self._check_unused(states, first)
            word = "earliest" if edge.word == "committed" else edge.word
            return self._group.open(states.values(), word)
        places = edge.resolve(states, self._catalog.look, _DEFAULT_START, strategy)
        self._check_unused(states, {key: place.next for key, place in places.items()})
        # A query that ended before its first batch was recorded begins where it first began.
        begun = {
            key: Place(state.incarnation, state.committed + 1)
            for key, state in states.items()
            if state.committed is not None and state.committed >= 0
        }
        fresh = {key: place for key, place in places.items() if key not in begun}
        return {**begun, **self._group.commit(fresh)}

    def _check_unused(self, states: dict[str, QueueState], first: dict[str, int]) -> None:
        """Check that the group has not already committed messages that a new query would read.

        :param first: where the query would begin in each queue.
        :raises InvalidOption: if it has; the text names the first such queue.
        """
        for key, state in states.items():
            done = state.committed
            if done is not None and first[key] <= min(done, state.latest):
                raise InvalidOption(
                    f"{self._link.options.url} {key}: group {self._options.group} has already "
                    f"committed message {done}, and this query, whose checkpoint is new, would "
                    f"begin at {first[key]}. Give each query its own group; or continue at the "
                    "group's position with startingOffsets=committed; or move the group with "
                    "tmqp-spark groups reset or delete"
                )

    def _check_mode(self, states: Iterable[QueueState]) -> None:
        if self._options.mode == "drain":
            check_drained(self._link, states)

    # --- How far a batch goes --------------------------------------------------------------------

    def prepare_available_now(self) -> None:
        """Note the current end of all queues: the query ends when everything up to there is
        read."""
        self._target = self._catalog.look()

    def latest(self, start: dict[str, Any], unlimited: bool) -> dict[str, Any]:
        """Return the end of the next batch; ``start`` itself if there is nothing to read.

        :param unlimited: ignore the options that limit a batch.
        :raises DataLost: if a queue was removed or replaced and ``failOnDataLoss`` is set.
        """
        end = self._end_of_batch(start, unlimited)
        # Spark asks for the report before it asks for the batch's partitions.
        self._read_up_to = read_checkpoint(end)
        return end

    def _end_of_batch(self, start: dict[str, Any], unlimited: bool) -> dict[str, Any]:
        places = read_checkpoint(start)
        states = self._look(places, self._due(places) if self._eager else None)
        self._states = states
        end = self._up_to_date(places, states)
        begins = {key: _begin_of(place, places.get(key)) for key, place in end.items()}
        backlog = {key: max(0, states[key].latest + 1 - begin) for key, begin in begins.items()}
        now = self._clock()
        if self._last_batch is None:
            self._last_batch = now
        total = sum(backlog.values())
        went_back = any(end[key].next < place.next for key, place in places.items() if key in end)
        if not total and end.keys() == places.keys() and not went_back:
            return start
        least = self._options.min_offsets
        waited_ms = (now - self._last_batch) * 1000
        self._deferred = (
            least is not None
            and total < least
            and self._target is None
            and waited_ms < self._options.max_trigger_delay_ms
        )
        if self._deferred:
            return start
        for key, taken in self._admit(begins, backlog, states, unlimited).items():
            end[key].next = begins[key] + taken
        self._last_batch = now
        self._trigger += 1
        result = write_checkpoint(end)
        return start if result == start else result

    def _look(self, places: Places, done: Places | None) -> dict[str, QueueState]:
        """Request the states of the queues, together with a commit of ``done``."""
        group = self._group
        if self._target is not None:
            if group is not None and done is not None:
                group.commit(done)
            return self._target
        known = places
        if self._deferred and self._states is not None:
            # There are messages, but too few for a batch: wait for further ones.
            known = {
                key: Place(state.incarnation, state.latest + 1)
                for key, state in self._states.items()
            }
        wait_ms = self._options.poll_wait_ms
        if group is None or done is None:
            return self._catalog.wait(known, wait_ms)

        def commit() -> Callable[[], object]:
            asked = group.start_commit(done)
            return lambda: group.finish_commit(asked)

        return self._catalog.wait(known, wait_ms, commit)

    def _up_to_date(self, places: Places, states: dict[str, QueueState]) -> Places:
        """Return the places without removed queues, and with new ones.

        A queue that was new in the current batch, and has nothing more to read, keeps its
        ``begin``, because the offset must not change if nothing arrived.
        """
        end: Places = {}
        for key, was in places.items():
            place = was
            state = states.get(key)
            if state is None or state.incarnation != place.incarnation:
                if self._target is not None and state is None:
                    # The queue was created after the query's end was noted.
                    end[key] = place
                    states[key] = _at_end(key, place)
                    continue
                self._lost(key, place, state is not None)
                continue
            if place.next > state.latest + 1 and (self._target is None or self._initial is None):
                place = self._gone_back(key, place, state)
            unread = state.latest + 1 > place.next
            end[key] = Place(place.incarnation, place.next, None if unread else place.begin)
        fresh = [
            state
            for key, state in states.items()
            if key not in end and (state.latest >= state.earliest)
        ]
        if not fresh:
            return end
        self._check_mode(fresh)
        begun = self._group.open(fresh, "earliest") if self._group is not None else {}
        for state in fresh:
            place = begun.get(state.key, Place(state.incarnation, state.earliest))
            end[state.key] = Place(state.incarnation, place.next, place.next)
        return end

    def _lost(self, key: str, place: Place, is_another: bool) -> None:
        if self._options.fail_on_data_loss:
            raise DataLost(
                f"{self._link.options.url} {key}: the queue was removed"
                f"{' and re-created' if is_another else ''} after message {place.next - 1} was"
                " read; start from a new checkpoint, or set failOnDataLoss=false to go on without"
            )

    def _gone_back(self, key: str, place: Place, state: QueueState) -> Place:
        """Handle a queue with fewer messages than were read: an old copy of the broker's data was
        restored."""
        if self._options.fail_on_data_loss:
            raise DataLost(
                f"{self._link.options.url} {key}: message {place.next - 1} was read, and the queue "
                f"has only got to {state.latest}: was an older copy of the broker's data restored? "
                f"Start from a new checkpoint, or set failOnDataLoss=false to continue with new "
                f"messages"
            )
        return Place(state.incarnation, state.latest + 1, state.latest + 1)

    def _admit(
        self,
        begins: dict[str, int],
        backlog: dict[str, int],
        states: dict[str, QueueState],
        unlimited: bool,
    ) -> dict[str, int]:
        """Return how many sequences of each queue the batch takes."""
        options = self._options
        taken = dict(backlog)
        if unlimited:
            return taken
        if options.max_offsets is not None:
            taken = share_out(backlog, options.max_offsets)
        if options.max_bytes is None:
            return taken
        left = options.max_bytes
        keys = [key for key, count in taken.items() if count]
        turn = self._trigger % max(1, len(keys))
        sizes = {key: max(1, states[key].size_of(taken[key])) for key in keys}
        total = sum(sizes.values())
        for number, key in enumerate(keys[turn:] + keys[:turn]):
            share = left if total <= 0 else left * sizes[key] // total
            total -= sizes[key]
            channel, queue = parse_key(key)
            begin = begins[key]
            whole = QueueRange(
                channel, queue, states[key].incarnation, begin, begin + taken[key], sizes[key]
            )
            end, size = bytes_up_to(self._link, whole, max(1, share))
            if size > share and number:
                # A message larger than its share waits for its turn to be first.
                taken[key] = 0
                continue
            taken[key] = end - begin
            left = max(0, left - size)
        return taken

    # --- The batch itself ------------------------------------------------------------------------

    def plan(self, start: dict[str, Any], end: dict[str, Any]) -> list[QueueRange]:
        """Divide the messages between two offsets into the ranges of tasks.  Every call covers the
        same messages."""
        before, after = read_checkpoint(start), read_checkpoint(end)
        if self._states is None:
            # An earlier run began this batch: Spark requests it before anything else.
            self._states = self._catalog.look()
        ranges: list[QueueRange] = []
        for key, place in after.items():
            first = _begin_of(place, before.get(key))
            if first >= place.next:
                continue
            channel, queue = parse_key(key)
            state = self._states.get(key)
            size = state.size_of(min(place.next - first, state.count)) if state else 0
            ranges.append(QueueRange(channel, queue, place.incarnation, first, place.next, size))
        self._read_up_to = after
        return split_ranges(self._link, ranges, self._options)

    def commit(self, end: dict[str, Any]) -> None:
        """Handle that Spark has processed everything up to this offset, which it reports one batch
        late."""
        if self._options.commit_mode == "lagged":
            due = self._due(read_checkpoint(end))
            if due is not None and self._group is not None:
                self._group.commit(due)

    def _due(self, places: Places) -> Places | None:
        """Return the places to commit when everything before ``places`` is processed: these, or
        with ``commitDelay`` those of an earlier batch; None if there are none yet."""
        waiting = self._to_commit
        if not waiting or waiting[-1] != places:
            waiting.append(places)
        while len(waiting) > self._options.commit_delay + 1:
            waiting.popleft()
        return waiting[0] if len(waiting) > self._options.commit_delay else None

    def report(self) -> dict[str, Any] | None:
        """Return the newest offsets, and how much remains after the current batch (``behind``)."""
        if self._states is None:
            return None
        newest = {
            key: Place(state.incarnation, state.latest + 1) for key, state in self._states.items()
        }
        messages = size = 0
        for key, state in self._states.items():
            place = self._read_up_to.get(key)
            behind = state.count if place is None else max(0, state.latest + 1 - place.next)
            messages += behind
            size += state.size_of(min(behind, state.count))
        return {**write_checkpoint(newest), "behind": {"bytes": size, "messages": messages}}


def _begin_of(place: Place, before: Place | None) -> int:
    """Return where a batch begins in a queue: after the previous one, or at the beginning of a new
    queue."""
    if before is None or before.incarnation != place.incarnation or before.next > place.next:
        return place.next if place.begin is None else place.begin
    return before.next


def _at_end(key: str, place: Place) -> QueueState:
    channel, queue = parse_key(key)
    return QueueState(channel, queue, place.incarnation, place.next, place.next - 1, 0, 0, 0)


def share_out(backlog: dict[str, int], most: int) -> dict[str, int]:
    """Divide ``most`` messages among queues in proportion to their backlog; the sum is never
    more."""
    total = sum(backlog.values())
    if total <= most:
        return dict(backlog)
    shares = {key: count * most // total for key, count in backlog.items()}
    left = most - sum(shares.values())
    # The remainder of rounding goes first to queues that got nothing, so that none starves, then to
    # those with the largest rest.
    for key in sorted(backlog, key=lambda key: (shares[key] > 0, shares[key] - backlog[key], key)):
        if left <= 0:
            break
        if shares[key] < backlog[key]:
            shares[key] += 1
            left -= 1
    return shares
