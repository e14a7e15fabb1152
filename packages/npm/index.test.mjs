import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import amqplib from 'amqplib'

import { startBroker } from './index.js'

test('an order is queued', async () => {
  const broker = await startBroker({ options: ['--compat', '4.3'] })
  const connection = await amqplib.connect(broker.url)
  const channel = await connection.createConfirmChannel()
  await channel.assertQueue('orders')
  channel.sendToQueue('orders', Buffer.from('order 1'))
  await channel.waitForConfirms()
  assert.equal((await channel.get('orders', { noAck: true })).content.toString(), 'order 1')
  await connection.close()
  const answer = await fetch(`${broker.managementUrl}/api/version`)
  assert.match(await answer.text(), /4\.3/)
  await broker.stop()
  await assert.rejects(amqplib.connect(broker.url), /ECONNREFUSED/)
})

test('two brokers have ports of their own', async () => {
  const brokers = await Promise.all([startBroker(), startBroker()])
  assert.notEqual(brokers[0].port, brokers[1].port)
  await Promise.all(brokers.map((broker) => broker.stop()))
})

test('a missing program is explained', async () => {
  await assert.rejects(startBroker({ program: '/nowhere/amqp-broker' }), /AMQP_BROKER_PROGRAM/)
})

test('a wrong option is the text of the error', async () => {
  await assert.rejects(startBroker({ options: ['--compat', '1.0'] }), /1\.0/)
})

test('a broker that is not stopped keeps no process alive', () => {
  const script = "require('./index.js').startBroker().then((broker) => console.log(broker.url))"
  const done = spawnSync(process.execPath, ['-e', script], { cwd: import.meta.dirname, encoding: 'utf-8', timeout: 60_000 })
  assert.equal(done.status, 0)
  assert.match(done.stdout, /^amqp:/)
})

test('a program that is no broker is named', async () => {
  await assert.rejects(startBroker({ program: '/bin/true' }), /\/bin\/true printed no address/)
  const file = join(mkdtempSync(join(tmpdir(), 'broker-')), 'amqp-broker')
  writeFileSync(file, '', { mode: 0o644 })
  await assert.rejects(startBroker({ program: file }), /amqp-broker: .*EACCES/)
})
