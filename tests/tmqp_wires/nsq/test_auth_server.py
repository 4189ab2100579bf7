"""What an auth server is asked, and what it may answer."""

from __future__ import annotations

import json

import pytest

from tmqp_wires.nsq.auth_server import (
    MAX_ANSWER_BYTES,
    AuthAnswerError,
    AuthQuestion,
    read_answer,
)

QUESTION = AuthQuestion("127.0.0.1", "sekret")


def answer(**more: object) -> bytes:
    """An answer that the probe's auth server gave, with changes."""
    given: dict[str, object] = {
        "ttl": 3600,
        "identity": "me",
        "identity_url": "http://id",
        "authorizations": [
            {"topic": "^ok", "channels": [".*"], "permissions": ["subscribe", "publish"]}
        ],
    }
    return json.dumps({**given, **more}).encode()


def test_a_get_is_what_nsqd_sent() -> None:
    asked = QUESTION.request("127.0.0.1:8098")
    assert (asked.method, asked.url, asked.body) == (
        "GET",
        "http://127.0.0.1:8098/auth?common_name=&remote_ip=127.0.0.1&secret=sekret&tls=false",
        b"",
    )
    assert asked.headers == (("Accept", "application/vnd.nsq; version=1.0"),)


def test_a_post_is_what_nsqd_sent() -> None:
    asked = QUESTION.request("127.0.0.1:8098", "post")
    assert (asked.method, asked.url) == ("POST", "http://127.0.0.1:8098/auth")
    assert asked.body == (
        b'{"common_name":[""],"remote_ip":["127.0.0.1"],"secret":["sekret"],"tls":["false"]}'
    )
    assert ("Content-Type", "application/json") in asked.headers


def test_a_whole_url_is_asked_as_it_is_and_values_are_escaped() -> None:
    asked = AuthQuestion("::1", "a&b=c d", True, "Bob").request("https://auth.example/v2")
    assert asked.url == (
        "https://auth.example/v2?common_name=Bob&remote_ip=%3A%3A1&secret=a%26b%3Dc+d&tls=true"
    )


def test_publishing_needs_a_channel_pattern_that_matches_nothing() -> None:
    """N51, as recorded: with ``^c$`` a client may consume channel c, and not publish."""
    everything = read_answer(200, answer())
    assert everything.allows("ok1")
    assert everything.allows("ok1", "d")
    assert not everything.allows("zz")
    rule = {"topic": "^ok", "channels": ["^c$"], "permissions": ["subscribe", "publish"]}
    narrow = read_answer(200, answer(authorizations=[rule]))
    assert narrow.allows("ok1", "c")
    assert not narrow.allows("ok1", "d")
    assert not narrow.allows("ok1")
    assert narrow.knows("ok1")
    assert not narrow.knows("zz")


def test_patterns_are_searched() -> None:
    rule = {"topic": "rd", "channels": [""], "permissions": ["publish"]}
    found = read_answer(200, answer(authorizations=[rule]))
    assert found.allows("orders")
    assert not found.allows("orders", "c")


@pytest.mark.parametrize("given", [None, []])
def test_no_authorizations_is_an_answer(given: object) -> None:
    found = read_answer(200, answer(authorizations=given))
    assert list(found.authorizations) == []
    assert not found.allows("ok1")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (403, answer()),
        (200, b"{"),
        (200, b"[]"),
        (200, answer(ttl=0)),
        (200, answer(ttl="60")),
        (200, answer(ttl=True)),
        (200, answer(identity=7)),
        (200, answer(authorizations={})),
        (200, answer(authorizations=["x"])),
        (200, answer(authorizations=[{"topic": "(", "channels": [], "permissions": []}])),
        (200, answer(authorizations=[{"topic": "a", "channels": "x", "permissions": []}])),
        (200, answer(authorizations=[{"topic": "a", "channels": [], "permissions": ["write"]}])),
        (200, answer(authorizations=[{"topic": "a" * 1_025, "permissions": []}])),
        (200, answer(authorizations=[{"topic": "a", "permissions": []}] * 1_001)),
        (200, answer() + b" " * MAX_ANSWER_BYTES),
        (200, b"[" * 100_000),
    ],
)
def test_what_is_no_answer_is_refused(status: int, body: bytes) -> None:
    with pytest.raises(AuthAnswerError):
        read_answer(status, body)
