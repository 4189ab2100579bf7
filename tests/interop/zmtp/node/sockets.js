// A program with zeromq.js, libzmq for Node: does with its sockets what the lines of a test say.
'use strict'

const readline = require('readline')
const {createRequire} = require('module')
// The packages stand where the test has had them installed.
const zmq = createRequire(`${process.cwd()}/`)('zeromq')

const TYPES = {
  PUSH: zmq.Push,
  PULL: zmq.Pull,
  PUB: zmq.Publisher,
  SUB: zmq.Subscriber,
  REQ: zmq.Request,
  REP: zmq.Reply,
  DEALER: zmq.Dealer,
  ROUTER: zmq.Router,
}
const PATIENCE_MS = 20_000

const sockets = new Map()
const word = (part) => part.toString('hex') || '-'
const part = (text) => (text === '-' ? Buffer.alloc(0) : Buffer.from(text, 'hex'))

async function open([name, type, how, address, user, password]) {
  const socket = new TYPES[type]({linger: 5_000})
  if ('sendTimeout' in socket) socket.sendTimeout = PATIENCE_MS
  if (user) Object.assign(socket, {plainUsername: user, plainPassword: password})
  sockets.set(name, socket)
  if (how === 'bind') await socket.bind(address)
  else socket.connect(address)
  return 'did'
}

async function recv([name, ms]) {
  const socket = sockets.get(name)
  socket.receiveTimeout = Number(ms)
  try {
    return ['got', ...(await socket.receive()).map(word)].join(' ')
  } catch (error) {
    if (error.code === 'EAGAIN') return 'none'
    throw error
  }
}

async function take(line) {
  const [verb, ...words] = line.split(' ')
  if (verb === 'open') return open(words)
  if (verb === 'recv') return recv(words)
  const socket = sockets.get(words[0])
  if (verb === 'send') await socket.send(words.slice(1).map(part))
  else if (verb === 'subscribe') socket.subscribe(part(words[1]))
  else if (verb === 'unsubscribe') socket.unsubscribe(part(words[1]))
  else if (verb === 'close') socket.close()
  else throw new Error(`no such word: ${verb}`)
  return 'did'
}

async function main() {
  for await (const line of readline.createInterface({input: process.stdin})) {
    let answer
    try {
      answer = await take(line)
    } catch (error) {
      answer = `refused ${String(error).replaceAll('\n', ' ')}`
    }
    process.stdout.write(`${answer}\n`)
  }
  process.exit(0)
}

main()
