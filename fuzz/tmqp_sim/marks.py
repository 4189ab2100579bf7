"""The list of rare branches, each of which enough runs must have reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tmqp_sim.cluster_plan import CLUSTER_FAULTS
from tmqp_sim.plan import FAULT_KINDS
from tmqp_sim.raw import RAW_ROLES

__all__ = ["ENOUGH_RUNS", "MARKS", "missing", "table"]

#: So many runs must reach every mark.
ENOUGH_RUNS: Final = 100_000

#: By name: where it is, in words.
MARKS: Final[dict[str, str]] = {
    **{f"fault: {kind}": text for kind, text in FAULT_KINDS.items()},
    **{f"fault: {kind}": text for kind, text in CLUSTER_FAULTS.items()},
    "cluster of servers": "two or three servers, and not one",
    "dial broken": "a connection to a master broke at once",
    "dial given up": "a master did not answer in time",
    "dial late": "a connection to a master came when it had been given up",
    "dial lost": "what was to reach a master did not",
    "dial refused": "nobody listened where a master should be",
    "master given up: stalled": "it took nothing for too long",
    "message came from a slave": "and was taken",
    "messages for a master given up": "its buffer was full",
    "message for a master torn": "a connection broke in the middle of it",
    "server of a cluster stopped in order": "it said goodbye to clients and masters",
    "temporary channel created": "a client created a channel that does not last",
    "temporary channel there": "and it was there as long as it had to be",
    "message made way": "a push found its queue full, and the oldest message went",
    "temporary channel not created again": "its creation on a new connection was refused",
    "HTTP call answered": "a program answered what a router had sent it",
    "HTTP call given up": "it took too long",
    "HTTP answer did not come in time": "an HTTP client gave its connection up",
    "HTTP consumer connected": "somebody took messages by HTTP",
    "HTTP consumer got a message": "and got one",
    "HTTP producer connected": "somebody published by HTTP",
    "HTTP publish answered with 201": "a message published so was confirmed",
    "HTTP publish answered with 202": "its confirm did not come in time",
    "HTTP publish answered with 409": "it was refused",
    "HTTP publish answered with 503": "it could not be taken now",
    "connected by a door of another kind": "its messages are read by no other door",
    "answers forgotten": "answers about rights were to be asked for anew",
    "connection refused: too many": "of one host, or in all",
    "custom message answered": "a hook answered one",
    "custom message held back": "its sender did not read",
    "event handler told": "of what happened in a channel",
    "event handler behind at the end": "the server stopped before a handler had heard all",
    "events lost to a handler": "too many waited",
    "faulty session ended": "a door had a bug",
    "log-in refused": "an impostor was not let in",
    "question answered too late": "nobody waited for it any more",
    "question never answered": "who was asked about a right did not answer",
    "raw client cut off": "a client without manners was",
    **{f"raw client: {role}": "a client without manners came" for role in RAW_ROLES},
    "server described": "it said what it is, and what its clock reads",
    "read failed": "the storage could not be read",
    "right refused": "a client was not allowed to do something",
    "acknowledge of nothing in hand": "an answer came too late, or twice",
    "acknowledge timed out": "a consumer did not answer in time",
    "delivery given back": "a consumer had a message sent again",
    "delivery given back, for later": "and not before some time",
    "delivery extended": "a consumer asked for another time to answer",
    "delivery returned by a leave": "a consumer that left had something, which went back",
    "window full": "a consumer had as much unanswered as it wanted",
    **{
        f"seen: {state}": "somebody looked into a queue and saw a message so"
        for state in ("waiting", "deferred", "in-flight")
    },
    "deferred message cancelled": "its producer took it back before it was due",
    "receivers told": "a confirm said to how many consumers a message went",
    "answer forged": "a client answered for the server",
    "forged answer passed on": "and a server like the original passed it on",
    "answer lost with the connection": "a consumer was done when its connection was gone",
    "answered for others": "a client acknowledged what it had not in hand",
    "batch done": "a client pushed and acknowledged all together",
    "batch of what has gone elsewhere": "a batch acknowledged what was not the client's any more",
    "batch refused or lost": "nothing of a batch was done, or nobody knows",
    "client closed politely": "a client said Terminate",
    "client crashed": "a client's process was gone, and its connection reset",
    "client crashed silently": "a client's process was gone, and nobody told the server",
    "client flapped": "a client went away and came back",
    "client paused reading": "a client's inbox was full",
    "confirm lost with the connection": "a push was neither confirmed nor refused",
    "confirm timed out": "a producer did not wait any longer",
    "consumer forgot to answer": "a careless consumer",
    "dead letter delivered": "a message was put back too often",
    "direct message answered": "a client answered what another had asked",
    "delivered by a filter": "a consumer got what it wants of a queue",
    "emptied queue destroyed": "a queue went with its last message and consumer",
    "epoch committed": "a writer of epochs was told so",
    "epoch committed twice at once": "one commit waited for the other",
    "epoch was committed before": "an epoch was done again, and nothing was pushed",
    "copy of a feed delivered": "a message came through a feed",
    "feed added": "a queue feeds another",
    "feed removed": "and feeds it no longer, while items came",
    "item not taken by a source": "a push into a source failed, or nobody knows",
    "flushed at the end": "a session that was closed had bytes to send",
    "join failed": "a channel was not joined in time",
    "joined again after a loss": "a client's machine remembered its channels",
    "machine rebooted": "the clock of a new life of the server began near zero",
    "memory full": "the messages of all queues took what they may",
    "message expired": "a message waited too long",
    "negative acknowledge": "a consumer refused a message",
    "pull of an empty queue": "a pull found nothing",
    "pulled": "a pull found something",
    "push refused": "a push was answered negatively",
    "pushed again": "an honest producer repeated itself",
    "put aside for a transaction": "a push found little memory, and waited for the disk",
    "queue counter: dead": "messages became dead letters",
    "queue counter: refused": "a queue's limit",
    "queue counter: requeued": "messages were put back",
    "queue counter: skipped": "a broadcast passed a consumer over",
    "queue counter: unknown_acks": "a queue got an answer to nothing",
    "queue counter: untracked": "a broadcast to a consumer with too much in hand",
    "portion continued": "one chunk asked for more than a session may have to send",
    "reading held back": "a client that does not read is not read from",
    "read back from the disk": "messages that waited on disk only",
    "restored from the disk": "a new life of the server found messages",
    "run divided on purpose": "a world in which the broker is brought no runs",
    "run divided: answers": "answers in a row, each looked at by itself",
    "run divided: pushes": "pushes in a row that could not be taken in one go",
    "run taken whole: answers": "answers in a row were taken in one go",
    "run taken whole: confirmed when safe": "one sync released the confirms of a run",
    "run taken whole: erased": "answers in a row settled what was on the disk",
    "run taken whole: dealt": "the messages of a run went to several consumers in turn",
    "run taken whole: for several": "a run was delivered to several consumers",
    "run taken whole: headers": "pushes with headers were carried out in one go",
    "run taken whole: pushes": "pushes in a row were carried out in one go",
    "run taken whole: saved": "and are kept as one",
    "server crashed": "its memory was gone",
    "server frozen": "its process stood still",
    "server stopped in order": "and its store was told all",
    "store closed cleanly": "the next life knows that nothing was sent behind its back",
    "silent peer given up": "two intervals without a word",
    "silent peer pinged": "one interval without a word",
    "session blocked": "a client's output passed the high water mark",
    "session unblocked": "and drained",
    "slow reader cut: stalled": "a client read nothing for too long",
    "datagrams sprayed": "datagrams came from many addresses",
    "datagram sent": "and were answered",
    "source admitted": "an address that sends datagrams got a session",
    "source refused": "too many had one",
    "source read again": "datagrams waited for a session, and it went on",
    "quiet source ended": "no datagram came for the idle time",
    "stranger connected": "somebody talked nonsense",
    "stranger cut off": "and was cut off for it",
    "sync failed": "a batch could not be written",
    "unanswered batch lost in a crash": "the crash came before the write",
    "unanswered batch survived a crash": "the crash came after it, and before its answer",
    "transaction refused or lost": "a part of an epoch, or its commit, did not go through",
    "work left for another step": "a step had more to do than it may",
}


def missing(counts: Mapping[str, int]) -> list[str]:
    """The marks that were not reached."""
    return [name for name in MARKS if not counts.get(name)]


def table(counts: Mapping[str, int]) -> list[str]:
    """All marks with how often they were reached, as lines."""
    unknown = [name for name in sorted(counts) if name not in MARKS]
    lines = [f"{counts.get(name, 0):>12,}  {name}: {text}" for name, text in sorted(MARKS.items())]
    return lines + [f"{counts[name]:>12,}  {name}: not in the list" for name in unknown]
