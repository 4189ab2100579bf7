"""nsqadmin's page in a headless Chromium: every page, actions, hostile names, phone, keyboard."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.browser import CHROMIUM, Browser, browser
from tests.project import ROOT
from tests.tmqp_nsq.nodes import FakeLookupd, FakeNsqd, serving

pytestmark = [
    pytest.mark.cold,
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]

#: What a node that is not ours may say of itself and of its clients.
HOSTILE: Final = "<img src=x onerror=window.hurt=1>\"'`${window.hurt=1}"


@contextmanager
def nsqadmin(*flags: str) -> Iterator[str]:
    """Run the program; gives the beginning of its URLs."""
    code = "from tmqp_nsq.nsqadmin import main; main()"
    places = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-c", code, "--http-address=127.0.0.1:0", *flags],
        env={**os.environ, "PYTHONPATH": places},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        assert "HTTP: listening on 127.0.0.1:" in line, line
        yield f"http://{line.rpartition(' ')[2].strip()}/"
    finally:
        process.terminate()
        process.communicate(timeout=20)
    assert process.returncode == 0


def shown(page: Browser, address: str) -> str:
    """The text of a page when it is there."""
    page.open(address)
    page.until("!!document.querySelector('main h1')")
    return page.text()


def looks(page: Browser, base: str, node: str) -> None:
    """Every page shows its columns (N150 to N152)."""
    text = shown(page, base)
    assert "Depth of Channels" in text
    text = shown(page, f"{base}topics/at")
    for column in ("NSQd Host", "Depth", "Memory + Disk", "Messages", "Rate", "Channels", "Total"):
        assert column in text, column
    assert "out of date" not in text
    text = shown(page, f"{base}topics/at/ch")
    for column in (
        *("In-Flight", "Deferred", "Requeued", "Timed Out", "Connections", "E2E Latency"),
        *("Client Host", "Protocol", "Attributes", "Ready Count", "Finished", "Connected"),
        *("TLS 1.3", "snappy", "sampled 20 %", "auth: billing", "ua/1"),
    ):
        assert column in text, column
    text = shown(page, f"{base}nodes")
    for words in ("out of date", "1 of 2", "Nodes (2)"):
        assert words in text
    assert node in shown(page, f"{base}nodes/{node}")
    assert "per second" in shown(page, f"{base}counter")
    assert "old_topic" in shown(page, f"{base}lookup")


def acts(page: Browser, base: str, nsqd: FakeNsqd, lookupd: FakeLookupd) -> None:
    """Actions ask first; Cancel and Escape change nothing."""
    shown(page, f"{base}topics/at/ch")
    page.click("Pause")
    page.until("document.getElementById('question').open")
    assert page.run("document.activeElement.textContent") == "Cancel"
    page.key("Enter")
    page.until("!document.getElementById('question').open")
    page.click("Pause")
    page.until("document.getElementById('question').open")
    page.key("Escape")
    page.until("!document.getElementById('question').open")
    assert not nsqd.topics[0]["channels"][0].get("paused")
    page.click("Pause")
    page.key("Tab")
    page.key("Enter")
    page.until("document.body.innerText.includes('Done: pause channel ch')")
    page.until("document.body.innerText.includes('Unpause')")
    assert nsqd.topics[0]["channels"][0]["paused"] is True
    shown(page, f"{base}lookup")
    page.run("document.querySelector('[name=topic]').focus()")
    page.type("bad name")
    page.click("Create")
    assert "bad name" not in lookupd.topics
    page.run("document.querySelector('[name=topic]').select()")
    page.type("made")
    page.run("document.querySelector('[name=channel]').focus()")
    page.type("too")
    page.click("Create")
    page.until("document.body.innerText.includes('Created: made / too')")
    assert lookupd.topics["made"] == ["too"]
    shown(page, f"{base}nodes/{nsqd.address}")
    page.click("Tombstone")
    page.run("document.getElementById('question-yes').click()")
    page.until("document.body.innerText.includes('Done: tombstone topic')")
    assert lookupd.tombstones


def is_safe(page: Browser, base: str, pictures: Path) -> None:
    """Hostile names are text, nothing overflows on a phone, and nothing else is loaded."""
    page.screen(390, 844, dark=True)
    for path in ("", "topics/at", "topics/at/ch", "nodes", "counter", "lookup"):
        text = shown(page, base + path)
        if path in ("topics/at/ch", "nodes"):
            assert HOSTILE in text, path
        assert page.run("window.hurt") is None, path
        wide = page.run("document.documentElement.scrollWidth")
        assert wide <= 390, f"{path} is {wide} wide"
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(17, 20, 28)"
    page.picture(pictures / "phone.png")
    assert (pictures / "phone.png").stat().st_size > 5_000
    page.run("document.getElementById('theme').click()")
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(245, 246, 249)"
    assert page.complaints == []
    assert {url for url in page.asked if not url.startswith((base, "about:"))} == set()


def test_the_page(tmp_path: Path) -> None:
    one, two = FakeNsqd("broker-1"), FakeNsqd(HOSTILE, "1.2.1")
    row = {"snappy": True, "sample_rate": 20, "authed": True, "auth_identity": "billing"}
    client = one.topics[0]["channels"][0]["clients"][0]
    client |= {**row, "tls": True, "tls_version": "1.3", "hostname": HOSTILE}
    lookupd, second = FakeLookupd(one, two), FakeLookupd(one)
    lookupd.topics["old_topic"] = ["a"]
    second.topics["old_topic"] = []
    with serving(one, two, lookupd, second):
        flags = [f"--lookupd-http-address={each.address}" for each in (lookupd, second)]
        with nsqadmin(*flags) as base, browser() as page:
            page.screen(1280, 800)
            looks(page, base, one.address)
            is_safe(page, base, tmp_path)
            acts(page, base, one, lookupd)
            assert page.complaints == []


def test_without_permission_there_are_no_actions() -> None:
    nsqd = FakeNsqd()
    with serving(nsqd):
        flags = (f"--nsqd-http-address={nsqd.address}", "--admin-user=ann", "--base-path=/nsq")
        with nsqadmin(*flags) as base, browser() as page:
            shown(page, f"{base}nsq/topics/at")
            assert "read only" in page.text()
            script = "[...document.querySelectorAll('main button')].every((each) => each.disabled)"
            assert page.run(script) is True
            page.click("Nodes")
            page.until("location.pathname === '/nsq/nodes'")
