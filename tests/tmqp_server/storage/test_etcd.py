"""The log on etcd, as far as it can be tested without etcd; ``make interop`` builds one."""

from __future__ import annotations

import time

import pytest

from tests.ports import free_port
from tmqp_server.storage.log import ReadEntries, UnansweredError

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'tmqp[replication]'")
pytest.importorskip("google.protobuf", reason="protobuf is not installed")

from tmqp_server.storage.etcd import EtcdAccess, EtcdLog
from tmqp_server.storage.etcd.messages import message


def test_an_append_is_the_transaction_that_etcd_reads() -> None:
    """The numbers of fields are those of etcd's own rpc.proto, written out by hand here."""
    compare = message("Compare", result=0, target=2, key=b"lead", mod_revision=7)
    put = message("PutRequest", key=b"k", value=b"v", lease=3)
    request = message(
        "TxnRequest", compare=[compare], success=[message("RequestOp", request_put=put)]
    )
    assert request.SerializeToString() == (
        b"\x0a\x0a" + b"\x10\x02" + b"\x1a\x04lead" + b"\x30\x07"
        b"\x12\x0a" + b"\x12\x08" + b"\x0a\x01k" + b"\x12\x01v" + b"\x18\x03"
    )


def test_a_comparison_with_nothing_says_so_on_the_wire() -> None:
    """``version = 0`` is not the same as no version."""
    compare = message("Compare", target=0, key=b"l", version=0)
    assert compare.SerializeToString() == b"\x1a\x01l\x20\x00"


def test_servers_that_are_not_there_are_asked_in_turn() -> None:
    ports = [free_port(), free_port()]
    access = EtcdAccess([f"127.0.0.1:{port}" for port in ports], timeout_s=0.5)
    log = EtcdLog(access, "group")
    begin = time.monotonic()
    for port in (*ports, ports[0]):
        with pytest.raises(UnansweredError, match=f"etcd at 127.0.0.1:{port}: "):
            log.ask(ReadEntries(0, 1))
    assert time.monotonic() - begin < 5.0
    log.close()
