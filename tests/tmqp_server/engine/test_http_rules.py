"""Which URLs HTTP bindings may call: nothing by default, and nothing by a trick."""

from __future__ import annotations

import pytest

from tmqp_server.engine.http_rules import MAX_URL_BYTES, HttpRules

RULES = HttpRules(("http://hooks.example/in", "https://h:8443/", "http://[::1]:80/a/"))


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example/in",
        "http://hooks.example:80/in/x?a=b&c",
        "HTTP://HOOKS.example/in/",
        "http://hooks.example/in?x",
        "https://h:8443",
        "https://h:8443/anything/at/all",
        "http://[::1]/a/b",
    ],
)
def test_what_may_be_called(url: str) -> None:
    assert RULES.problem_of(url) == 0


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example/",
        "http://hooks.example/inside",
        "http://hooks.example/IN",
        "http://hooks.example:8080/in",
        "https://hooks.example/in",
        "http://hooks.example.evil/in",
        "http://evil/in",
        "http://evil/?http://hooks.example/in",
        "https://h:8444/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
    ],
)
def test_what_is_not_under_a_prefix(url: str) -> None:
    assert RULES.problem_of(url) == 401


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x",
        "hooks.example/in",
        "//hooks.example/in",
        "ftp://hooks.example/in",
        "file:///etc/passwd",
        "http:///in",
        "http://user:password@hooks.example/in",
        "http://hooks.example@evil/in",
        "http://hooks.example\\@evil/in",
        "http://hooks.example/in/../admin",
        "http://hooks.example/in/./x",
        "http://hooks.example/in/%2e%2E/admin",
        "http://hooks.example/in/..%2fadmin",
        "http://hooks.example/in/%5cx",
        "http://hooks.example/in#x",
        "http://hooks.example/in x",
        "http://hooks.example/in\r\nHost: evil",
        "http://hooks.example/in\t",
        "http://hooks.example:99999/in",
        "http://hooks.example:x/in",
        "http://[::1/a/",
        "http://höoks.example/in",
        "http://hooks.example/in/" + "x" * MAX_URL_BYTES,
    ],
)
def test_what_is_no_url(url: str) -> None:
    assert RULES.problem_of(url) == 400


def test_the_longest_url() -> None:
    url = "http://hooks.example/in/"
    assert RULES.problem_of(url + "x" * (MAX_URL_BYTES - len(url))) == 0


def test_nothing_may_be_called_unless_something_is_allowed() -> None:
    for url in ("http://hooks.example/in", "nonsense"):
        assert HttpRules(()).problem_of(url) == 501


@pytest.mark.parametrize("prefix", ["hooks", "ftp://h/", "http://h/?a", "http://u@h/", "*"])
def test_what_is_no_prefix(prefix: str) -> None:
    with pytest.raises(ValueError, match="is no plain http or https URL"):
        HttpRules((prefix,))
