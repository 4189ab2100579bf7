"""The blocking link, against brokers that misbehave in every way and one that speaks TLS."""

from __future__ import annotations

import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.tmqp_spark.reading import LinkTo, look, source
from tmqp import Connection, Frame, HandshakeReceived, MessageType, Role, ServerMessageReceived
from tmqp.extensions import OP_COMMIT_GROUP
from tmqp_spark.catalog import Catalog, Subscription
from tmqp_spark.errors import (
    BrokerRefused,
    BrokerUnreachable,
    ConnectionBroken,
    DecodeFailed,
    TlsMistake,
)
from tmqp_spark.groups import Group
from tmqp_spark.offsets import Place
from tmqp_spark.options import ConnectionOptions, read_options, read_stream_connection
from tmqp_spark.testing import Broker
from tmqp_spark.transport import BrokerLink, first_contact

#: What a scripted broker does with a request: the bytes to answer with; None to hang up.
Script = Callable[[Frame, int], bytes | None]


def answer(request: Frame, code: int = 0, payload: bytes = b"") -> bytes:
    kind = int(MessageType.RESPONSE)
    return Frame.build(kind, "", code, payload, message_id=request.message_id).raw


@contextmanager
def scripted(script: Script, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """A broker that accepts everybody and answers by a script; its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    count = [0]
    ended = threading.Event()

    def serve(plain: socket.socket) -> None:
        try:
            sock = plain if context is None else context.wrap_socket(plain, server_side=True)
        except OSError:
            plain.close()
            return
        with sock:
            connection = Connection(Role.SERVER)
            while not ended.is_set():
                data = sock.recv(65_536)
                if not data:
                    return
                for event in connection.receive(data, 0.0):
                    if isinstance(event, HandshakeReceived):
                        connection.accept("you")
                    elif isinstance(event, ServerMessageReceived):
                        count[0] += 1
                        said = script(event.frame, count[0])
                        if said is None:
                            return
                        connection.send_bytes(said)
                sock.sendall(connection.data_to_send())

    def listen() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=serve_quietly, args=(plain,), daemon=True)
            threads.append(thread)
            thread.start()

    def serve_quietly(plain: socket.socket) -> None:
        try:
            serve(plain)
        except OSError:
            plain.close()

    threads: list[threading.Thread] = []
    accepting = threading.Thread(target=listen, daemon=True)
    accepting.start()
    try:
        scheme = "tmq" if context is None else "tmqs"
        yield f"{scheme}://localhost:{listener.getsockname()[1]}"
    finally:
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join(5)
        for thread in threads:
            thread.join(5)


def options(url: str, **more: Any) -> ConnectionOptions:
    return ConnectionOptions(url=url, retry_backoff_ms=1, **more)


def test_answers_are_taken_in_any_order() -> None:
    held: list[Frame] = []

    def backwards(request: Frame, _count: int) -> bytes:
        held.append(request)
        if len(held) < 3:
            return b""
        return b"".join(answer(each, 0, each.target.encode()) for each in reversed(held))

    with scripted(backwards) as url, BrokerLink(options(url)) as link:
        ids = [link.start(711, name) for name in "abc"]
        assert [link.finish(each).payload for each in ids] == [b"a", b"b", b"c"]
        assert link.requests == 3


def test_a_large_answer_is_one_piece() -> None:
    payload = bytes(range(256)) * 40_000
    with (
        scripted(lambda request, _: answer(request, 0, payload)) as url,
        BrokerLink(options(url)) as link,
    ):
        assert link.finish(link.start(712, "a")).payload == payload


def test_a_busy_broker_is_asked_again() -> None:
    with (
        scripted(lambda request, count: answer(request, 503 if count < 4 else 0)) as url,
        BrokerLink(options(url)) as link,
    ):
        assert link.ask(711, "offsets", "a").content_type == 0
        assert link.requests == 4
    with (
        scripted(lambda request, _: answer(request, 503)) as url,
        BrokerLink(options(url, retries=2)) as link,
        pytest.raises(BrokerUnreachable, match=r"offsets: .*503 busy; given up after 2"),
    ):
        link.ask(711, "offsets", "a")


def test_a_broker_that_hangs_up_is_asked_again_on_another_connection() -> None:
    with (
        scripted(lambda request, count: answer(request) if count == 3 else None) as url,
        BrokerLink(options(url)) as link,
    ):
        assert link.ask(711, "offsets", "a").content_type == 0
        assert link.connections == 3


class Waiting:
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def gives_up_after(self, connection: ConnectionOptions) -> tuple[float, str]:
        """For how long a link tries to reach a broker that is away, and what it says then."""
        began = self.now
        with (
            BrokerLink(connection, self.clock, self.sleep) as link,
            pytest.raises(BrokerUnreachable) as error,
        ):
            link.ask(711, "offsets", "a")
        return self.now - began, str(error.value)


def test_streams_gave_up_after_26_seconds_of_outage() -> None:
    url = {"url": "tmq://127.0.0.1:1"}
    waiting = Waiting()
    seconds, text = waiting.gives_up_after(read_stream_connection(url))
    assert seconds == pytest.approx(600)
    assert "given up after 600 s (option outageTimeout)" in text
    short = read_stream_connection({**url, "outageTimeout": "45s"})
    assert waiting.gives_up_after(short)[0] == pytest.approx(45)
    by_retries = read_stream_connection({**url, "Retries": "10"})
    seconds, text = waiting.gives_up_after(by_retries)
    assert seconds < 30
    assert "given up after 10 more attempts" in text
    assert waiting.gives_up_after(read_options(ConnectionOptions, url))[0] == seconds
    days = read_stream_connection({**url, "outageTimeout": "48h"})
    assert waiting.gives_up_after(days)[0] == pytest.approx(48 * 3_600)


def test_a_wrong_address_is_reported_before_the_outage_timeout() -> None:
    given = {"url": "tmq://127.0.0.1:1", "retryBackoffMs": "1", "retries": "2"}
    wanted = read_stream_connection({**given, "outageTimeout": "10m"})
    with pytest.raises(BrokerUnreachable, match="given up after 2 more attempts"):
        first_contact(wanted)


def test_the_first_contact_is_patient_afterwards(own_broker: Broker) -> None:
    link = first_contact(read_stream_connection({"url": own_broker.url}))
    try:
        assert link.is_open
        assert link.options.outage_timeout_ms == 600_000
    finally:
        link.close()


def test_no_answer_in_time_is_said_so() -> None:
    with (
        scripted(lambda _request, _count: b"") as url,
        BrokerLink(options(url, request_timeout_ms=50, retries=1)) as link,
    ):
        with pytest.raises(BrokerUnreachable, match=r"did not answer within 0.05 s"):
            link.ask(711, "offsets", "a")
        number = link.start(711, "a")
        with pytest.raises(ConnectionBroken, match="requestTimeoutMs"):
            link.finish(number)


@pytest.mark.parametrize("garbage", [b"\xff" * 40, Frame.build(int(MessageType.TERMINATE)).raw])
def test_what_is_no_answer_ends_the_connection(garbage: bytes) -> None:
    with (
        scripted(lambda _request, _count: garbage) as url,
        BrokerLink(options(url, retries=0)) as link,
    ):
        with pytest.raises(BrokerUnreachable, match="given up after 0"):
            link.ask(711, "offsets", "a")
        assert not link.is_open


@pytest.mark.parametrize("payload", [b"{}", b"[1]", b"[", b'[{"Channel":"a"}]'])
def test_offsets_that_cannot_be_read_are_said_so(payload: bytes) -> None:
    with (
        scripted(lambda request, _: answer(request, 0, payload)) as url,
        BrokerLink(options(url)) as link,
        pytest.raises(DecodeFailed),
    ):
        look(link, subscribe="a/1")


def test_where_the_broker_holds_no_more_answers_the_link_waits() -> None:
    rested: list[float] = []

    def script(request: Frame, _count: int) -> bytes:
        return answer(request, 503 if request.header("Wait") else 0, b"[]")

    with scripted(script) as url, BrokerLink(options(url), sleep=rested.append) as link:
        catalog = Catalog(link, Subscription(source(subscribe="a/1")))
        assert catalog.wait({}, 250) == {}
    assert rested == [0.25]


def test_thousands_of_queues_are_committed_in_pieces_and_not_waited_for() -> None:
    rested: list[float] = []
    pieces: list[int] = []
    places = {f"a-rather-long-name/{queue}": Place("i" * 32, 5) for queue in range(5_000)}
    states = [
        {"Channel": "a-rather-long-name", "Queue": queue, "Incarnation": "i" * 32, "Latest": 4}
        for queue in range(5_000)
    ]

    def script(request: Frame, _count: int) -> bytes:
        if request.content_type == OP_COMMIT_GROUP:
            assert request.payload_size < 1_000_000
            pieces.append(len(json.loads(request.payload)))
            return answer(request, 0, b"[]")
        assert request.header("Wait") is None, "its known queues would not fit"
        return answer(request, 0, json.dumps(states).encode())

    with scripted(script) as url, BrokerLink(options(url), sleep=rested.append) as link:
        group = Group(link, "g")
        catalog = Catalog(link, Subscription(source(subscribePattern=".*")))

        def commit() -> Callable[[], object]:
            asked = group.start_commit(places)
            return lambda: group.finish_commit(asked)

        assert catalog.wait(places, 250, commit).keys() == places.keys()
        assert rested == [0.25], "there was nothing new"
        states[7]["Latest"] = 9
        assert catalog.wait(places, 250)["a-rather-long-name/7"].latest == 9
    assert rested == [0.25]
    assert pieces == [1_000] * 5


def test_a_rested_connection_is_tried_before_it_is_used(
    own_broker: Broker, link_to: LinkTo
) -> None:
    link = link_to(own_broker)
    assert not link.is_quiet(), "it is not open yet"
    look(link, subscribe="a")
    assert link.is_quiet()
    number = link.start(711, "a")
    assert not link.is_quiet(), "an answer is on its way"
    link.finish(number)
    own_broker.kill()
    assert not link.is_quiet()


def test_a_token_is_taken_from_its_file(tmp_path: Path, link_to: LinkTo) -> None:
    settings = """
[access.roles.reader]
rights = ["pull", "see-channel"]
channels = ["*"]

[[access.tokens]]
token = "the secret"
roles = ["reader"]
"""
    token = tmp_path / "token"
    token.write_text("the secret\n")
    with Broker(tmp_path / "broker", settings) as broker:
        assert look(link_to(broker, tokenFile=token), subscribe="a") == {}
        with pytest.raises(BrokerRefused, match="refused the connection: 401 unauthorized; see"):
            look(link_to(broker), subscribe="a")
        with pytest.raises(BrokerUnreachable, match=r"option tokenFile: .* cannot be read on"):
            look(link_to(broker, tokenFile=tmp_path / "none"), subscribe="a")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost and its key, in one file."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("there is no openssl here to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    command = [program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    return both


def test_tls_is_spoken_and_the_certificate_checked(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    payload = b"secret" * 100_000
    with scripted(lambda request, _: answer(request, 0, payload), context) as url:
        with BrokerLink(options(url, tls_ca=str(certificate))) as link:
            assert link.ask(712, "read", "a").payload == payload
            assert link.is_quiet()
        with (
            BrokerLink(options(url)) as link,
            pytest.raises(TlsMistake, match=r"certificate is refused: self.signed .* tls\.ca"),
        ):
            link.ask(712, "read", "a")
        assert link.connections == 0


def test_mistakes_with_tls_are_not_tried_again_and_name_the_file(
    certificate: Path, tmp_path: Path, broker: Broker
) -> None:
    """They were taken for trouble of the network, and tried for 26 s."""
    none, wrong, mine = tmp_path / "none.pem", tmp_path / "wrong.pem", str(certificate)
    wrong.write_text("nothing of the kind", encoding="utf-8")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    pauses: list[float] = []

    def mistake(url: str, words: str, **more: str) -> None:
        link = BrokerLink(options(url, **more), sleep=pauses.append)
        with link, pytest.raises(TlsMistake, match=re.escape(words)):
            link.ask(712, "read", "a")

    with scripted(lambda request, _: answer(request, 0), context) as url:
        mistake(url, f"tls.ca: cannot read {none}", tls_ca=str(none))
        mistake(url, f"tls.ca: {wrong} holds no certificates", tls_ca=str(wrong))
        mistake(url, f"tls.key: {wrong} is not a certificate", tls_cert=str(wrong))
        mistake(url, f"tls.key: cannot read {none}", tls_cert=mine, tls_key=str(none))
        by_number = url.replace("localhost", "127.0.0.1")
        mistake(by_number, "certificate is refused: IP address mismatch", tls_ca=mine)
    mistake(broker.url.replace("tmq:", "tmqs:"), "does not speak TLS")
    assert pauses == []


def test_a_refusal_says_why() -> None:
    with scripted(lambda request, _: answer(request, 401)) as url, BrokerLink(options(url)) as link:
        with pytest.raises(BrokerRefused, match="offsets: 401 unauthorized; the token lacks") as it:
            link.ask(711, "offsets", "a")
        assert it.value.code == 401
