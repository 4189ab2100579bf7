// A small TMQP/2.0 client for Node.js without any package, made to be tested by tmqp-conformance:
//
//     tmqp-conformance client --exec 'node examples/conformance/client.mjs {url} {task}' --out report
//
// It connects, does one task of the suite, and stays until the server closes.

import net from "node:net";
import { randomBytes } from "node:crypto";

const [TERMINATE, PING, PONG, SERVER, QUEUE, DIRECT, ACK, RESPONSE, PULL] =
  [0x08, 0x09, 0x0a, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15];
const PREAMBLE = "TMQP/2.0";
const PONG_BYTES = Buffer.from("8aff000000000000", "hex");
const CHANNEL = "conformance";
const MOST = 1 << 20; // the longest payload that is read (F14)

const utf8 = new TextDecoder("utf-8", { fatal: true });
const newId = () => randomBytes(16).toString("hex");

/** Write a message (F1-F7). */
function encode({ type, id = "", source = "", target = "", contentType = 0, payload = "",
                  headers = [], flags = "" }) {
  const names = [id, source, target].map((name) => Buffer.from(name));
  const body = Buffer.from(payload);
  const block = Buffer.from(headers.map(([key, value]) => `${key}:${value}\r\n`).join(""));
  const head = Buffer.alloc(8);
  head[0] = type | (flags.includes("F") ? 0x80 : 0) | (flags.includes("H") ? 0x40 : 0);
  head[1] = 16 | (flags.includes("R") ? 0x80 : 0) | (flags.includes("A") ? 0x40 : 0)
    | (block.length ? 0x20 : 0);
  names.forEach((name, place) => { head[2 + place] = name.length; });
  head.writeUInt16LE(contentType, 5);
  let length = Buffer.alloc(0);
  if (body.length < 253) head[7] = body.length;
  else if (body.length < 65536) { head[7] = 253; length = Buffer.alloc(2); length.writeUInt16LE(body.length); }
  else { head[7] = 254; length = Buffer.alloc(4); length.writeUInt32LE(body.length); }
  const size = Buffer.alloc(block.length ? 2 : 0);
  if (block.length) size.writeUInt16LE(block.length);
  return Buffer.concat([head, length, ...names, size, block, body]);
}

/** Read one message from the beginning of a buffer; null if it is not complete. Throws the code of
 *  the end (F40) when the peer has broken a rule. */
function decode(data) {
  if (data.length < 8) return null;
  const type = data[0] & 0x3f;
  const bare = type === PING || type === PONG;
  let at = 8;
  let size = BigInt(data[7]);
  const width = { 253: 2, 254: 4, 255: 8 }[data[7]] ?? 0;
  if (data.length < at + width) return null;
  if (width === 2) size = BigInt(data.readUInt16LE(at));
  if (width === 4) size = BigInt(data.readUInt32LE(at));
  if (width === 8) size = data.readBigUInt64LE(at);
  at += width;
  if (size > BigInt(MOST)) throw 482;
  const names = [];
  for (const length of data.subarray(2, 5)) {
    names.push(data.subarray(at, at + length));
    at += length;
  }
  let block = Buffer.alloc(0);
  if (!bare && data[1] & 0x20) {
    if (data.length < at + 2) return null;
    const length = data.readUInt16LE(at);
    block = data.subarray(at + 2, at + 2 + length);
    at += 2 + length;
  }
  const end = at + Number(size);
  if (data.length < end) return null;
  try {
    const [id, source, target] = names.map((name) => utf8.decode(name));
    const headers = utf8.decode(block).split("\r\n").filter((line) => line.indexOf(":") > 0)
      .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]);
    const message = {
      type, id, source, target, headers, contentType: data.readUInt16LE(5),
      payload: data.subarray(at, end), ttl: data[1] & (bare ? 0x3f : 0x1f),
      first: (data[0] & 0x80) !== 0, high: (data[0] & 0x40) !== 0,
      wantsResponse: (data[1] & 0x80) !== 0, wantsAcknowledge: (data[1] & 0x40) !== 0,
    };
    return { message, end };
  } catch {
    throw 400;
  }
}

class Client {
  constructor(socket, task) {
    this.socket = socket;
    this.task = task;
    this.received = Buffer.alloc(0);
    this.greeted = false;
    this.accepted = false;
    this.id = newId();
    this.waiting = new Map();
  }

  begin() {
    const hello = `CONNECT /\r\nClient-Name: node\r\nClient-Id: ${this.id}\r\n`;
    // Preamble and hello in one write, without waiting for an answer (F21, F22).
    this.socket.write(Buffer.concat([
      Buffer.from(PREAMBLE),
      encode({ type: SERVER, contentType: 101, id: newId(), source: this.id, flags: "F", payload: hello }),
    ]));
  }

  send(message) { this.socket.write(encode({ id: newId(), source: this.id, ...message })); }

  close(code) {
    if (code !== undefined) this.socket.write(encode({ type: TERMINATE, contentType: code }));
    this.socket.end();
    this.closed = true;
  }

  receive(data) {
    this.received = Buffer.concat([this.received, data]);
    if (!this.greeted) {
      const begin = this.received.subarray(0, 8).toString("latin1");
      if (!PREAMBLE.startsWith(begin)) return this.close();
      if (begin.length < 8) return;
      this.greeted = true;
      this.received = this.received.subarray(8);
    }
    try {
      for (let read; !this.closed && (read = decode(this.received));) {
        this.received = this.received.subarray(read.end);
        if (read.message.ttl > 0) this.take(read.message);
      }
    } catch (code) {
      if (typeof code !== "number") throw code;
      this.close(code);
    }
  }

  take(message) {
    if (message.type === PING) this.socket.write(PONG_BYTES);
    else if (message.type === TERMINATE) this.close();
    else if (message.type === SERVER && !this.accepted) {
      if (message.contentType !== 202) return this.close();
      this.accepted = true;
      this.id = message.target || this.id;
      this.start();
    } else if (message.type === RESPONSE && !message.source) {
      this.waiting.get(message.id)?.(message);
      this.waiting.delete(message.id);
    } else if (message.type === QUEUE && this.task === "consume" && message.wantsAcknowledge) {
      const { id, target, contentType } = message;
      this.send({ type: ACK, id, target, contentType });
    } else if (message.type === DIRECT && this.task === "echo" && message.wantsResponse) {
      const flags = (message.first ? "F" : "") + (message.high ? "H" : "");
      this.send({ type: RESPONSE, id: message.id, target: message.source, payload: message.payload, flags });
    }
  }

  /** Do the task; the client then stays. */
  start() {
    if (["join", "consume", "pull"].includes(this.task)) {
      const id = newId();
      if (this.task === "pull") this.waiting.set(id, () => this.pull());
      this.send({ type: SERVER, contentType: 601, id, target: CHANNEL, flags: "R" });
    } else if (this.task === "push") {
      this.send({ type: QUEUE, target: CHANNEL, contentType: 1, payload: "hello", flags: "A" });
    }
  }

  pull() { this.send({ type: PULL, target: CHANNEL, contentType: 1, headers: [["Count", "2"]] }); }
}

const [url, task = "stay"] = process.argv.slice(2);
if (!url) {
  console.error("usage: node client.mjs tmq://HOST:PORT [stay|join|push|consume|pull|echo]");
  process.exit(2);
}
const { hostname, port } = new URL(url.replace(/^tmq:/, "http:"));
const socket = net.createConnection({ host: hostname, port: Number(port) || 2622, noDelay: true });
const client = new Client(socket, task);
socket.on("connect", () => client.begin());
socket.on("data", (data) => client.receive(data));
socket.on("end", () => socket.end());
socket.on("error", () => socket.destroy());
