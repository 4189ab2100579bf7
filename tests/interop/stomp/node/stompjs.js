// A program with @stomp/stompjs over TCP: receipts, a topic, answers of all before, heart-beats.
'use strict'

const {createRequire} = require('module')
// The packages stand where the test has had them installed.
const load = createRequire(`${process.cwd()}/`)
const {Client} = load('@stomp/stompjs')
const {TCPWrapper} = load('@stomp/tcp-wrapper')

const [host, port] = process.argv.slice(2)
const client = new Client({
  webSocketFactory: () => new TCPWrapper(host, Number(port)),
  heartbeatOutgoing: 500,
  heartbeatIncoming: 500,
  reconnectDelay: 0,
})

function fail(error) {
  console.error(String(error))
  process.exit(1)
}

function receipt(ask) {
  return new Promise((resolve) => {
    const name = `receipt-${Math.random()}`
    client.watchForReceipt(name, resolve)
    ask({receipt: name})
  })
}

async function work() {
  const news = []
  const messages = []
  await receipt((headers) => client.subscribe('/topic/stompjs', (m) => news.push(m.body), headers))
  await receipt((headers) => client.publish({destination: '/topic/stompjs', body: 'now', headers}))
  const binaryBody = new Uint8Array([0, 1, 255])
  const headers = {'content-type': 'application/octet-stream', colour: 'a: \\ b'}
  for (let count = 0; count < 3; count += 1) {
    await receipt((more) =>
      client.publish({destination: '/queue/stompjs', binaryBody, headers: {...headers, ...more}}))
  }
  const all = new Promise((resolve) => {
    client.subscribe('/queue/stompjs', (message) => {
      messages.push(message)
      if (messages.length === 3) resolve()
    }, {ack: 'client'})
  })
  await all
  const last = messages[2]
  const transaction = client.begin()
  client.publish({destination: '/queue/out', body: 'answer', headers: {transaction: transaction.id}})
  last.ack({transaction: transaction.id})
  transaction.commit()
  const answer = await new Promise((resolve) => client.subscribe('/queue/out', resolve))
  await new Promise((resolve) => setTimeout(resolve, 1500))  // heart-beats alone
  console.log(JSON.stringify({
    news, answer: answer.body, bytes: [...last.binaryBody], colour: last.headers.colour,
  }))
  await client.deactivate()
  console.log('done')
  process.exit(0)
}

client.onConnect = () => work().catch(fail)
client.onStompError = (frame) => fail(frame.headers.message)
client.onWebSocketClose = () => {
  if (client.active) fail('the connection has ended')
}
client.activate()
