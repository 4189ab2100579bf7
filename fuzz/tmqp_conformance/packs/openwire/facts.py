"""The facts of OpenWire that the cases are about.

OpenWire has no standard.  A fact names its section of ActiveMQ's "OpenWire Version 2
Specification" where that has one, or the command that it is about; what messages mean is in JMS
1.1, whose sections are named with ``JMS``.
"""

from __future__ import annotations

from typing import Final

__all__ = ["FACTS"]

FACTS: Final = {
    # -- the stream -----------------------------------------------------------------------------
    "O1": "Wire Format Negotiation: each side begins with WireFormatInfo, in loose encoding.",
    "O2": "Wire Format Negotiation: the highest version that both speak is used.",
    "O3": "Wire Format Negotiation: an encoding option is on if both sides ask for it.",
    "O4": "WireFormatInfo: it begins with the magic ActiveMQ; other peers are sent away.",
    "O5": "Overview: commands follow each other; they are the same however the stream is cut.",
    "O6": "Command: a command of a type that there is not ends the connection.",
    "O7": "WireFormatInfo: a command of more than MaxFrameSize bytes ends the connection.",
    "O8": "ConnectionError: the server says why it ends a connection.",
    # -- commands -------------------------------------------------------------------------------
    "O10": "Response: a command that wants a response gets one, with its number.",
    "O11": "Response: a command that wants none gets none.",
    "O12": "ConnectionInfo: it comes first of all commands, and lets the client in.",
    "O13": "ConnectionInfo: a client id is for one connection at a time (JMS 4.3.2).",
    "O14": "KeepAliveInfo: one that wants a response is answered by KeepAliveInfo.",
    "O15": "ShutdownInfo: the server ends the connection.",
    "O16": "ExceptionResponse: it answers a command that is not carried out.",
    "O17": "Message: the body comes as it was sent.",
    # -- consumers ------------------------------------------------------------------------------
    "O20": "MessageDispatch: it names the consumer and the destination.",
    "O21": "ConsumerInfo, prefetch: so many messages may be unacknowledged, and no more.",
    "O22": "MessagePull: a consumer with prefetch 0 gets one message for each.",
    "O23": "MessageAck, standard: it is for all messages from the first to the last.",
    "O24": "MessageAck, individual: it is for its message alone.",
    "O25": "RemoveInfo: what a consumer has not acknowledged comes to another (JMS 4.4.11).",
    "O26": "RemoveInfo, lastDelivered: messages up to it count as redelivered, others do not.",
    "O27": "ConsumerInfo, browser: it sees all messages, then an empty dispatch (JMS 5.9).",
    # -- what messages mean ---------------------------------------------------------------------
    "O30": "JMS 5.1: a message in a queue goes to one consumer.",
    "O31": "JMS 5.2: a queue keeps messages until they are consumed.",
    "O32": "JMS 6.1: a message of a topic goes to every subscriber.",
    "O33": "JMS 6.2: who is not subscribed yet gets nothing.",
    # -- transactions ---------------------------------------------------------------------------
    "O40": "TransactionInfo, commit: what was sent comes then, in order (JMS 4.4.7).",
    "O41": "TransactionInfo, rollback: what was sent is forgotten (JMS 4.4.7).",
    "O42": "MessageAck in a transaction: it takes effect with the commit (JMS 4.4.7).",
    "O43": "TransactionInfo: an open transaction is rolled back when the connection ends.",
    "O44": "TransactionInfo, XA: a begin is answered, by an exception where there is no XA.",
}
