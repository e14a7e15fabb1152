// The scenarios with rabbitmq-client: publishers, consumers and RPC clients that mend themselves, and plain channels
// for the rest.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Connection } from "rabbitmq-client";
import { Inbox, ask, deaths, largeBody, name, play, within, wrongPassword } from "./player.js";

const text = ({ body }) => String(body);

async function withConnection(work) {
  const connection = new Connection({ url: process.env.AMQP_URL, retryLow: 200, retryHigh: 500 });
  connection.on("error", (error) => console.log(String(error)));
  try {
    await within(connection.onConnect());
    await work(connection);
  } finally {
    await within(connection.close());
  }
}

async function withChannel(work) {
  await withConnection(async (connection) => {
    const channel = await connection.acquire();
    channel.on("error", (error) => console.log(String(error)));
    try {
      await work(channel, connection);
    } finally {
      await channel.close().catch((error) => console.log(String(error)));
    }
  });
}

const declare = async (channel, stem, options) =>
  (await channel.queueDeclare({ queue: name(stem), exclusive: true, arguments: options })).queue;

const send = (channel, queue, body) => channel.basicPublish({ routingKey: queue }, body);

async function consume(channel, queue, options) {
  const inbox = new Inbox();
  await channel.basicConsume({ queue, ...options }, inbox.push);
  return inbox;
}

/** Expect the work to fail with this code, on a channel of its own. */
async function refused(connection, code, work) {
  const channel = await connection.acquire();
  await assert.rejects(work(channel), (error) => error.code === code);
}

async function connect() {
  await withChannel(async (channel) => {
    const queue = await declare(channel, "connect");
    await channel.basicPublish({ routingKey: queue, messageId: "m1", headers: { n: 1 } }, { text: "hello" });
    const message = await (await consume(channel, queue, { noAck: true })).next();
    assert.deepEqual(message.body, { text: "hello" });
    assert.equal(message.contentType, "application/json");
    assert.equal(message.messageId, "m1");
    assert.deepEqual(message.headers, { n: 1 });
  });
}

async function topology() {
  await withConnection(async (connection) => {
    const [events, archive, queue] = ["events", "archive", "topology"].map(name);
    await connection.exchangeDeclare({ exchange: events, type: "topic", durable: true });
    await connection.exchangeDeclare({ exchange: archive, type: "fanout", durable: true });
    await connection.queueDeclare({ queue, durable: true });
    await connection.exchangeBind({ source: events, destination: archive, routingKey: "order.#" });
    await connection.queueBind({ queue, exchange: archive });
    const publisher = connection.createPublisher({ confirm: true });
    await publisher.send({ exchange: events, routingKey: "order.created" }, "1");
    await connection.exchangeUnbind({ source: events, destination: archive, routingKey: "order.#" });
    await publisher.send({ exchange: events, routingKey: "order.created" }, "2");
    await publisher.close();
    await connection.queueUnbind({ queue, exchange: archive });
    assert.equal((await connection.queuePurge(queue)).messageCount, 1);
    const passive = { queue: name("missing"), passive: true };
    await refused(connection, "NOT_FOUND", (other) => other.queueDeclare(passive));
    await refused(connection, "PRECONDITION_FAILED", (other) => other.queueDeclare({ queue, durable: false }));
    await connection.queueDelete(queue);
    await connection.exchangeDelete({ exchange: events });
    await connection.exchangeDelete({ exchange: archive });
  });
}

async function confirms() {
  await withConnection(async (connection) => {
    const queue = await declare(connection, "confirms");
    const publisher = connection.createPublisher({ confirm: true });
    await within(Promise.all(Array.from({ length: 100 }, () => publisher.send({ routingKey: queue, durable: true }, "x"))));
    assert.equal((await connection.queueDeclare({ queue, passive: true })).messageCount, 100);
    await publisher.close();
  });
}

async function returns() {
  await withConnection(async (connection) => {
    const told = new Inbox();
    const publisher = connection.createPublisher({ confirm: true });
    publisher.on("basic.return", told.push);
    await publisher.send({ routingKey: name("nobody"), mandatory: true }, "lost");
    const returned = await told.next();
    assert.equal(returned.replyCode, 312);
    assert.equal(returned.replyText, "NO_ROUTE");
    assert.equal(text(returned), "lost");
    await publisher.close();
  });
}

async function prefetch() {
  await withChannel(async (channel) => {
    const queue = await declare(channel, "consume");
    for (let i = 0; i < 10; i++) await send(channel, queue, `${i}`);
    await channel.basicQos({ prefetchCount: 3 });
    const inbox = await consume(channel, queue);
    await inbox.expect(text, "0", "1");
    const third = await inbox.next();
    await inbox.none();
    channel.basicAck({ deliveryTag: third.deliveryTag, multiple: true });
    await inbox.expect(text, "3", "4", "5");
  });
}

async function requeue() {
  await withConnection(async (connection) => {
    const inbox = new Inbox();
    const queue = await declare(connection, "requeue");
    const consumer = connection.createConsumer({ queue, queueOptions: { exclusive: true } }, async (message) => {
      inbox.push(message);
      if (!message.redelivered) throw new Error("once more, please");
    });
    consumer.on("error", (error) => console.log(String(error)));
    const publisher = connection.createPublisher({ confirm: true });
    await publisher.send(queue, "again");
    await inbox.expect((message) => message.redelivered, false, true);
    await consumer.close();
    await publisher.close();
  });
}

async function deadLetter() {
  await withConnection(async (connection) => {
    const [work, wait] = [name("work"), name("wait")];
    const inbox = new Inbox();
    const back = { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": work, "x-message-ttl": 200 };
    await declare(connection, "wait", back);
    const toWait = { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": wait };
    const consumer = connection.createConsumer(
      { queue: work, queueOptions: { exclusive: true, arguments: toWait }, requeue: false },
      async (message) => {
        inbox.push(message);
        if (!message.headers?.["x-death"]) throw new Error("later, please");
      },
    );
    consumer.on("error", (error) => console.log(String(error)));
    await within(new Promise((resolve) => consumer.on("ready", resolve)));
    const publisher = connection.createPublisher({ confirm: true });
    await publisher.send(work, "try");
    await inbox.next();
    assert.deepEqual(deaths((await inbox.next()).headers), [`expired ${wait} 1`, `rejected ${work} 1`]);
    await consumer.close();
    await publisher.close();
  });
}

async function ttl() {
  await withChannel(async (channel) => {
    const dead = await declare(channel, "dead");
    const toDead = { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead };
    const own = await declare(channel, "own", toDead);
    const all = await declare(channel, "all", { ...toDead, "x-message-ttl": 200 });
    const inbox = await consume(channel, dead, { noAck: true });
    await channel.basicPublish({ routingKey: own, expiration: "100" }, "own");
    await inbox.expect(text, "own");
    await send(channel, all, "all");
    await inbox.expect(text, "all");
  });
}

async function priority() {
  await withChannel(async (channel) => {
    const queue = await declare(channel, "priority", { "x-max-priority": 5 });
    for (const one of [1, 5, 3]) await channel.basicPublish({ routingKey: queue, priority: one }, `${one}`);
    await (await consume(channel, queue, { noAck: true })).expect(text, "5", "3", "1");
  });
}

async function rpc() {
  await withConnection(async (connection) => {
    const queue = name("rpc");
    const server = connection.createConsumer({ queue, queueOptions: { exclusive: true } }, (question, reply) =>
      reply(question.body.toUpperCase()),
    );
    await within(new Promise((resolve) => server.on("ready", resolve)));
    const client = connection.createRPCClient({ confirm: true });
    assert.equal((await client.send(queue, "question")).body, "QUESTION");
    await client.close();
    await server.close();
  });
}

async function serverNamed() {
  await withConnection(async (connection) => {
    const { queue } = await connection.queueDeclare({ exclusive: true });
    assert.match(queue, /^amq\.gen-/);
    await withConnection((other) =>
      refused(other, "RESOURCE_LOCKED", (channel) => channel.queueDeclare({ queue, passive: true })),
    );
  });
}

async function cancel() {
  await withChannel(async (channel) => {
    const cancelled = new Inbox();
    const queue = await declare(channel, "cancel");
    channel.on("basic.cancel", cancelled.push);
    const { consumerTag } = await channel.basicConsume({ queue }, () => {});
    await channel.queueDelete(queue);
    assert.equal(await cancelled.next(), consumerTag);
  });
}

async function stream() {
  await withConnection(async (connection) => {
    const queue = name("stream");
    await connection.queueDeclare({ queue, durable: true, arguments: { "x-queue-type": "stream" } });
    const publisher = connection.createPublisher({ confirm: true });
    for (let i = 0; i < 10; i++) await publisher.send(queue, `${i}`);
    await publisher.close();
    for (const [offset, bodies] of [["first", ["0", "1", "2"]], [7, ["7", "8", "9"]]]) {
      const reader = await connection.acquire();
      await reader.basicQos({ prefetchCount: 10 });
      const inbox = await consume(reader, queue, { arguments: { "x-stream-offset": offset } });
      await inbox.expect(text, ...bodies);
      await reader.close();
    }
    await connection.queueDelete(queue);
  });
}

async function large() {
  await withChannel(async (channel) => {
    const queue = await declare(channel, "large");
    await send(channel, queue, largeBody());
    const { body } = await (await consume(channel, queue, { noAck: true })).next();
    assert.ok(body.equals(largeBody()));
  });
}

/** A connection tries for ever, and tells why each try failed. */
async function tryToConnect(options) {
  const told = new Inbox();
  const connection = new Connection({ retryLow: 200, ...options });
  connection.on("connection", () => told.push("connected"));
  connection.on("error", told.push);
  try {
    return await told.next();
  } finally {
    await connection.close();
  }
}

async function tls() {
  const url = process.env.AMQPS_URL;
  assert.equal(await tryToConnect({ url, tls: { ca: [readFileSync(process.env.CA_FILE)] } }), "connected");
  assert.match(String(await tryToConnect({ url })), /certificate/);
}

async function refusedPassword() {
  assert.equal((await tryToConnect({ url: wrongPassword() })).code, "ACCESS_REFUSED");
}

async function survives(what, reason) {
  await withConnection(async (connection) => {
    const [heard, told] = [new Inbox(), new Inbox()];
    const durable = name(`durable-${what}`);
    const news = name(`news-${what}`);
    connection.on("error", told.push);
    const ready = new Inbox();
    const consumer = connection.createConsumer({ queue: news, queueOptions: { exclusive: true } }, heard.push);
    consumer.on("ready", () => ready.push("ready"));
    consumer.on("error", (error) => console.log(String(error)));
    await ready.next();
    const queues = [{ queue: durable, durable: true }];
    const publisher = connection.createPublisher({ confirm: true, maxAttempts: 5, queues });
    await publisher.send({ routingKey: durable, durable: true }, "kept");
    await ask(what);
    assert.match((await told.next()).code, reason);
    await ready.next();
    await publisher.send(news, "after");
    await heard.expect(text, "after");
    assert.equal(text(await connection.basicGet({ queue: durable, noAck: true })), "kept");
    await consumer.close();
    await publisher.close();
  });
}

await play({
  connect,
  topology,
  confirms,
  returns,
  consume: prefetch,
  requeue,
  dead_letter: deadLetter,
  ttl,
  priority,
  rpc,
  server_named: serverNamed,
  cancel,
  stream,
  large,
  tls,
  wrong_password: refusedPassword,
  forced_close: () => survives("CLOSE", /CONNECTION_FORCED/),
  reconnect: () => survives("RESTART", /CONNECTION_FORCED/),
});
