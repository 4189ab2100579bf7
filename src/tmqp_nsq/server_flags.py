"""The flags of nsqd and nsqlookupd, with the originals' names and defaults (N18, N20, N147)."""

from __future__ import annotations

from typing import Final

from tmqp_nsq.flags import (
    BOOL,
    DURATION,
    FLOATS,
    INT,
    LEVEL,
    TEXT,
    TEXTS,
    Flag,
    FlagTable,
    one_of,
)

__all__ = ["NSQD", "NSQLOOKUPD", "common_flags"]

_SECOND: Final = 1_000_000_000
_MILLISECOND: Final = 1_000_000
_MINUTE: Final = 60 * _SECOND
_LEVELS: Final = "debug, info, warn, error or fatal"
_OWN_STORAGE: Final = "the store of this server has its own files and sync times"
_NO_TOPOLOGY: Final = "consumers are chosen without regard to where they are"
_EXACT_TIMERS: Final = "timeouts are exact and need no scan"


def common_flags(program: str) -> tuple[Flag, ...]:
    """The flags that every daemon has."""
    return (
        Flag("version", BOOL, False, "print the version and exit", key=""),
        Flag(
            "config",
            TEXT,
            "",
            "path of a TOML file; flags on the command line take precedence",
            key="",
        ),
        Flag("log-level", LEVEL, "info", f"the log level: {_LEVELS}"),
        Flag("log-prefix", TEXT, f"[{program}] ", "what every line of the log begins with"),
        Flag(
            "verbose",
            BOOL,
            False,
            "deprecated: use --log-level",
            ignored="deprecated in the original, too; use --log-level",
        ),
    )


_ADDRESSES: Final = (
    Flag(
        "node-id",
        INT,
        -1,
        "part of message ids, from 0 to 1023",
        key="id",
        ignored="message ids begin with a random number",
    ),
    Flag(
        "worker-id",
        INT,
        -1,
        "deprecated: use --node-id",
        ignored="deprecated in the original, too; use --node-id",
    ),
    Flag(
        "tcp-address",
        TEXT,
        "0.0.0.0:4150",
        "HOST:PORT, or the path of a unix socket, for TCP clients",
    ),
    Flag(
        "http-address",
        TEXT,
        "0.0.0.0:4151",
        "HOST:PORT, or the path of a unix socket, for HTTP; empty: no HTTP",
    ),
    Flag(
        "https-address",
        TEXT,
        "0.0.0.0:4152",
        "HOST:PORT for HTTPS; used if --tls-cert and --tls-key are given",
    ),
    Flag(
        "auth-http-address",
        TEXTS,
        (),
        "HOST:PORT or URL of a server that checks AUTH secrets; may be repeated",
        key="auth_http_addresses",
    ),
    Flag(
        "auth-http-request-method",
        one_of("get", "post"),
        "get",
        "the HTTP method for requests to auth servers",
    ),
    Flag(
        "broadcast-address",
        TEXT,
        "",
        "the address that lookupds give to consumers; empty: the host's name",
    ),
    Flag(
        "broadcast-tcp-port",
        INT,
        0,
        "the TCP port that lookupds give to consumers; 0: the one listened on",
    ),
    Flag(
        "broadcast-http-port",
        INT,
        0,
        "the HTTP port that lookupds give to others; 0: the one listened on",
    ),
    Flag(
        "lookupd-tcp-address",
        TEXTS,
        (),
        "HOST:PORT of an nsqlookupd to announce to; may be repeated",
        key="nsqlookupd_tcp_addresses",
    ),
    Flag(
        "http-client-connect-timeout",
        DURATION,
        2 * _SECOND,
        "time to connect to auth servers and lookupds",
    ),
    Flag(
        "http-client-request-timeout",
        DURATION,
        5 * _SECOND,
        "time for the answer of auth servers and lookupds",
    ),
    Flag(
        "topology-region",
        TEXT,
        "",
        "the region that lookupds show for this node",
        ignored=_NO_TOPOLOGY,
    ),
    Flag(
        "topology-zone",
        TEXT,
        "",
        "the zone that lookupds show for this node",
        ignored=_NO_TOPOLOGY,
    ),
)
_QUEUES: Final = (
    Flag(
        "data-path",
        TEXT,
        "",
        "directory for stored messages; empty: the working directory",
    ),
    Flag(
        "mem-queue-size",
        INT,
        10_000,
        "messages to keep in memory for each topic and channel; others are on disk only",
    ),
    Flag(
        "max-bytes-per-file",
        INT,
        104_857_600,
        "bytes per file of a disk queue",
        ignored=_OWN_STORAGE,
    ),
    Flag("sync-every", INT, 2_500, "messages between syncs of the disk", ignored=_OWN_STORAGE),
    Flag(
        "sync-timeout",
        DURATION,
        2 * _SECOND,
        "time between syncs of the disk",
        ignored=_OWN_STORAGE,
    ),
    Flag(
        "queue-scan-worker-pool-max",
        INT,
        4,
        "workers that look for timed out messages",
        ignored=_EXACT_TIMERS,
    ),
    Flag(
        "queue-scan-selection-count",
        INT,
        20,
        "channels looked at in a scan for timed out messages",
        ignored=_EXACT_TIMERS,
    ),
    Flag("msg-timeout", DURATION, _MINUTE, "time to answer a message before it is requeued"),
    Flag("max-msg-timeout", DURATION, 15 * _MINUTE, "longest time that TOUCH can reach"),
    Flag("max-msg-size", INT, 1_048_576, "bytes of the largest message"),
    Flag("max-req-timeout", DURATION, 60 * _MINUTE, "longest delay of REQ and DPUB"),
    Flag("max-body-size", INT, 5_242_880, "bytes of the largest body of a command"),
)
_CLIENTS: Final = (
    Flag("max-heartbeat-interval", DURATION, _MINUTE, "longest heartbeat interval of a client"),
    Flag("max-rdy-count", INT, 2_500, "largest RDY of a client"),
    Flag("max-output-buffer-size", INT, 65_536, "largest output buffer of a client, in bytes"),
    Flag(
        "max-output-buffer-timeout",
        DURATION,
        30 * _SECOND,
        "longest output buffer timeout of a client",
    ),
    Flag(
        "min-output-buffer-timeout",
        DURATION,
        25 * _MILLISECOND,
        "shortest output buffer timeout of a client",
    ),
    Flag(
        "output-buffer-timeout",
        DURATION,
        250 * _MILLISECOND,
        "output buffer timeout of clients that ask for none",
    ),
    Flag("max-channel-consumers", INT, 0, "maximum of consumers of a channel; 0: no limit"),
)
_STATSD: Final = (
    Flag("statsd-address", TEXT, "", "HOST:PORT (UDP) of a statsd daemon for pushed statistics"),
    Flag("statsd-interval", DURATION, _MINUTE, "time between pushes to statsd"),
    Flag("statsd-mem-stats", BOOL, True, "push memory statistics, too"),
    Flag(
        "statsd-prefix",
        TEXT,
        "nsq.%s",
        "what keys begin with; %s is the address and port that lookupds show",
    ),
    Flag("statsd-udp-packet-size", INT, 508, "bytes of a packet to statsd"),
    Flag("statsd-exclude-ephemeral", BOOL, False, "leave out ephemeral topics and channels"),
    Flag(
        "e2e-processing-latency-percentile",
        FLOATS,
        (),
        "percentiles of the processing time to track (0 to 1.0]; may be repeated, or with commas",
        key="e2e_processing_latency_percentiles",
    ),
    Flag(
        "e2e-processing-latency-window-time",
        DURATION,
        10 * _MINUTE,
        "time over which those percentiles are computed",
    ),
)
_SECURITY: Final = (
    Flag("tls-cert", TEXT, "", "path of the certificate, in PEM"),
    Flag("tls-key", TEXT, "", "path of its private key, in PEM"),
    Flag(
        "tls-client-auth-policy",
        one_of("", "require", "require-verify"),
        "",
        "client certificates: 'require' and 'require-verify' check them against --tls-root-ca-file",
    ),
    Flag("tls-root-ca-file", TEXT, "", "path of the authorities of client certificates, in PEM"),
    Flag(
        "tls-required",
        one_of("true", "false", "tcp-https", "1", "0", "t", "f"),
        "false",
        "whether clients must use TLS: true, false, or tcp-https to leave plain HTTP open",
    ),
    Flag(
        "tls-min-version",
        one_of("", "ssl3.0", "tls1.0", "tls1.1", "tls1.2", "tls1.3"),
        "tls1.0",
        "oldest version of TLS: 'tls1.0' to 'tls1.3'",
    ),
    Flag("deflate", BOOL, True, "let clients choose deflate", key="deflate"),
    Flag("max-deflate-level", INT, 6, "highest deflate level of a client"),
    Flag("snappy", BOOL, True, "let clients choose snappy", key="snappy"),
)

NSQD: Final = FlagTable(
    "nsqd",
    "Run a message broker for NSQ clients: TCP, HTTP and, with a certificate, HTTPS.",
    (
        "nsqd                                            listen on ports 4150 and 4151",
        "nsqd --lookupd-tcp-address=127.0.0.1:4160       announce topics to an nsqlookupd",
        "nsqd --data-path=/var/lib/nsq --config=nsqd.cfg keep messages there",
        "curl -d 'hello' 'http://127.0.0.1:4151/pub?topic=test'",
    ),
    (*common_flags("nsqd"), *_ADDRESSES, *_QUEUES, *_CLIENTS, *_STATSD, *_SECURITY),
)
"""The flags of nsqd."""

NSQLOOKUPD: Final = FlagTable(
    "nsqlookupd",
    "Run the directory where consumers look up the nsqds of a topic.",
    (
        "nsqlookupd                                 listen on ports 4160 (nsqd) and 4161 (HTTP)",
        "curl 'http://127.0.0.1:4161/lookup?topic=test'",
    ),
    (
        *common_flags("nsqlookupd"),
        Flag("tcp-address", TEXT, "0.0.0.0:4160", "HOST:PORT to listen on for nsqd"),
        Flag("http-address", TEXT, "0.0.0.0:4161", "HOST:PORT to listen on for HTTP"),
        Flag(
            "broadcast-address",
            TEXT,
            "",
            "the address reported to nsqd; empty: the host's name",
        ),
        Flag(
            "inactive-producer-timeout",
            DURATION,
            5 * _MINUTE,
            "time after which answers omit a silent nsqd",
        ),
        Flag(
            "tombstone-lifetime",
            DURATION,
            45 * _SECOND,
            "time for which a tombstoned nsqd is left out of the answers for a topic",
        ),
    ),
)
"""The flags of nsqlookupd."""
