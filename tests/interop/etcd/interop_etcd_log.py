"""The log on etcd does what every log must do, and what etcd's servers may do to it."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.certificates import make_certificate
from tests.interop.etcd.clusters import EtcdCluster
from tests.tmqp_server.storage.log_contract import *  # noqa: F403 - the tests
from tests.tmqp_server.storage.log_contract import MUCH, Logs, append, claim, entries, members
from tmqp_server.replication.appending import ASKING, DONE, Appending
from tmqp_server.storage.etcd import EtcdAccess, EtcdLog
from tmqp_server.storage.log import (
    MOST_ENTRY_BYTES,
    Appended,
    AppendEntry,
    Keep,
    Leader,
    Led,
    LogAnswer,
    LogEntry,
    LogRequest,
    ReadEntries,
    Resign,
    Seen,
    SharedLog,
    Trim,
    Trimmed,
    UnansweredError,
    WatchLog,
)

pytestmark = [pytest.mark.interop, pytest.mark.cold, pytest.mark.timeout(300)]

_GROUPS: Final = count(1)


def answers(log: SharedLog) -> bool:
    """Whether a log can be asked."""
    try:
        return isinstance(log.ask(WatchLog(0, 0, 0.0)), Seen)
    except UnansweredError:
        return False


def started(cluster: EtcdCluster, access: EtcdAccess) -> EtcdCluster:
    log = EtcdLog(access, "none")
    try:
        cluster.start_all(lambda: answers(log))
    finally:
        log.close()
    return cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    made = EtcdCluster(tmp_path_factory.mktemp("etcd"), 3)
    try:
        yield started(made, EtcdAccess(made.addresses))
    finally:
        made.stop()


@pytest.fixture
def logs(cluster: EtcdCluster) -> Iterator[Logs]:
    group = f"group {next(_GROUPS)}"
    one = EtcdLog(EtcdAccess(cluster.addresses, timeout_s=3.0), group)
    two = EtcdLog(EtcdAccess(cluster.addresses[::-1], timeout_s=3.0), group)
    yield Logs(one, two, time.sleep)
    one.close()
    two.close()


def appended(log: SharedLog, epoch: int, entry: LogEntry) -> None:
    """Have an entry in the log, however often that must be tried."""
    appending = Appending(epoch, entry)
    while appending.state == ASKING:
        try:
            appending.answered(log.ask(appending.request))
        except UnansweredError:
            time.sleep(appending.unanswered())
    assert appending.state == DONE, appending.reason


def test_groups_of_one_etcd_do_not_see_each_other(cluster: EtcdCluster, logs: Logs) -> None:
    append(logs.one, claim(logs.one, "a"), b"ours")
    other = EtcdLog(EtcdAccess(cluster.addresses), "group 1 and more")
    assert entries(other.ask(ReadEntries(0, MUCH))) == []
    other.close()


def test_who_watches_hears_at_once_of_an_entry_and_of_each_change_of_the_leader(logs: Logs) -> None:
    leader = claim(logs.one, "a")
    heard: list[tuple[object, float]] = []

    def watch(last: int, epoch: int) -> None:
        heard.append((logs.two.ask(WatchLog(last, epoch, 20.0)), time.monotonic()))

    for change, *known in (
        (lambda: append(logs.one, leader, b"one"), 0, leader.epoch),
        (lambda: logs.one.ask(Resign(leader)), 1, leader.epoch),
        (lambda: claim(logs.one, "c"), 1, 0),
    ):
        thread = threading.Thread(target=watch, args=known)
        thread.start()
        time.sleep(0.3)
        changed = time.monotonic()
        change()
        thread.join(20.0)
        assert heard[-1][1] - changed < 5.0
    leaders = []
    for seen, _ in heard:
        assert isinstance(seen, Seen)
        assert seen.last == 1
        leaders.append(None if seen.leader is None else seen.leader.node)
    assert leaders == ["a", None, "c"]


def asked(log: SharedLog, request: LogRequest) -> LogAnswer:
    """The answer to a request, however often it must be asked."""
    end = time.monotonic() + 30.0
    while True:
        try:
            return log.ask(request)
        except UnansweredError:
            assert time.monotonic() < end
            time.sleep(0.05)


def test_an_append_survives_the_death_of_each_server_of_etcd(
    cluster: EtcdCluster, logs: Logs
) -> None:
    leader = claim(logs.one, "a", lease_s=60.0)
    number = 0
    for place in range(3):
        cluster.kill(place)
        for _ in range(5):
            number += 1
            appended(logs.one, leader.epoch, LogEntry(number, b"%d" % number))
        cluster.start(place)
    found = entries(asked(logs.two, ReadEntries(0, MUCH)))
    assert found == [(each, b"%d" % each) for each in range(1, 16)]


def test_without_a_majority_nothing_is_answered_and_nothing_is_lost(
    cluster: EtcdCluster, logs: Logs
) -> None:
    append(logs.one, claim(logs.one, "a"), b"one")
    cluster.freeze(0)
    cluster.freeze(1)
    quick = EtcdLog(EtcdAccess(cluster.addresses, timeout_s=0.3), "group")
    for _ in range(3):
        with pytest.raises(UnansweredError, match="etcd at localhost"):
            quick.ask(ReadEntries(0, MUCH))
    quick.close()
    cluster.freeze(0, is_frozen=False)
    cluster.freeze(1, is_frozen=False)
    assert entries(asked(logs.two, ReadEntries(0, MUCH))) == [(1, b"one")]


def test_a_log_that_has_used_half_of_its_quota_says_so_until_it_is_trimmed(
    tmp_path: Path,
) -> None:
    cluster = EtcdCluster(tmp_path, 1, (f"--quota-backend-bytes={16 << 20}",))
    try:
        started(cluster, EtcdAccess(cluster.addresses))
        log = EtcdLog(EtcdAccess(cluster.addresses, timeout_s=5.0), "g")
        leader = claim(log, "a")
        assert not members(log).is_full
        append(log, leader, *[bytes(MOST_ENTRY_BYTES)] * 9)
        wait_until(lambda: members(log).is_full)
        assert isinstance(log.ask(Trim(leader.epoch, 10, members(log).version)), Trimmed)
        wait_until(lambda: not members(log).is_full)
        log.close()
    finally:
        cluster.stop()


def test_a_log_that_has_used_its_quota_says_so_at_once_and_goes_on_when_there_is_room(
    tmp_path: Path,
) -> None:
    cluster = EtcdCluster(tmp_path, 1, (f"--quota-backend-bytes={12 << 20}",))
    try:
        started(cluster, EtcdAccess(cluster.addresses))
        log = EtcdLog(EtcdAccess(cluster.addresses, timeout_s=5.0), "g")
        leader = claim(log, "a")
        number = fill(log, leader)
        began = time.monotonic()
        with pytest.raises(UnansweredError, match="database space exceeded"):
            log.ask(AppendEntry(leader.epoch, number, bytes(MOST_ENTRY_BYTES)))
        assert time.monotonic() - began < 4.0
        assert isinstance(log.ask(Keep(leader)), Led)  # who leads leads on
        # An operator gives it more room (docs/guides/high-availability.md).
        cluster.kill(0)
        cluster.options = (f"--quota-backend-bytes={64 << 20}",)
        cluster.start(0)
        wait_until(lambda: answers(log))
        place = cluster.addresses[0]
        with httpx.Client(base_url=f"http://{place}/v3", timeout=20.0) as etcd:
            # As etcdctl alarm disarm does.
            found = etcd.post("/maintenance/alarm", json={"action": "GET"}).json()["alarms"]
            for each in found:
                asked_of = {"action": "DEACTIVATE", **each}
                etcd.post("/maintenance/alarm", json=asked_of).raise_for_status()
        # The lease may have ended meanwhile; another claim needs room as well.
        again = claim(log, "b", over=leader)
        appended(log, again.epoch, LogEntry(number, b"x"))
        log.close()
    finally:
        cluster.stop()


def fill(log: SharedLog, leader: Leader) -> int:
    """Append until there is no room; the number of the entry that has none."""
    for number in range(1, 40):
        asked(log, Keep(leader))
        try:
            answer = log.ask(AppendEntry(leader.epoch, number, bytes(MOST_ENTRY_BYTES)))
        except UnansweredError:
            return number
        assert isinstance(answer, Appended)
    raise AssertionError("there is room for ever")


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 20.0
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_tls_and_passwords(tmp_path: Path) -> None:
    key, certificate = make_certificate(tmp_path)
    options = (f"--cert-file={certificate}", f"--key-file={key}")
    cluster = EtcdCluster(tmp_path, 1, options)
    ca = certificate.read_bytes()
    try:
        started(cluster, EtcdAccess(cluster.addresses, ca=ca))
        plain = EtcdLog(EtcdAccess(cluster.addresses), "g")
        assert not answers(plain)
        plain.close()
        _protect(cluster, certificate)
        stranger = EtcdLog(EtcdAccess(cluster.addresses, ca=ca), "g")
        assert not answers(stranger)
        stranger.close()
        guess = EtcdAccess(cluster.addresses, ca=ca, user="root", password="wrong")
        wrong = EtcdLog(guess, "g")
        with pytest.raises(UnansweredError, match="authentication failed"):
            wrong.ask(ReadEntries(0, MUCH))
        wrong.close()
        access = EtcdAccess(cluster.addresses, ca=ca, user="root", password="open sesame")
        log = EtcdLog(access, "g")
        append(log, claim(log, "a"), b"one")
        log._calls._token = "expired"
        assert entries(log.ask(ReadEntries(0, MUCH))) == [(1, b"one")]
        log.close()
    finally:
        cluster.stop()


def _protect(cluster: EtcdCluster, certificate: Path) -> None:
    """Make the user root, and let nobody in who is not known."""
    (address,) = cluster.addresses
    trusted = ssl.create_default_context(cafile=str(certificate))
    with httpx.Client(base_url=f"https://{address}/v3/auth", verify=trusted) as client:
        for path, told in (
            ("user/add", {"name": "root", "password": "open sesame"}),
            ("role/add", {"name": "root"}),
            ("user/grant", {"user": "root", "role": "root"}),
            ("enable", {}),
        ):
            client.post(path, json=told).raise_for_status()
