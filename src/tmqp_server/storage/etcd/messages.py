"""The messages of etcd's API that the adapter uses, as protobuf classes.

The fields have the names and numbers of etcd's ``rpc.proto`` and ``kv.proto`` (API version 3);
fields that are not listed are not used, and are skipped when read.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = ["message"]

#: Kinds of fields: a number with a sign, bytes, text, yes or no.
_PLAIN: Final = {
    "int64": descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
    "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
}
_MESSAGE: Final = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
_ONE: Final = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
_MANY: Final = descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED

#: Of each message, its fields: number, kind, name.  ``*`` is before the kind of a list; ``?`` is
#: before that of a field of which one of several is set.  Enumerations are numbers on the wire.
_FIELDS: Final[dict[str, str]] = {
    "ResponseHeader": "3 int64 revision",
    "KeyValue": "1 bytes key, 3 int64 mod_revision, 5 bytes value, 6 int64 lease",
    "RangeRequest": (
        "1 bytes key, 2 bytes range_end, 3 int64 limit, 4 int64 revision, 8 bool keys_only"
    ),
    "RangeResponse": "1 ResponseHeader header, 2 *KeyValue kvs",
    "PutRequest": "1 bytes key, 2 bytes value, 3 int64 lease",
    "PutResponse": "1 ResponseHeader header",
    "DeleteRangeRequest": "1 bytes key, 2 bytes range_end",
    "DeleteRangeResponse": "1 ResponseHeader header",
    "RequestOp": (
        "1 ?RangeRequest request_range, 2 ?PutRequest request_put,"
        " 3 ?DeleteRangeRequest request_delete_range"
    ),
    "ResponseOp": (
        "1 ?RangeResponse response_range, 2 ?PutResponse response_put,"
        " 3 ?DeleteRangeResponse response_delete_range"
    ),
    "Compare": (
        "1 int32 result, 2 int32 target, 3 bytes key, 4 ?int64 version, 6 ?int64 mod_revision,"
        " 7 ?bytes value, 64 bytes range_end"
    ),
    "TxnRequest": "1 *Compare compare, 2 *RequestOp success, 3 *RequestOp failure",
    "TxnResponse": "1 ResponseHeader header, 2 bool succeeded, 3 *ResponseOp responses",
    "CompactionRequest": "1 int64 revision",
    "CompactionResponse": "1 ResponseHeader header",
    "LeaseGrantRequest": "1 int64 TTL, 2 int64 ID",
    "LeaseGrantResponse": "1 ResponseHeader header, 2 int64 ID, 3 int64 TTL",
    "LeaseRevokeRequest": "1 int64 ID",
    "LeaseRevokeResponse": "1 ResponseHeader header",
    "LeaseKeepAliveRequest": "1 int64 ID",
    "LeaseKeepAliveResponse": "1 ResponseHeader header, 2 int64 ID, 3 int64 TTL",
    "WatchCreateRequest": "1 bytes key, 2 bytes range_end, 3 int64 start_revision",
    "WatchRequest": "1 ?WatchCreateRequest create_request",
    "WatchEvent": "2 KeyValue kv",
    "WatchResponse": (
        "1 ResponseHeader header, 3 bool created, 4 bool canceled, 11 *WatchEvent events"
    ),
    "StatusRequest": "",
    "StatusResponse": "9 int64 dbSizeInUse, 12 int64 dbSizeQuota",
    "AuthenticateRequest": "1 string name, 2 string password",
    "AuthenticateResponse": "1 ResponseHeader header, 2 string token",
}
_PACKAGE: Final = "tmqp.etcd"


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="tmqp/etcd.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _FIELDS.items():
        made = file.message_type.add(name=name)
        for each in fields.split(",") if fields else ():
            number, kind, field_name = each.split()
            field = made.field.add(name=field_name, number=int(number), label=_ONE)
            if kind[0] == "*":
                field.label = _MANY
            elif kind[0] == "?":
                if not made.oneof_decl:
                    made.oneof_decl.add(name="one_of")
                field.oneof_index = 0
            kind = kind.lstrip("*?")
            if kind in _PLAIN:
                field.type = _PLAIN[kind]
            else:
                field.type = _MESSAGE
                field.type_name = f".{_PACKAGE}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = {name: pool.FindMessageTypeByName(f"{_PACKAGE}.{name}") for name in _FIELDS}
    return {name: message_factory.GetMessageClass(each) for name, each in found.items()}


_CLASSES: Final = _classes()


def message(kind: str, /, **fields: Any) -> Any:
    """Make a message of a kind with these fields."""
    return _CLASSES[kind](**fields)
