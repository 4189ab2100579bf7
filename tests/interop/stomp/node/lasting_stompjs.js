// A program with @stomp/stompjs that lives through restarts of its server: it prints each message
// of a queue and of a durable subscription, and ends with its standard input.
'use strict'

const {createRequire} = require('module')
// The packages stand where the test has had them installed.
const load = createRequire(`${process.cwd()}/`)
const {Client, Versions} = load('@stomp/stompjs')
const {TCPWrapper} = load('@stomp/tcp-wrapper')

const [host, port, version] = process.argv.slice(2)
const client = new Client({
  webSocketFactory: () => new TCPWrapper(host, Number(port)),
  stompVersions: new Versions([version]),
  connectHeaders: {'client-id': `stompjs-${version}`},
  reconnectDelay: 100,
})

function print(kind, message) {
  message.ack()
  console.log(`${kind} ${message.body}`)
}

client.onConnect = () => {
  const mode = version === '1.0' ? 'client' : 'client-individual'
  client.subscribe(`/queue/stompjs-${version}`, (message) => print('queue', message), {ack: mode})
  const receipt = `ready-${Math.random()}`
  client.watchForReceipt(receipt, () => console.log(`ready ${client.connectedVersion}`))
  client.subscribe(`/topic/stompjs-${version}`, (message) => print('topic', message), {
    ack: mode, 'activemq.subscriptionName': 's', receipt,
  })
}
client.onStompError = (frame) => console.error(frame.headers.message)
client.activate()
process.stdin.resume()
process.stdin.on('end', async () => {
  await client.deactivate()
  process.exit(0)
})
