"""Tokens: what is kept of them, what fits, and that nothing can be read from how one is refused."""

from __future__ import annotations

import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp_server.access.tokens import TokenHash, find_token, hash_token, new_token

WORDS = st.text(min_size=1, max_size=40).filter(
    lambda word: word == word.strip() and len(word.splitlines()) == 1
)


@given(WORDS, WORDS)
def test_a_hash_fits_its_token_and_no_other(token: str, other: str) -> None:
    kept = TokenHash(hash_token(token))
    assert kept.fits(token)
    assert kept.fits(other) == (other == token)


def test_a_slow_hash_fits_its_token_and_is_never_the_same_twice() -> None:
    first, second = hash_token("word", slow=True), hash_token("word", slow=True)
    assert first != second
    for text in (first, second):
        kept = TokenHash(text)
        assert kept.slow
        assert kept.fits("word")
        assert not kept.fits("Word")


def test_new_tokens_differ_and_can_be_brought() -> None:
    drawn = {new_token() for _ in range(100)}
    assert len(drawn) == 100
    assert all(len(token) == 43 and token.isascii() for token in drawn)
    assert all(TokenHash(hash_token(token)).fits(token) for token in drawn)


@pytest.mark.parametrize("token", ["", " x", "x ", "a\nb", "a\rb", "\t"])
def test_what_no_client_could_bring_is_no_token(token: str) -> None:
    with pytest.raises(ValueError, match="one line without spaces"):
        hash_token(token)


HEX = "0" * 64


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "has the form"),
        ("secret", "has the form"),
        ("md5:00", "has the form"),
        ("sha256:xyz", "has the form"),
        (f"sha256:{HEX}:1", "has the form"),
        ("sha256:00", "32 bytes"),
        (f"scrypt:14:8:1:{HEX}", "has the form"),
        (f"scrypt:a:8:1:00:{HEX}", "has the form"),
        (f"scrypt:30:8:1:00:{HEX}", "LOG2N up to 18"),
        (f"scrypt:14:0:1:00:{HEX}", "R up to"),
        (f"scrypt:14:8:99:00:{HEX}", "P up to"),
    ],
)
def test_what_is_no_hash_is_told_without_repeating_it(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        TokenHash(text)
    assert "secret" not in str(caught.value)
    assert HEX not in str(caught.value)


def test_a_hash_does_not_show_itself() -> None:
    text = hash_token("word")
    assert text.partition(":")[2] not in repr(TokenHash(text))


def test_all_hashes_are_compared_whichever_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long it takes says nothing about which token was brought, or whether there is one."""
    compared: list[bytes] = []

    def compare(first: bytes, second: bytes) -> bool:
        compared.append(second)
        return first == second

    monkeypatch.setattr(hmac, "compare_digest", compare)
    hashes = [TokenHash(hash_token(word)) for word in ("a", "b", "c")]
    for word, places in (("a", [0]), ("b", [1]), ("c", [2]), ("d", []), ("", [])):
        compared.clear()
        assert find_token(word, hashes) == places
        assert len(compared) == 3
