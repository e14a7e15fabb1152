// The scenarios with @cloudamqp/amqp-client: sessions that reconnect, and channels for what only they can do.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { AMQPClient, AMQPError, AMQPSession } from "@cloudamqp/amqp-client";
import { Inbox, ask, deaths, largeBody, name, play, within, wrongPassword } from "./player.js";

const text = (message) => message.bodyString();

async function withSession(work, options) {
  const session = await AMQPSession.connect(process.env.AMQP_URL, { reconnectInterval: 200, ...options });
  try {
    await work(session);
  } finally {
    await session.stop();
  }
}

async function withChannel(work) {
  const connection = await new AMQPClient(process.env.AMQP_URL).connect();
  try {
    await work(await connection.channel(), connection);
  } finally {
    await connection.close();
  }
}

const declare = async (channel, stem, options) =>
  (await channel.queueDeclare(name(stem), { durable: false, exclusive: true }, options)).name;

const send = (channel, queue, body, properties) => channel.basicPublish("", queue, body, properties);

async function consume(channel, queue, options) {
  const inbox = new Inbox();
  await channel.basicConsume(queue, { noAck: false, ...options }, inbox.push);
  return inbox;
}

/** Expect the work to end a new channel with this reply code. */
async function refused(connection, code, work) {
  const channel = await connection.channel();
  await assert.rejects(work(channel), (error) => error instanceof AMQPError && error.message.includes(code));
}

async function connect() {
  await withSession(async (session) => {
    const queue = await session.queue(name("connect"), { durable: false, exclusive: true });
    await queue.publish("hello", { messageId: "m1", headers: { n: 1 } });
    const message = await queue.get({ noAck: true });
    assert.equal(text(message), "hello");
    assert.equal(message.properties.messageId, "m1");
    assert.deepEqual(message.properties.headers, { n: 1 });
  });
}

async function topology() {
  await withChannel(async (channel, connection) => {
    const [events, archive, queue] = ["events", "archive", "topology"].map(name);
    await channel.exchangeDeclare(events, "topic");
    await channel.exchangeDeclare(archive, "fanout");
    await channel.queueDeclare(queue);
    await channel.exchangeBind(archive, events, "order.#");
    await channel.queueBind(queue, archive, "");
    await channel.basicPublish(events, "order.created", "1");
    await channel.exchangeUnbind(archive, events, "order.#");
    await channel.basicPublish(events, "order.created", "2");
    await channel.queueUnbind(queue, archive, "");
    assert.equal((await channel.queuePurge(queue)).messageCount, 1);
    await refused(connection, "404", (other) => other.queueDeclare(name("missing"), { passive: true }));
    await refused(connection, "406", (other) => other.queueDeclare(queue, { durable: false }));
    await channel.queueDelete(queue);
    await channel.exchangeDelete(events);
    await channel.exchangeDelete(archive);
  });
}

async function confirms() {
  await withSession(async (session) => {
    const queue = await session.queue(name("confirms"), { durable: false, exclusive: true });
    await within(Promise.all(Array.from({ length: 100 }, () => queue.publish("x", { deliveryMode: 2 }))));
    assert.equal((await queue.purge()).messageCount, 100);
  });
}

async function returns() {
  const told = new Inbox();
  await withSession(
    async (session) => {
      const exchange = await session.directExchange("amq.direct");
      await exchange.publish("lost", { routingKey: name("nobody"), mandatory: true });
      const returned = await told.next();
      assert.equal(returned.replyCode, 312);
      assert.equal(returned.replyText, "NO_ROUTE");
      assert.equal(text(returned), "lost");
    },
    { onreturn: told.push },
  );
}

async function prefetch() {
  await withChannel(async (channel) => {
    const queue = await declare(channel, "consume");
    for (let i = 0; i < 10; i++) await send(channel, queue, `${i}`);
    await channel.prefetch(3);
    const inbox = await consume(channel, queue);
    await inbox.expect(text, "0", "1");
    const third = await inbox.next();
    await inbox.none();
    await third.ack(true);
    await inbox.expect(text, "3", "4", "5");
  });
}

async function requeue() {
  await withSession(async (session) => {
    const inbox = new Inbox();
    const queue = await session.queue(name("requeue"), { durable: false, exclusive: true });
    await queue.subscribe({ requeueOnNack: true }, (message) => {
      inbox.push(message.redelivered);
      if (!message.redelivered) throw new Error("once more, please");
    });
    await queue.publish("again");
    assert.equal(await inbox.next(), false);
    assert.equal(await inbox.next(), true);
  });
}

async function deadLetter() {
  await withSession(async (session) => {
    const [work, wait] = [name("work"), name("wait")];
    const inbox = new Inbox();
    const queue = await session.queue(work, {
      durable: false,
      exclusive: true,
      arguments: { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": wait },
    });
    await session.queue(wait, {
      durable: false,
      exclusive: true,
      arguments: { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": work, "x-message-ttl": 200 },
    });
    await queue.subscribe({ requeueOnNack: false }, (message) => {
      inbox.push(message);
      if (!message.properties.headers?.["x-death"]) throw new Error("later, please");
    });
    await queue.publish("try");
    await inbox.next();
    assert.deepEqual(deaths((await inbox.next()).properties.headers), [`expired ${wait} 1`, `rejected ${work} 1`]);
  });
}

async function ttl() {
  await withChannel(async (channel) => {
    const dead = await declare(channel, "dead");
    const toDead = { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead };
    const own = await declare(channel, "own", toDead);
    const all = await declare(channel, "all", { ...toDead, "x-message-ttl": 200 });
    const inbox = await consume(channel, dead, { noAck: true });
    await send(channel, own, "own", { expiration: "100" });
    await inbox.expect(text, "own");
    await send(channel, all, "all");
    await inbox.expect(text, "all");
  });
}

async function priority() {
  await withChannel(async (channel) => {
    const queue = await declare(channel, "priority", { "x-max-priority": 5 });
    for (const one of [1, 5, 3]) await send(channel, queue, `${one}`, { priority: one });
    await (await consume(channel, queue, { noAck: true })).expect(text, "5", "3", "1");
  });
}

async function rpc() {
  await withSession(async (session) => {
    const server = await session.rpcServer(name("rpc"), (question) => text(question).toUpperCase());
    const reply = await session.rpcCall(name("rpc"), "question", { timeout: 10_000 });
    assert.equal(text(reply), "QUESTION");
    await server.close();
  });
}

async function serverNamed() {
  await withChannel(async (channel) => {
    const queue = await channel.queueDeclare("", { exclusive: true });
    assert.match(queue.name, /^amq\.gen-/);
    await withChannel((_, other) =>
      refused(other, "405", (refusing) => refusing.queueDeclare(queue.name, { passive: true })),
    );
  });
}

async function cancel() {
  await withChannel(async (channel) => {
    const queue = await declare(channel, "cancel");
    const consumer = await channel.basicConsume(queue, {}, () => {});
    const ended = consumer.wait();
    await Promise.all([assert.rejects(within(ended), /cancel/i), channel.queueDelete(queue)]);
  });
}

async function stream() {
  await withChannel(async (channel, connection) => {
    const queue = name("stream");
    await channel.queueDeclare(queue, { durable: true }, { "x-queue-type": "stream" });
    await channel.confirmSelect();
    for (let i = 0; i < 10; i++) await send(channel, queue, `${i}`);
    for (const [offset, bodies] of [["first", ["0", "1", "2"]], [7, ["7", "8", "9"]]]) {
      const reader = await connection.channel();
      await reader.prefetch(10);
      const inbox = await consume(reader, queue, { args: { "x-stream-offset": offset } });
      await inbox.expect(text, ...bodies);
      await reader.close();
    }
    await channel.queueDelete(queue);
  });
}

async function large() {
  await withChannel(async (channel) => {
    const queue = await declare(channel, "large");
    await send(channel, queue, largeBody());
    const message = await (await consume(channel, queue, { noAck: true })).next();
    assert.ok(largeBody().equals(message.rawBody ?? message.body));
  });
}

async function tls() {
  const connection = new AMQPClient(process.env.AMQPS_URL, { ca: readFileSync(process.env.CA_FILE) });
  await connection.connect();
  await connection.close();
  await assert.rejects(new AMQPClient(process.env.AMQPS_URL).connect(), /certificate/);
}

async function refusedPassword() {
  await assert.rejects(new AMQPClient(wrongPassword()).connect(), (error) =>
    error instanceof AMQPError && error.message.includes("403"),
  );
}

async function survives(what, reason) {
  const [told, heard] = [new Inbox(), new Inbox()];
  const options = {
    onconnect: () => told.push("connected"),
    ondisconnect: (error) => told.push(`disconnected: ${error?.message}`),
  };
  await withSession(async (session) => {
    assert.equal(await told.next(), "connected");
    const durable = await session.queue(name(`durable-${what}`));
    const news = await session.queue(name(`news-${what}`));
    await news.subscribe({ prefetch: 10 }, heard.push);
    await durable.publish("kept", { deliveryMode: 2 });
    await ask(what);
    assert.match(await told.next(), reason);
    assert.equal(await told.next(), "connected");
    await news.publish("after");
    await heard.expect(text, "after");
    assert.equal(text(await durable.get({ noAck: true })), "kept");
    await news.delete();
    await durable.delete();
  }, options);
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
  forced_close: () => survives("CLOSE", /320|CONNECTION.FORCED/),
  reconnect: () => survives("RESTART", /disconnected/),
});
