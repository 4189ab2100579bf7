// A program with stompit: a queue, answers one by one, a transaction, and a message that is refused.
'use strict'

const {createRequire} = require('module')
// The packages stand where the test has had them installed.
const stompit = createRequire(`${process.cwd()}/`)('stompit')

const [host, port] = process.argv.slice(2)
const options = {host, port: Number(port), connectHeaders: {host, 'heart-beat': '500,500'}}

function fail(error) {
  console.error(String(error))
  process.exit(1)
}

function send(client, destination, body, headers = {}) {
  return new Promise((resolve, reject) => {
    const frame = client.send({destination, ...headers}, {onReceipt: resolve, onError: reject})
    frame.end(body)
  })
}

stompit.connect(options, async (error, client) => {
  if (error) fail(error)
  client.on('error', fail)
  const heard = []
  for (const body of ['one', 'two', 'three: \\ "ü"']) {
    await send(client, '/queue/stompit', body, {colour: 'red: \\ and\nblue'})
  }
  const transaction = client.begin()
  transaction.send({destination: '/queue/stompit'}).end('in a transaction')
  await new Promise((resolve) => transaction.commit({onReceipt: resolve}))

  client.subscribe({destination: '/queue/stompit', ack: 'client-individual'}, (fault, message) => {
    if (fault) fail(fault)
    message.readString('utf-8', (broken, body) => {
      if (broken) fail(broken)
      heard.push(body)
      const isNew = !message.headers.redelivered
      if (body === 'two' && isNew) client.nack(message)
      else client.ack(message)
      if (heard.length < 5) return
      console.log(JSON.stringify({heard, colour: message.headers.colour}))
      client.disconnect((late) => {
        if (late) fail(late)
        console.log('done')
      })
    })
  })
})
