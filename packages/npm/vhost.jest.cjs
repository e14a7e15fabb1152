const amqplib = require('amqplib')

const { startBroker } = require('./index.js')

let broker
let vhost
beforeAll(async () => { broker = await startBroker() })
afterAll(() => broker.stop())
beforeEach(async () => { vhost = await broker.vhost() })
afterEach(() => vhost.delete())

test.each(['order 1', 'order 2'])('the test of %s sees its own queue alone', async (body) => {
  const connection = await amqplib.connect(vhost.url)
  const channel = await connection.createConfirmChannel()
  expect((await channel.assertQueue('orders')).messageCount).toBe(0)
  channel.sendToQueue('orders', Buffer.from(body))
  await channel.waitForConfirms()
  await vhost.faults.add('confirm_nack', { times: 1 })
  channel.sendToQueue('orders', Buffer.from(body))
  await expect(channel.waitForConfirms()).rejects.toThrow('nacked')
  await expect(vhost.faults.add('confirm_nak')).rejects.toThrow("unknown action 'confirm_nak'")
  await connection.close()
})
