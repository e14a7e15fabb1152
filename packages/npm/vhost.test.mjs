import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, test } from 'node:test'

import amqplib from 'amqplib'

import { startBroker } from './index.js'

let broker
before(async () => { broker = await startBroker() })
after(() => broker.stop())

/** A confirm channel in a vhost of a test's own, which its end closes and deletes. */
async function channelFor(t) {
  const vhost = await broker.vhost()
  t.after(() => vhost.delete())
  // The end of the vhost closes it.
  const connection = await amqplib.connect(vhost.url)
  return { vhost, channel: await connection.createConfirmChannel() }
}

for (const body of ['order 1', 'order 2']) {
  test(`the test of ${body} sees its own queue alone`, async (t) => {
    const { channel } = await channelFor(t)
    assert.equal((await channel.assertQueue('orders')).messageCount, 0)
    channel.sendToQueue('orders', Buffer.from(body))
    await channel.waitForConfirms()
    const other = await channelFor(t)
    assert.equal((await other.channel.assertQueue('orders')).messageCount, 0)
    assert.equal((await channel.get('orders', { noAck: true })).content.toString(), body)
  })
}

test('a deleted vhost is gone, with its connections', async () => {
  const vhost = await broker.vhost()
  const connection = await amqplib.connect(vhost.url)
  const closed = once(connection, 'close')
  await vhost.delete()
  assert.equal((await closed)[0].code, 320)
  await assert.rejects(amqplib.connect(vhost.url), /ConnectionClose/)
})

test('a publish is nacked, and published again', async (t) => {
  const { vhost, channel } = await channelFor(t)
  await channel.assertQueue('orders')
  const rule = await vhost.faults.add('confirm_nack', { routing_key: 'orders', times: 1 })
  assert.equal(rule.vhost, vhost.name)
  channel.sendToQueue('orders', Buffer.from('order 1'))
  await assert.rejects(channel.waitForConfirms(), /nacked/)
  channel.sendToQueue('orders', Buffer.from('order 1'))
  await channel.waitForConfirms()
  assert.equal(await vhost.faults.hits(rule), 1)
})

test('removed and cleared rules have no effect', async (t) => {
  const { vhost, channel } = await channelFor(t)
  const other = await channelFor(t)
  const kept = await other.vhost.faults.add('confirm_nack')
  await vhost.faults.remove(await vhost.faults.add('confirm_nack'))
  await vhost.faults.add('confirm_nack')
  await vhost.faults.clear()
  channel.sendToQueue('orders', Buffer.from('order 1'))
  await channel.waitForConfirms()
  assert.equal(await broker.faults.hits(kept), 0)
  await broker.faults.clear()
  await assert.rejects(broker.faults.hits(kept), { message: 'Not Found' })
})

test('held deliveries are released one by one', async (t) => {
  const { vhost, channel } = await channelFor(t)
  await channel.assertQueue('orders')
  const held = await vhost.faults.add('hold_delivery', { queue: 'orders' })
  for (const body of ['new', 'paid']) channel.sendToQueue('orders', Buffer.from(body))
  await channel.waitForConfirms()
  const seen = []
  let arrived
  await channel.consume('orders', (message) => { seen.push(message.content.toString()); arrived() }, { noAck: true })
  for (const expected of [['new'], ['new', 'paid']]) {
    const arrival = new Promise((resolve) => { arrived = resolve })
    assert.equal(await vhost.faults.release(held), 1)
    await arrival
    assert.deepEqual(seen, expected)
  }
})

test('half an hour passes at once', async (t) => {
  const { channel } = await channelFor(t)
  await channel.assertQueue('orders', { messageTtl: 1_800_000 })
  channel.sendToQueue('orders', Buffer.from('order 1'))
  await channel.waitForConfirms()
  await broker.clock.advance('29m')
  assert.equal((await channel.checkQueue('orders')).messageCount, 1)
  await broker.clock.advance(60_000)
  assert.equal((await channel.checkQueue('orders')).messageCount, 0)
})

test('a clock that a test has frozen runs again after the test', async () => {
  const vhost = await broker.vhost()
  await vhost.broker.clock.freeze()
  const inner = await broker.vhost()
  await inner.delete()
  const frozen = await broker.clock.nowMs()
  await broker.clock.advance(5)
  assert.equal(await broker.clock.nowMs(), frozen + 5)
  await vhost.delete()
  const headers = { authorization: `Basic ${btoa('guest:guest')}` }
  const state = await fetch(`${broker.managementUrl}/_broker/clock`, { headers })
  assert.equal((await state.json()).is_frozen, false)
})

test('bad input is refused with the reason of the broker', async (t) => {
  const vhost = await broker.vhost()
  t.after(() => vhost.delete())
  const unknown = { message: /^a fault has no field 'event', .*did you mean 'on'\?$/ }
  await assert.rejects(vhost.faults.add('confirm_nack', { event: 'publish' }), unknown)
  await assert.rejects(vhost.faults.add('confirm_nack', { times: 'é' }), { message: /not 'é'$/ })
  await assert.rejects(broker.clock.advance(-1), { message: 'the clock cannot go back: -1 ms' })
  await assert.rejects(broker.clock.advance('soon'), { message: /^'soon' is not a duration/ })
})

test('a vhost ends with its broker', async () => {
  const own = await startBroker()
  const vhost = await own.vhost()
  await own.stop()
  await vhost.delete()
})

test('the login of the broker is that of its vhosts', async (t) => {
  process.env.RABBITMQ_DEFAULT_PASS = 'se:cr/t'
  t.after(() => { delete process.env.RABBITMQ_DEFAULT_PASS })
  const own = await startBroker()
  t.after(() => own.stop())
  const connection = await amqplib.connect((await own.vhost()).url)
  await connection.close()
})

test('a broker without its HTTP API says so', async (t) => {
  const own = await startBroker({ options: ['--no-management'] })
  t.after(() => own.stop())
  await assert.rejects(own.vhost(), /the HTTP API is not served/)
})
