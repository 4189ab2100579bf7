// A program with stompit that lives through restarts of its server: it prints each message of a
// queue and of a durable subscription, and ends with its standard input.
'use strict'

const {createRequire} = require('module')
// The packages stand where the test has had them installed.
const stompit = createRequire(`${process.cwd()}/`)('stompit')

const [host, port, version] = process.argv.slice(2)
const connectHeaders = {
  host, 'accept-version': version, 'client-id': `stompit-${version}`, 'heart-beat': '0,0',
}
const servers = new stompit.ConnectFailover([{host, port: Number(port), connectHeaders}], {
  initialReconnectDelay: 50, maxReconnectDelay: 100, maxReconnects: 200,
})
let current = null

function subscribe(client, kind, headers) {
  const ack = version === '1.0' ? 'client' : 'client-individual'
  client.subscribe({destination: `/${kind}/stompit-${version}`, ack, ...headers}, (fault, message) => {
    if (fault) return
    message.readString('utf-8', (broken, body) => {
      if (broken) return
      client.ack(message)
      console.log(`${kind} ${body}`)
    })
  })
}

servers.connect((error, client, reconnect) => {
  if (error) {
    console.error(String(error))
    process.exit(1)
  }
  current = client
  client.on('error', () => reconnect())
  subscribe(client, 'queue', {})
  subscribe(client, 'topic', {'activemq.subscriptionName': 's'})
  // What has a receipt comes behind the subscriptions.
  const ready = () => console.log(`ready ${client.getVersion ? client.getVersion() : version}`)
  client.send({destination: '/topic/nobody'}, {onReceipt: ready}).end('x')
})
process.stdin.resume()
process.stdin.on('end', () => {
  if (current === null) process.exit(0)
  current.disconnect(() => process.exit(0))
})
