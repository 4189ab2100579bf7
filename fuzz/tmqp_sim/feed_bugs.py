"""The bugs that are planted in feeds; see ``mutants.py``."""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.engine.commands import Command
from tmqp_server.engine.delivery.feed_commits import Commit, FeedCommits
from tmqp_server.engine.delivery.feed_runs import FeedRuns
from tmqp_server.engine.delivery.feeding import Feeder
from tmqp_server.engine.delivery.feeds import Feeds
from tmqp_server.engine.effects import CommitBatch, Reply
from tmqp_server.engine.model.feeds import Feed
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.model.snapshots import FeedSnapshot

__all__ = ["FEED_BUGS"]


def _is_not_restored(original: Any) -> Any:
    """A feed that the disk knows is skipped when the server begins again."""

    def restore(self: Feeds, command: Any) -> None:
        return

    return restore


def _copies_without_erasing(original: Any) -> Any:
    """A commit brings the copies, and leaves the messages in the source."""

    def begin(self: FeedCommits, commit: Commit) -> None:
        original(self, commit)
        effect = self._core.out[-1]
        assert isinstance(effect, CommitBatch)
        effect.erased = []

    return begin


def _erases_without_copies(original: Any) -> Any:
    """A commit takes the messages out of the source, and brings no copies."""

    def begin(self: FeedCommits, commit: Commit) -> None:
        original(self, commit)
        effect = self._core.out[-1]
        assert isinstance(effect, CommitBatch)
        effect.appended = []

    return begin


def _never_fails(original: Any) -> Any:
    """A commit that could not be saved is taken for saved."""

    def synced(self: FeedCommits, commit: Commit, ok: bool) -> None:
        original(self, commit, True)

    return synced


def _last_first(original: Any) -> Any:
    """A commit brings its copies in the wrong order."""

    def begin(self: FeedCommits, commit: Commit) -> None:
        commit.items.reverse()
        original(self, commit)

    return begin


def _feeds_again(original: Any) -> Any:
    """Some messages, those with short ids, are copied twice."""

    def copy(self: Feeder, feed: Any, message: Message, now: float) -> None:
        original(self, feed, message, now)
        if len(message.message_id) == 2:
            original(self, feed, message, now)

    return copy


def _runs_leave_one_out(original: Any) -> Any:
    """Pushes in a row are copied to all feeds but the last."""

    def passages(self: FeedRuns, feeds: Any, run: Any) -> Any:
        found = original(self, feeds, run)
        return found[:-1] if found is not None and len(found) > 1 else found

    return passages


def _lists_all_but_the_last(original: Any) -> Any:
    """A list of feeds leaves the last one out."""

    def list_feeds(self: Feeds, command: Command, session: Session) -> None:
        original(self, command, session)
        reply = self._core.out[-1]
        assert isinstance(reply, Reply)
        if isinstance(reply.body, list):
            del reply.body[-1:]

    return list_feeds


def _counts_it_passed_over(original: Any) -> Any:
    """What a feed has copied is told as skipped by its filter."""

    def tell(self: FeedSnapshot, feed: Feed) -> None:
        original(self, feed)
        self.copied, self.passed = 0, self.copied

    return tell


#: What a mutant is made of.
FEED_BUGS: Final[tuple[tuple[str, str, Any, str, Any], ...]] = (
    (
        "feed-not-restored", "a feed is skipped when the server begins again",
        Feeds, "restore", _is_not_restored,
    ),
    (
        "feed-erases-nothing", "a commit of copies leaves the messages in the source",
        FeedCommits, "begin", _copies_without_erasing,
    ),
    (
        "feed-erases-alone", "a commit of copies settles the messages, and keeps no copies",
        FeedCommits, "begin", _erases_without_copies,
    ),
    (
        "feed-never-fails", "a commit of copies that could not be saved is taken for saved",
        FeedCommits, "synced", _never_fails,
    ),
    (
        "feed-last-first", "a commit of copies brings the last message first",
        FeedCommits, "begin", _last_first,
    ),
    (
        "feed-doubles", "a message is copied twice into what a queue feeds",
        Feeder, "_copy", _feeds_again,
    ),
    (
        "feed-run-leaves-out", "pushes in a row are not copied to the last feed",
        FeedRuns, "_passages", _runs_leave_one_out,
    ),
    (
        "feed-not-listed", "a list of feeds leaves the last one out",
        Feeds, "list_feeds", _lists_all_but_the_last,
    ),
    (
        "feed-miscounts", "what a feed has copied is told as passed over by its filter",
        FeedSnapshot, "__init__", _counts_it_passed_over,
    ),
)  # fmt: skip
