"""The facts of STOMP that the cases are about, each with its section of the specification."""

from __future__ import annotations

from typing import Final

__all__ = ["FACTS"]

FACTS: Final = {
    # -- Connecting (1.2) -----------------------------------------------------------------------
    "P1": "Connecting: a client begins with CONNECT, and the server answers with CONNECTED.",
    "P2": "CONNECT or STOMP Frame: a server treats STOMP in the same way as CONNECT.",
    "P3": "Protocol Negotiation: the highest version that both speak is used; CONNECTED names it.",
    "P4": "Protocol Negotiation: a client that names no version speaks 1.0.",
    "P5": "Protocol Negotiation: without a common version comes ERROR, with those of the server.",
    "P6": "Heart-beating: who promises heart-beats sends something at least that often.",
    "P7": "Heart-beating: a connection on which nothing comes for too long may be given up.",
    "P8": "CONNECT or STOMP Frame: CONNECT and CONNECTED are not escaped.",
    # -- STOMP Frames (1.2) ---------------------------------------------------------------------
    "P10": "STOMP Frames: line feeds may stand between frames.",
    "P11": "STOMP Frames: in 1.2 a carriage return before a line feed is part of the line end.",
    "P12": "Value Encoding: \\r, \\n, \\c and \\\\ are carriage return, feed, colon, backslash.",
    "P13": "Value Encoding: any other escape is fatal.",
    "P14": "Value Encoding: headers are UTF-8, and their blanks are their own (1.1 and later).",
    "P15": "Body: with content-length a body has so many bytes, NUL bytes among them; NUL follows.",
    "P16": "Body: without content-length a body ends at the first NUL; it may be empty.",
    "P17": "Repeated Header Entries: the first one counts (1.2).",
    "P18": "Size Limits: a server may limit headers and bodies; over a limit it should send ERROR.",
    "P19": "STOMP Frames: a frame is the same however the stream is cut.",
    # -- Client Frames (1.2) --------------------------------------------------------------------
    "P20": "Header receipt: the server answers with RECEIPT, whose receipt-id is this receipt.",
    "P21": "DISCONNECT: the receipt shows that the server has got all frames before it.",
    "P22": "SEND: the header destination is required.",
    "P23": "SEND: headers of the user and content-type go on to MESSAGE.",
    "P24": "SUBSCRIBE: what is sent to the destination then comes as MESSAGE.",
    "P25": "SUBSCRIBE id Header: it is required (1.1 and later), and MESSAGE names it.",
    "P26": "SUBSCRIBE ack Header, auto: a message counts as acknowledged when it is sent.",
    "P27": "SUBSCRIBE ack Header, client: ACK is for all messages up to its own.",
    "P28": "SUBSCRIBE ack Header, client-individual: ACK is for its message alone.",
    "P29": "SUBSCRIBE ack Header: what is not acknowledged at the end comes to another client.",
    "P30": "UNSUBSCRIBE: no more messages come of this subscription.",
    "P31": "ACK: id is the header ack of MESSAGE (1.2).",
    "P32": "ACK (1.1): message-id and subscription name the message; (1.0): message-id does.",
    "P33": "NACK: the message was not consumed; the same headers as ACK.",
    "P34": "BEGIN, COMMIT: what is sent in a transaction is delivered when that is committed.",
    "P35": "ABORT: what was sent in the transaction is forgotten.",
    "P36": "BEGIN: an open transaction is aborted when the connection ends.",
    "P37": "ACK: in a transaction it takes effect when that is committed.",
    "P38": "BEGIN, COMMIT, ABORT: transaction is required, and names an open one.",
    # -- Server Frames (1.2) --------------------------------------------------------------------
    "P40": "MESSAGE: destination, message-id and subscription are required.",
    "P41": "MESSAGE: the header ack is there if the subscription acknowledges explicitly (1.2).",
    "P42": "ERROR: it should say why in message; the connection is closed behind it.",
    "P43": "ERROR: the receipt of the frame that caused it should be in receipt-id.",
    "P44": "Frames and Headers: there are no other frames of clients.",
    # -- what the specification leaves to servers --------------------------------------------------
    "P50": "Destinations: /queue/N keeps each message for one consumer.",
    "P51": "Destinations: /topic/N gives each message to every subscriber.",
}
