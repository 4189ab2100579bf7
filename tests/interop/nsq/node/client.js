// A program with nsqjs: publishes and consumes as the lines of a test say, one JSON value a line.
'use strict'

const fs = require('fs')
const readline = require('readline')
const {createRequire} = require('module')
// The packages stand where the test has had them installed.
const nsq = createRequire(`${process.cwd()}/`)('nsqjs')

const given = JSON.parse(process.argv[2])
const options = {maxInFlight: 10, lookupdPollInterval: 1, maxBackoffDuration: 0}
if (given.ca) Object.assign(options, {tls: true, ca: fs.readFileSync(given.ca)})
if (given.compression) options[given.compression] = true
if (given.auth) options.authSecret = given.auth

const say = (fields) => process.stdout.write(`${JSON.stringify(fields)}\n`)

function handle(message) {
  const body = message.body.toString()
  say({message: body, attempts: message.attempts})
  const word = message.attempts === 1 ? body.split(' ')[0] : 'fine'
  if (word === 'again') {
    message.requeue(0, false)
  } else if (word === 'slow') {
    message.touch()
    setTimeout(() => message.touch(), 600)
    setTimeout(() => message.touch(), 1200)
    setTimeout(() => message.finish(), 1600)
  } else if (word !== 'forgotten') {
    message.finish()
  }
}

function consume(line) {
  const addresses = given.lookupd.length
    ? {lookupdHTTPAddresses: given.lookupd}
    : {nsqdTCPAddresses: given.nsqd}
  const reader = new nsq.Reader(line.topic, line.channel, {...options, ...addresses})
  reader.on('message', handle)
  reader.on('error', (error) => console.error(`reader: ${error}`))
  reader.connect()
  say({did: 'consume'})
}

let writer = null

// A writer that was closed does not connect again by itself: each publication needs one that is open.
function ready(then) {
  if (writer && writer.ready) return then(null)
  const [host, port] = given.nsqd[0].split(':')
  let told = false
  const once = (error) => {
    if (told) return
    told = true
    then(error)
  }
  writer = new nsq.Writer(host, Number(port), options)
  writer.on('ready', () => once(null))
  writer.on('error', (error) => once(error))
  writer.on('closed', () => once(new Error('closed')))
  writer.connect()
}

function publish(line) {
  let told = false
  const answered = (error) => {
    if (told) return
    told = true
    say(error ? {refused: String(error)} : {did: 'publish'})
  }
  ready((error) => {
    if (error) return answered(error)
    writer.on('error', answered)
    if (line.do === 'defer') {
      // The documentation says a body; the library wants a list.
      writer.deferPublish(line.topic, line.bodies, line.ms, answered)
    } else {
      writer.publish(line.topic, line.bodies.length === 1 ? line.bodies[0] : line.bodies, answered)
    }
  })
}

readline
  .createInterface({input: process.stdin})
  .on('line', (text) => {
    const line = JSON.parse(text)
    if (line.do === 'consume') consume(line)
    else publish(line)
  })
  .on('close', () => process.exit(0))
