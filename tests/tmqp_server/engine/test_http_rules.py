"""Which URLs HTTP bindings may call: nothing by default, and nothing by a trick."""

from __future__ import annotations

import pytest

from tmqp_server.engine.routing.http_rules import MAX_URL_BYTES, HttpRules

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
        "http://hooks.example/in/report.v2.json",
        "http://hooks.example/in/a%20b/%C3%A9t%c3%a9/x:y@z",
        "http://hooks.example/in/x?path=/../;%2e%00",
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
        "http://hooks.example/in/..;/x",
        "http://hooks.example/in/x;a=b",
        "http://hooks.example/in/%3b",
        "http://hooks.example/in/%252e%252e/x",
        "http://hooks.example/in/%25",
        "http://hooks.example/in/..%00/x",
        "http://hooks.example/in/..%20/x",
        "http://hooks.example/in/..%09",
        "http://hooks.example/in/.../x",
        "http://hooks.example/in/%2e",
        "http://hooks.example/in/%3fx",
        "http://hooks.example/in/%23x",
        "http://hooks.example/in/%",
        "http://hooks.example/in/%2",
        "http://hooks.example/in/%u002e",
        "http://hooks.example/in/%c0%ae%c0%ae/x",
        "http://hooks.example/in/%ef%bc%8e%ef%bc%8e/x",
        "http://hooks.example/in/%e2%80%ae",
        "http://hooks.example/in/%c2%85",
        "http://hooks.example/in/%ff",
        "http://hooks.example/in/<x>",
        "http://hooks.example/in/{x}",
        'http://hooks.example/in/"',
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
    with pytest.raises(ValueError, match="is not a plain http or https URL"):
        HttpRules((prefix,))
