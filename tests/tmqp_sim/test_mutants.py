"""The proof that the simulation finds bugs: each that is planted is noticed, and soon."""

from __future__ import annotations

from typing import Final

import pytest

from tests.project import ROOT
from tmqp_sim.minimise import minimise
from tmqp_sim.mutants import MUTANTS, planted
from tmqp_sim.simulation import run

pytestmark = pytest.mark.cold

#: Every bug is found within so many seeds.
LIMIT: Final = 1_000
#: Seeds that CI runs without a bug (``make sim-compiled``); they are not run so here again.
SIMULATED: Final = range(10_000)
#: Where they were found last; the search begins there.
FOUND_AT: Final = {
    "address-messages-free": 128,
    "addresses-counted-singly": 77,
    "addresses-for-ever": 77,
    "all-at-once": 3,
    "always-first": 2,
    "answered-twice": 56,
    "answers-as-they-come": 34,
    "answers-outlive": 726,
    "any-answer": 510,
    "arrivals-ignored": 69,
    "arrivals-refused": 69,
    "audit-forgets": 8,
    "audit-repeats": 12,
    "batch-forgets-in-part": 3,
    "batch-never-fails": 146,
    "batch-of-anybody": 146,
    "batch-settles-anyway": 578,
    "batch-settles-later": 90,
    "believed-letters": 3,
    "believes-anybody": 77,
    "branch-answers-for-none": 604,
    "branch-outlives": 22,
    "bucket-is-nobodys": 77,
    "cancelled-in-memory-only": 489,
    "cancelled-in-words": 4,
    "cell-changes-uncounted": 76,
    "cell-dropped-in-words": 16,
    "cell-ends-late": 113,
    "cell-shortened-twice": 111,
    "cells-between-portions": 76,
    "clear-in-a-handshake": 247,
    "clock-stands": 13,
    "commits-every-time": 407,
    "confirmed-before-written": 29,
    "cookie-without-proof": 0,
    "counter-begins-unchanged": 76,
    "counter-made-again": 16,
    "counts-nobody": 7,
    "created-too-early": 39,
    "deaf-for-good": 2,
    "deaf-to-no": 3,
    "dealt-beyond-room": 13,
    "dealt-but-one": 48,
    "decision-misnamed": 159,
    "deferred-in-memory-only": 606,
    "deferred-too-short": 4,
    "describes-who-asks": 48,
    "dials-for-ever": 1,
    "disconnects-in-part": 55,
    "disconnects-nobody": 59,
    "drain-at-once": 38,
    "drain-confirms": 38,
    "drain-drops": 38,
    "drain-for-ever": 38,
    "drain-goes-on": 149,
    "empty-stays": 89,
    "erased-early": 137,
    "exclusive-shares": 21,
    "expires-early": 264,
    "expiry-by-boot-time": 18,
    "failed-sync": 16,
    "failed-write-saved": 8,
    "feed-doubles": 59,
    "feed-erases-alone": 68,
    "feed-erases-nothing": 42,
    "feed-last-first": 258,
    "feed-miscounts": 42,
    "feed-never-fails": 228,
    "feed-not-listed": 42,
    "feed-not-restored": 96,
    "feed-owes-nothing": 782,
    "feed-run-leaves-out": 113,
    "fetch-dropped": 193,
    "filter-comes-late": 103,
    "filters-ignored": 30,
    "forget-in-flight": 4,
    "forgets-its-door": 22,
    "found-in-any-case": 0,
    "full-goes": 82,
    "given-back-at-once": 28,
    "given-back-is-done": 28,
    "goms-empty-line": 16,
    "goms-first-topic": 16,
    "goms-keeps-its-topics": 23,
    "goms-last-forgotten": 23,
    "goms-leaves-the-first": 16,
    "goms-mine-as-well": 16,
    "gone-shown": 0,
    "gone-uncounted": 322,
    "grant-adds": 254,
    "grant-misread": 27,
    "heals-without-proof": 8,
    "held-and-forgotten": 96,
    "held-for-ever": 96,
    "immortal-after-reboot": 185,
    "impatient": 7,
    "items-not-counted": 191,
    "jms-confirmed-by-one": 33,
    "jms-confirmed-when-sent": 40,
    "jms-copies-later": 313,
    "jms-done-confirms-anyway": 33,
    "jms-subscription-begins-anew": 33,
    "jms-topic-confirmed-early": 228,
    "keeps-what-is-aside": 3,
    "kept-for-good": 102,
    "key-never-free": 742,
    "key-not-locked": 18,
    "key-taken-literally": 76,
    "lapses-in-silence": 23,
    "lapses-what-it-gives-back": 138,
    "last-words-lost": 85,
    "late-dial": 25,
    "latest-exclusive": 21,
    "leaky-holders": 7,
    "leaky-pull": 144,
    "leaver-keeps-all": 29,
    "leaves-out-what-is-aside": 3,
    "leaves-them-waiting": 2,
    "letter-of-another": 22,
    "letter-owes-nothing": 101,
    "list-of-cells-too-short": 16,
    "log-in-never-its-turn": 118,
    "log-in-pauses-stay": 78,
    "log-ins-together": 78,
    "look-overlooks": 11,
    "look-shows-all": 283,
    "look-takes": 11,
    "looked-at-once": 13,
    "lost-nack": 3,
    "mark-comes-later": 476,
    "mark-without-messages": 8,
    "metrics-in-one-step": 0,
    "miscounted": 8,
    "move-copies": 188,
    "move-loses": 171,
    "never-asks": 11,
    "never-blocked": 7,
    "never-in-turn-again": 7,
    "never-unblocked": 44,
    "newest-makes-way": 13,
    "no-credit": 2,
    "no-dead-letter": 14,
    "no-flush": 24,
    "no-hard-limit": 283,
    "no-more-time": 74,
    "no-notes": 576,
    "no-pause": 96,
    "no-waiting": 7,
    "nobody-exempt": 77,
    "nothing-makes-way": 13,
    "nsq-deferred-too-short": 0,
    "nsq-first-attempt": 0,
    "nsq-foreign-for-ever": 7,
    "nsq-last-forgotten": 127,
    "nsq-late-measured": 42,
    "nsq-no-heartbeat": 7,
    "nsq-one-too-many": 3,
    "nsq-requeued-at-once": 3,
    "nsq-touch-too-short": 3,
    "offset-forgotten": 6,
    "only-its-own": 24,
    "only-positive": 17,
    "openwire-at-once": 32,
    "openwire-commits-but-the-last": 32,
    "openwire-commits-without-answers": 32,
    "openwire-given-up-not-settled": 39,
    "openwire-joins-nothing-new": 125,
    "openwire-never-refused": 107,
    "openwire-range-of-one": 39,
    "openwire-rollback-commits": 32,
    "openwire-says-it-twice": 32,
    "openwire-shares-exclusive": 228,
    "openwire-subscribed-early": 14_128,
    "outlives-its-consumers": 43,
    "outlives-its-owner": 13,
    "overtaken-bytes": 7,
    "overtaken-run": 65,
    "owes-nothing": 41,
    "own-time-ignored": 209,
    "packed-in-part": 12,
    "parked-for-good": 122,
    "passed-on-again": 1,
    "passes-a-run-twice": 659,
    "passes-all-of-a-run": 22,
    "passes-answers-of-anybody": 22,
    "passes-answers-twice": 19,
    "passes-any-answer": 22,
    "pause-stays": 121,
    "portion-lost": 8,
    "priority-unread": 55,
    "progress-ignored": 107,
    "put-back-before-all": 40,
    "put-back-limit": 14,
    "quiet-for-ever": 18,
    "quota-leaks": 0,
    "quota-starts-at-nothing": 18,
    "quota-too-high": 50,
    "rate-for-ever": 69,
    "rate-ignored": 69,
    "rate-too-slow": 69,
    "reads-on": 7,
    "regular-first": 5,
    "reload-keeps-arrivals": 611,
    "reload-keeps-connections": 71,
    "reload-keeps-rates": 671,
    "removed-in-words": 7,
    "removes-all-but-one": 3,
    "removes-unasked": 264,
    "rest-forgotten": 24,
    "return-unread": 27,
    "room-is-never-tried": 125,
    "room-leaves-behind": 125,
    "run-answered-elsewhere": 43,
    "run-answered-in-part": 7,
    "run-confirmed-early": 57,
    "run-delivered-twice": 48,
    "run-erased-in-part": 84,
    "run-kept-in-part": 256,
    "run-never-timed": 65,
    "run-of-duplicates": 121,
    "run-of-one-queue": 2,
    "run-overtakes": 131,
    "run-waits-in-part": 203,
    "run-wider-window": 627,
    "run-without-headers": 48,
    "run-without-room": 57,
    "said-twice": 68,
    "shelf-cancel-in-words": 625,
    "shelf-copy-for-nothing": 406,
    "shelf-keeps-its-copy": 103,
    "shelf-never-read": 20,
    "shelf-too-early": 20,
    "short-run": 2,
    "silent-letters": 14,
    "single-shares": 13,
    "skips-one-more": 136,
    "skips-the-last": 2,
    "slow-turn-of-another": 104,
    "slow-turns-all-logged": 896,
    "slow-write-unnoticed": 27,
    "smq-done-at-the-end": 63,
    "smq-goes-on": 176,
    "smq-half-a-line": 63,
    "smq-in-any-case": 40,
    "smq-last-forgotten": 508,
    "smq-newest-first": 40,
    "smq-one-more": 40,
    "smq-only-what-waits": 40,
    "socket-forgets-frames": 15,
    "socket-sends-the-first-piece": 420,
    "sources-uncounted": 102,
    "stale-audience": 2,
    "stall-allowed": 107,
    "stomp-auto-never-done": 33,
    "stomp-commits-but-the-last": 33,
    "stomp-commits-without-answers": 33,
    "stomp-joins-nothing-new": 173,
    "stomp-last-forgotten": 33,
    "stomp-never-refused": 104,
    "stomp-says-it-twice": 33,
    "stomp-sent-at-once": 33,
    "stomp-shares-exclusive": 367,
    "stomp-the-last-alone": 192,
    "stopped-and-read": 22,
    "successor-does-not-wait": 575,
    "survey-hides-one": 48,
    "survey-shows-again": 48,
    "taken-is-written": 37,
    "takes-it-for-put-aside": 29,
    "ten-priorities-are-one": 32,
    "terms-set-in-words": 120,
    "torn-forgotten": 37,
    "two-owners": 21,
    "unclean-is-clean": 221,
    "unsure-copies": 1247,
    "view-repeats": 48,
    "waits-for-ever": 3,
    "wider-window": 7,
    "window-ignored": 29,
    "window-stays-full": 29,
    "work-not-counted": 191,
    "writes-once": 10,
    "wrong-session-blamed": 4,
    "youngest-first": 7,
    "zmtp-anywhere": 24,
    "zmtp-counts-on": 43,
    "zmtp-deaf-to-the-disk": 677,
    "zmtp-first-part": 187,
    "zmtp-no-heartbeat": 20,
    "zmtp-pings-the-silent": 17,
    "zmtp-sent-twice": 398,
    "zmtp-stays-subscribed": 70,
    "zmtp-uncounted-drop": 20,
}


def test_the_document_counts_them() -> None:
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert f"Each of {len(MUTANTS)} bugs planted in" in text


@pytest.mark.parametrize("name", MUTANTS)
def test_what_a_planted_bug_replaces_is_still_there(name: str) -> None:
    """Whoever moves a method learns at once, and not from the long tests, that a bug moves too."""
    owner, attribute = MUTANTS[name].owner, MUTANTS[name].attribute
    original = vars(owner)[attribute]
    with planted(name):
        assert vars(owner)[attribute] is not original
    assert vars(owner)[attribute] is original


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_found(name: str) -> None:
    likely = FOUND_AT.get(name, 0)
    with planted(name):
        result = run(likely)
        for seed in range(LIMIT):
            if result.failed:
                break
            result = run(seed)
    assert result.failed, f"{LIMIT} seeds did not notice: {MUTANTS[name].text}"
    print(f"{name}: seed {result.seed} by {result.checker}")
    assert result.seed in SIMULATED or not run(result.seed).failed, "it fails without the bug"


def test_no_name_is_no_bug() -> None:
    with planted("") as mutant:
        assert mutant is None


def test_an_unknown_bug_is_refused() -> None:
    with pytest.raises(KeyError), planted("unheard-of"):
        pass


def test_a_failing_run_is_made_smaller() -> None:
    with planted("skips-the-last"):
        whole = next(result for result in map(run, range(LIMIT)) if result.failed)
        told: list[str] = []
        small = minimise(whole.seed, told.append, start=whole)
    assert small.checker == whole.checker
    assert small.events < whole.events
    assert len(small.left_out) > 10
    assert told[-1].startswith("1 things left") or len(small.left_out) > 10
    report = small.report()
    assert f"seed {whole.seed} FAILED: {whole.checker}" in report
    assert "things" in report


def test_a_run_that_passes_is_not_made_smaller() -> None:
    result = minimise(3)
    assert not result.failed
    assert result.left_out == ()
