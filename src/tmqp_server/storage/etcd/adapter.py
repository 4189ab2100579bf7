"""``EtcdLog``: a replicated log as keys of etcd.

Theory of operation.  Below a prefix there are::

    lead          the leader key: JSON, with a lease; its modification revision is the epoch
    last, first   the last number, and the lowest that was not trimmed, as 16 hexadecimal digits
    log/<number>  the entries
    members/<node>  the reports: JSON

An append is one transaction: if the leader key has the revision of the epoch and ``last`` is the
number before, then put the entry and ``last``.  etcd answers when a majority has it on disk.  All
reads are linearizable, which is etcd's default.

Trimmed entries stay in etcd's history until it is compacted, which each trim does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from tmqp_server.storage.etcd.calls import EtcdAccess, EtcdCalls
from tmqp_server.storage.etcd.messages import message
from tmqp_server.storage.log import (
    Appended,
    AppendEntry,
    Claim,
    Entries,
    Fenced,
    Keep,
    Leader,
    Led,
    ListMembers,
    LogAnswer,
    LogEntry,
    LogRequest,
    Member,
    Members,
    Misplaced,
    ReadEntries,
    Report,
    Reported,
    Resign,
    Seen,
    Trim,
    Trimmed,
    UnansweredError,
    WatchLog,
)

__all__ = ["EtcdLog"]

#: Of a comparison: equal and less; what is compared.
_EQUAL: Final = 0
_LESS: Final = 2
_VERSION: Final = 0
_MOD: Final = 2
_VALUE: Final = 3
#: What etcd may use if it does not say so (before 3.6) and was not told otherwise; and the part of
#: it from which on members that are behind are not waited for.
_QUOTA_BYTES: Final = 2 << 30
_FULL_AT: Final = 0.5
#: How many entries one request reads: it has no other bound.
_PAGE: Final = 8


class EtcdLog:
    """The log of a group; an adapter of ``storage.log``.

    :param group: the group's name; several groups may use one etcd.
    """

    def __init__(self, access: EtcdAccess, group: str) -> None:
        self._calls = EtcdCalls(access)
        prefix = f"tmqp/{group}/".encode()
        self._lead = prefix + b"lead"
        self._last = prefix + b"last"
        self._first = prefix + b"first"
        self._log = prefix + b"log/"
        self._members = prefix + b"members/"

    def close(self) -> None:
        """Close the connections."""
        self._calls.close()

    def ask(self, request: LogRequest) -> LogAnswer:
        """Send a request to etcd, and return its answer.

        :raises UnansweredError: when etcd does not answer.
        """
        if isinstance(request, AppendEntry):
            return self._append(request)
        if isinstance(request, WatchLog):
            return self._watch(request)
        if isinstance(request, ReadEntries):
            return self._read(request)
        if isinstance(request, Claim):
            return self._claim(request)
        if isinstance(request, Keep):
            self._calls.keep_alive(request.leader.lease)
            return Led(self._leader())
        if isinstance(request, Resign):
            return self._resign(request.leader)
        if isinstance(request, Report):
            return self._report(request.member)
        if isinstance(request, ListMembers):
            return self._list_members()
        assert isinstance(request, Trim), "every request has an answer"
        return self._trim(request)

    # --- Claims ----------------------------------------------------------------------------------

    def _claim(self, request: Claim) -> LogAnswer:
        seconds = math.ceil(request.lease_s)
        lease = self._calls.call("LeaseGrant", message("LeaseGrantRequest", TTL=seconds)).ID
        told = {"node": request.node, "address": request.address, "token": request.token}
        put = _put(self._lead, json.dumps(told).encode(), lease)
        get = _get(self._lead)
        answer = self._txn([_version(self._lead, 0)], [put, get], [get])
        leader = _leader_of(_found(answer, -1))
        if leader is None or leader.lease != lease:
            with suppress(UnansweredError):  # it ends by itself
                self._calls.call("LeaseRevoke", message("LeaseRevokeRequest", ID=lease))
        return Led(leader)

    def _resign(self, leader: Leader) -> LogAnswer:
        delete = message(
            "RequestOp", request_delete_range=message("DeleteRangeRequest", key=self._lead)
        )
        answer = self._txn([self._is_led(leader.epoch)], [delete], [_get(self._lead)])
        return Led(None if answer.succeeded else _leader_of(_found(answer, 0)))

    def _leader(self) -> Leader | None:
        return _leader_of(self._range(self._lead).kvs)

    def _is_led(self, epoch: int) -> Any:
        return message("Compare", result=_EQUAL, target=_MOD, key=self._lead, mod_revision=epoch)

    # --- Entries ---------------------------------------------------------------------------------

    def _append(self, request: AppendEntry) -> LogAnswer:
        number = request.number
        key = self._log + _digits(number)
        if number == 1:
            follows = _version(self._last, 0)
        else:
            follows = _value(self._last, _digits(number - 1))
        answer = self._txn(
            [self._is_led(request.epoch), follows],
            [_put(key, request.data), _put(self._last, _digits(number))],
            [_get(self._lead), _get(self._last), _get(key)],
        )
        if answer.succeeded:
            return Appended()
        leader = _leader_of(_found(answer, 0))
        if leader is None or leader.epoch != request.epoch:
            return Fenced(leader)
        there = _found(answer, 2)
        return Misplaced(_number_of(_found(answer, 1), 0), there[0].value if there else b"")

    def _watch(self, request: WatchLog) -> LogAnswer:
        answer = self._txn([], [_get(self._lead), _get(self._last)], [])
        seen = _seen_of(answer)
        epoch = 0 if seen.leader is None else seen.leader.epoch
        if (seen.last, epoch) != (request.last, request.epoch) or request.wait_s <= 0.0:
            return seen
        # The two keys are neighbours.
        end = self._lead + b"\0"
        self._calls.wait(self._last, end, answer.header.revision, request.wait_s)
        return _seen_of(self._txn([], [_get(self._lead), _get(self._last)], []))

    def _read(self, request: ReadEntries) -> LogAnswer:
        key, end = self._log + _digits(request.after + 1), self._log + b"g"
        page = _get(key, end, _PAGE)
        answer = self._txn([], [_get(self._first), page], [])
        first = _number_of(_found(answer, 0), 1)
        if request.after + 1 < first:
            return Entries(first, [])
        found: list[LogEntry] = []
        kvs = _found(answer, 1)
        size = 0
        while kvs:
            for each in kvs:
                if found and size >= request.most_bytes:
                    return Entries(first, found)
                found.append(LogEntry(int(each.key[len(self._log) :], 16), each.value))
                size += len(each.value)
            if len(kvs) < _PAGE or size >= request.most_bytes:
                break
            key = self._log + _digits(found[-1].number + 1)
            try:
                kvs = self._range(key, end, _PAGE, answer.header.revision).kvs
            except UnansweredError:
                break  # what was read is worth something
        return Entries(first, found)

    # --- Members ---------------------------------------------------------------------------------

    def _report(self, member: Member) -> LogAnswer:
        told = {"address": member.address, "applied": member.applied, "reports": member.reports}
        key = self._members + member.node.encode()
        self._calls.call("Put", message("PutRequest", key=key, value=json.dumps(told).encode()))
        return Reported()

    def _list_members(self) -> LogAnswer:
        answer = self._range(self._members, _end_of(self._members))
        members: list[Member] = []
        for each in answer.kvs:
            told = json.loads(each.value)
            node = each.key[len(self._members) :].decode()
            members.append(Member(node, told["address"], told["applied"], told["reports"]))
        return Members(members, answer.header.revision, self._is_full())

    def _is_full(self) -> bool:
        """Whether etcd has used the larger part of its quota; when all of it is used, etcd accepts
        no writes.
        """
        status = self._calls.call("Status", message("StatusRequest"))
        quota = status.dbSizeQuota or _QUOTA_BYTES
        return bool(status.dbSizeInUse > _FULL_AT * quota)

    def _trim(self, request: Trim) -> LogAnswer:
        known = self._txn([], [_get(self._first), _get(self._last)], [])
        first, last = _number_of(_found(known, 0), 1), _number_of(_found(known, 1), 0)
        new = max(first, min(request.before, last + 1))
        conditions = [
            self._is_led(request.epoch),
            message(
                "Compare",
                result=_LESS,
                target=_MOD,
                key=self._members,
                range_end=_end_of(self._members),
                mod_revision=request.version + 1,
            ),
            # Trims of one leader may overtake each other.
            _version(self._first, 0) if first == 1 else _value(self._first, _digits(first)),
        ]
        gone = message(
            "DeleteRangeRequest",
            key=self._log + _digits(first),
            range_end=self._log + _digits(new),
        )
        done = [_put(self._first, _digits(new))] if new > 1 else []
        if new > first:
            done.append(message("RequestOp", request_delete_range=gone))
        answer = self._txn(conditions, done, [_get(self._lead), _get(self._first)])
        if answer.succeeded:
            if new > first:
                self._compact(answer.header.revision)
            return Trimmed(new)
        leader = _leader_of(_found(answer, 0))
        if leader is None or leader.epoch != request.epoch:
            return Fenced(leader)
        return Trimmed(_number_of(_found(answer, 1), 1))

    def _compact(self, revision: int) -> None:
        """Compact etcd's history up to a revision.  If that fails, the next trim does it."""
        with suppress(UnansweredError):
            self._calls.call("Compact", message("CompactionRequest", revision=revision))

    # --- Calls -----------------------------------------------------------------------------------

    def _txn(self, conditions: list[Any], success: list[Any], failure: list[Any]) -> Any:
        request = message("TxnRequest", compare=conditions, success=success, failure=failure)
        return self._calls.call("Txn", request)

    def _range(self, key: bytes, end: bytes = b"", limit: int = 0, revision: int = 0) -> Any:
        request = message("RangeRequest", key=key, range_end=end, limit=limit, revision=revision)
        return self._calls.call("Range", request)


def _digits(number: int) -> bytes:
    return b"%016x" % number


def _end_of(prefix: bytes) -> bytes:
    """The first key after all keys with a prefix."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def _get(key: bytes, end: bytes = b"", limit: int = 0) -> Any:
    request = message("RangeRequest", key=key, range_end=end, limit=limit)
    return message("RequestOp", request_range=request)


def _put(key: bytes, value: bytes, lease: int = 0) -> Any:
    request = message("PutRequest", key=key, value=value, lease=lease)
    return message("RequestOp", request_put=request)


def _version(key: bytes, version: int) -> Any:
    return message("Compare", result=_EQUAL, target=_VERSION, key=key, version=version)


def _value(key: bytes, value: bytes) -> Any:
    return message("Compare", result=_EQUAL, target=_VALUE, key=key, value=value)


def _found(answer: Any, place: int) -> Sequence[Any]:
    """The keys and values that a range request within a transaction found."""
    kvs: Sequence[Any] = answer.responses[place].response_range.kvs
    return kvs


def _number_of(kvs: Sequence[Any], otherwise: int) -> int:
    return int(kvs[0].value, 16) if kvs else otherwise


def _leader_of(kvs: Sequence[Any]) -> Leader | None:
    if not kvs:
        return None
    told = json.loads(kvs[0].value)
    epoch, lease = kvs[0].mod_revision, kvs[0].lease
    return Leader(told["node"], told["address"], told["token"], epoch, lease)


def _seen_of(answer: Any) -> Seen:
    return Seen(_leader_of(_found(answer, 0)), _number_of(_found(answer, 1), 0))
