"""The flags of nsqadmin, nsq_to_file and nsq_to_http (N149, N158, N164)."""

from __future__ import annotations

from typing import Final

from tmqp_nsq.flags import (
    BOOL,
    DURATION,
    FLOAT,
    INT,
    LEVEL,
    TEXT,
    TEXTS,
    Flag,
    FlagTable,
)
from tmqp_nsq.server_flags import common_flags

__all__ = ["NSQADMIN", "NSQ_TO_FILE", "NSQ_TO_HTTP"]

_SECOND: Final = 1_000_000_000
_MINUTE: Final = 60 * _SECOND
_TEMPORARY: Final = "/tmp"  # noqa: S108 - the original's default
_VERSION: Final = Flag("version", BOOL, False, "print the version and exit", key="")
_CONSUMER: Final = (
    Flag(
        "consumer-opt",
        TEXTS,
        (),
        "an option of the consumer, NAME,VALUE (such as max_attempts,10); may be repeated",
        key="",
    ),
    Flag(
        "nsqd-tcp-address",
        TEXTS,
        (),
        "HOST:PORT of an nsqd to consume from; may be repeated",
        key="",
    ),
    Flag(
        "lookupd-http-address",
        TEXTS,
        (),
        "HOST:PORT of an nsqlookupd that names the nsqds; may be repeated",
        key="",
    ),
)

NSQADMIN: Final = FlagTable(
    "nsqadmin",
    "Serve a web page that shows and manages the topics, channels and nodes of NSQ.",
    (
        "nsqadmin --lookupd-http-address=127.0.0.1:4161   then open http://127.0.0.1:4171/",
        "nsqadmin --nsqd-http-address=127.0.0.1:4151      without an nsqlookupd",
        "nsqadmin --lookupd-http-address=l1:4161 --admin-user=ann --admin-user=bob",
    ),
    (
        *common_flags("nsqadmin"),
        Flag("http-address", TEXT, "0.0.0.0:4171", "HOST:PORT to listen on for browsers"),
        Flag("base-path", TEXT, "/", "path under which the page is served"),
        Flag(
            "dev-static-dir",
            TEXT,
            "",
            "directory with other files of the page",
            ignored="the page is part of the program",
        ),
        Flag(
            "lookupd-http-address",
            TEXTS,
            (),
            "HOST:PORT of an nsqlookupd; may be repeated; not with --nsqd-http-address",
            key="nsqlookupd_http_addresses",
        ),
        Flag(
            "nsqd-http-address",
            TEXTS,
            (),
            "HOST:PORT of an nsqd; may be repeated; not with --lookupd-http-address",
            key="nsqd_http_addresses",
        ),
        Flag("graphite-url", TEXT, "", "URL of a graphite server for graphs and rates"),
        Flag(
            "proxy-graphite",
            BOOL,
            False,
            "fetch graphs through nsqadmin instead of letting the browser do it",
        ),
        Flag(
            "use-statsd-prefixes",
            BOOL,
            True,
            "deprecated: use the two formats below",
            ignored="deprecated in the original, too; use the formats of counters and gauges",
        ),
        Flag(
            "statsd-counter-format",
            TEXT,
            "stats.counters.%s.count",
            "how statsd names counters; must have one %s",
        ),
        Flag(
            "statsd-gauge-format",
            TEXT,
            "stats.gauges.%s",
            "how statsd names gauges; must have one %s",
        ),
        Flag("statsd-prefix", TEXT, "nsq.%s", "prefix of nsqd's keys; %s is the node"),
        Flag("statsd-interval", DURATION, _MINUTE, "the interval with which nsqd pushes"),
        Flag(
            "notification-http-endpoint",
            TEXT,
            "",
            "URL that gets a POST with the details of each action",
        ),
        Flag(
            "http-client-connect-timeout",
            DURATION,
            2 * _SECOND,
            "time to connect to nsqd and others",
        ),
        Flag(
            "http-client-request-timeout",
            DURATION,
            5 * _SECOND,
            "time for an answer of nsqd and others",
        ),
        Flag(
            "http-client-tls-insecure-skip-verify",
            BOOL,
            False,
            "accept any certificate of nsqd and others",
        ),
        Flag(
            "http-client-tls-root-ca-file",
            TEXT,
            "",
            "path of the authorities of their certificates, in PEM",
        ),
        Flag("http-client-tls-cert", TEXT, "", "path of the certificate to show them, in PEM"),
        Flag("http-client-tls-key", TEXT, "", "path of its private key, in PEM"),
        Flag(
            "allow-config-from-cidr",
            TEXT,
            "127.0.0.1/8",
            "network whose clients may use /config; empty: none",
        ),
        Flag(
            "acl-http-header",
            TEXT,
            "X-Forwarded-User",
            "header in which a proxy names the authenticated user",
        ),
        Flag(
            "admin-user",
            TEXTS,
            (),
            "user who may make changes; may be repeated; none: every user may",
            key="admin_users",
        ),
    ),
)
"""The flags of nsqadmin."""

NSQ_TO_FILE: Final = FlagTable(
    "nsq_to_file",
    "Write the messages of topics to files, one in a line.  A message is finished after the sync.",
    (
        "nsq_to_file --topic=test --output-dir=/tmp --lookupd-http-address=127.0.0.1:4161",
        "nsq_to_file --nsqd-tcp-address=127.0.0.1:4150 --topic=api_requests --channel=archive",
        "nsq_to_file --topic-pattern='^log\\.' --gzip --rotate-size=100000000 \\",
        "            --output-dir=/archive --lookupd-http-address=127.0.0.1:4161",
    ),
    (
        _VERSION,
        Flag("log-level", LEVEL, "info", "the log level: debug, info, warn, error or fatal"),
        Flag("log-prefix", TEXT, "[nsq_to_file] ", "what every line of the log begins with"),
        Flag("topic", TEXTS, (), "topic to write; may be repeated", key=""),
        Flag(
            "topic-pattern",
            TEXT,
            "",
            "regular expression of topics to write, found by lookupd",
            key="",
        ),
        Flag("topic-refresh", DURATION, _MINUTE, "time between searches for new topics", key=""),
        Flag("channel", TEXT, "nsq_to_file", "channel to consume", key=""),
        Flag("max-in-flight", INT, 200, "maximum of unfinished messages", key=""),
        *_CONSUMER,
        Flag("output-dir", TEXT, _TEMPORARY, "directory of the finished files", key=""),
        Flag(
            "work-dir",
            TEXT,
            "",
            "directory of the files being written; empty: the output directory",
            key="",
        ),
        Flag("datetime-format", TEXT, "%Y-%m-%d_%H", "strftime format of <DATETIME>", key=""),
        Flag(
            "filename-format",
            TEXT,
            "<TOPIC>.<HOST><REV>.<DATETIME>.log",
            "names of files: <TOPIC>, <HOST>, <PID>, <DATETIME>, <REV>; <REV> increases if a file"
            " exists and is needed for --gzip, rotation and --work-dir",
            key="",
        ),
        Flag(
            "host-identifier",
            TEXT,
            "",
            "what <HOST> is: any text with <SHORT_HOST> or <HOSTNAME>; empty: the short name",
            key="",
        ),
        Flag("gzip", BOOL, False, "compress the files", key=""),
        Flag("gzip-level", INT, 6, "compression level, from 1 to 9", key=""),
        Flag("skip-empty-files", BOOL, False, "open no file before a message arrives", key=""),
        Flag("rotate-size", INT, 0, "bytes after which a new file begins; 0: never", key=""),
        Flag(
            "rotate-interval", DURATION, 0, "time after which a new file begins; 0: never", key=""
        ),
        Flag("sync-interval", DURATION, 30 * _SECOND, "longest time between syncs", key=""),
        Flag(
            "http-client-connect-timeout",
            DURATION,
            2 * _SECOND,
            "time to connect to lookupd",
            key="",
        ),
        Flag("http-client-request-timeout", DURATION, 5 * _SECOND, "time for its answer", key=""),
    ),
)
"""The flags of nsq_to_file."""

NSQ_TO_HTTP: Final = FlagTable(
    "nsq_to_http",
    "Make an HTTP request for each message of a topic.  A request that fails is tried again.",
    (
        "nsq_to_http --topic=test --post=http://127.0.0.1:80/in --nsqd-tcp-address=127.0.0.1:4150",
        "nsq_to_http --topic=test --get='http://127.0.0.1:8080/?m=%s' \\",
        "            --lookupd-http-address=127.0.0.1:4161",
    ),
    (
        _VERSION,
        Flag("topic", TEXT, "", "topic to consume", key=""),
        Flag("channel", TEXT, "nsq_to_http", "channel to consume", key=""),
        Flag("max-in-flight", INT, 200, "maximum of unfinished messages", key=""),
        Flag("n", INT, 100, "requests at a time", key=""),
        Flag(
            "mode",
            TEXT,
            "hostpool",
            "which address gets a message: hostpool (a healthy one; a failed one is retried later),"
            " round-robin, epsilon-greedy (the fastest, mostly); any other word: all of them",
            key="",
        ),
        Flag("sample", FLOAT, 1.0, "share of messages to send, from 0 to 1", key=""),
        Flag("post", TEXTS, (), "URL to POST each message to; may be repeated", key=""),
        Flag(
            "get",
            TEXTS,
            (),
            "URL to GET, with one %s for the message, query-escaped; may be repeated",
            key="",
        ),
        Flag("header", TEXTS, (), "header of requests, 'NAME: VALUE'; may be repeated", key=""),
        Flag(
            "content-type",
            TEXT,
            "application/octet-stream",
            "content type of POST requests",
            key="",
        ),
        Flag("http-client-connect-timeout", DURATION, 2 * _SECOND, "time to connect", key=""),
        Flag("http-client-request-timeout", DURATION, 20 * _SECOND, "time for a request", key=""),
        Flag("status-every", INT, 250, "requests between lines of statistics; 0: none", key=""),
        *_CONSUMER,
    ),
)
"""The flags of nsq_to_http."""
