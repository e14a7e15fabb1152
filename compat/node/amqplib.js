// The scenarios with amqplib, and its own recovery of connections.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import amqp from "amqplib";
import { Inbox, ask, deaths, largeBody, name, play, within, wrongPassword } from "./player.js";

const text = (message) => message.content.toString();

async function withConnection(work) {
  const connection = await amqp.connect(process.env.AMQP_URL);
  connection.on("error", (error) => console.log(String(error)));
  try {
    await work(connection);
  } finally {
    await connection.close().catch((error) => console.log(String(error)));
  }
}

const withChannel = (work) => withConnection(async (connection) => work(await connection.createChannel(), connection));
const withConfirms = (work) =>
  withConnection(async (connection) => work(await connection.createConfirmChannel(), connection));

async function consume(channel, queue, options) {
  const inbox = new Inbox();
  await channel.consume(queue, inbox.push, options);
  return inbox;
}

const exclusive = async (channel, stem, options) =>
  (await channel.assertQueue(name(stem), { exclusive: true, ...options })).queue;

/** Expect the work to end a new channel with this reply code. */
async function refused(connection, code, work) {
  const channel = await connection.createChannel();
  channel.on("error", () => {});
  await assert.rejects(work(channel), (error) => error.code === code);
}

async function connect() {
  await withChannel(async (channel, connection) => {
    const queue = await exclusive(channel, "connect");
    channel.sendToQueue(queue, Buffer.from("hello"), { messageId: "m1", headers: { n: 1 } });
    const message = await (await consume(channel, queue, { noAck: true })).next();
    assert.equal(text(message), "hello");
    assert.equal(message.properties.messageId, "m1");
    assert.deepEqual(message.properties.headers, { n: 1 });
    assert.equal(connection.connection.serverProperties.product, "RabbitMQ");
    await channel.close();
  });
}

async function topology() {
  await withChannel(async (channel, connection) => {
    const [events, archive, queue] = ["events", "archive", "topology"].map(name);
    await channel.assertExchange(events, "topic");
    await channel.assertExchange(archive, "fanout");
    await channel.assertQueue(queue);
    await channel.bindExchange(archive, events, "order.#");
    await channel.bindQueue(queue, archive, "");
    channel.publish(events, "order.created", Buffer.from("1"));
    await channel.unbindExchange(archive, events, "order.#");
    channel.publish(events, "order.created", Buffer.from("2"));
    await channel.unbindQueue(queue, archive, "");
    assert.equal((await channel.purgeQueue(queue)).messageCount, 1);
    await refused(connection, 404, (other) => other.checkQueue(name("missing")));
    await refused(connection, 406, (other) => other.assertQueue(queue, { durable: false }));
    await channel.deleteQueue(queue);
    await channel.deleteExchange(events);
    await channel.deleteExchange(archive);
  });
}

async function confirms() {
  await withConfirms(async (channel) => {
    const queue = await exclusive(channel, "confirms");
    for (let i = 0; i < 100; i++) channel.sendToQueue(queue, Buffer.from("x"), { persistent: true });
    await within(channel.waitForConfirms());
    assert.equal((await channel.checkQueue(queue)).messageCount, 100);
  });
}

async function returns() {
  await withConfirms(async (channel) => {
    const told = new Inbox();
    channel.on("return", told.push);
    channel.publish("", name("nobody"), Buffer.from("lost"), { mandatory: true }, (error) => told.push(error ?? "ack"));
    const returned = await told.next();
    assert.equal(returned.fields.replyCode, 312);
    assert.equal(returned.fields.replyText, "NO_ROUTE");
    assert.equal(text(returned), "lost");
    assert.equal(await told.next(), "ack");
  });
}

async function prefetch() {
  await withChannel(async (channel) => {
    const queue = await exclusive(channel, "consume");
    for (let i = 0; i < 10; i++) channel.sendToQueue(queue, Buffer.from(`${i}`));
    await channel.prefetch(3);
    const inbox = await consume(channel, queue);
    await inbox.expect(text, "0", "1");
    const third = await inbox.next();
    await inbox.none();
    channel.ack(third, true);
    await inbox.expect(text, "3", "4", "5");
  });
}

async function requeue() {
  await withChannel(async (channel) => {
    const queue = await exclusive(channel, "requeue");
    const inbox = await consume(channel, queue);
    channel.sendToQueue(queue, Buffer.from("again"));
    const first = await inbox.next();
    assert.equal(first.fields.redelivered, false);
    channel.nack(first);
    assert.equal((await inbox.next()).fields.redelivered, true);
  });
}

async function deadLetter() {
  await withChannel(async (channel) => {
    const [work, wait] = [name("work"), name("wait")];
    await exclusive(channel, "work", { deadLetterExchange: "", deadLetterRoutingKey: wait });
    await exclusive(channel, "wait", { deadLetterExchange: "", deadLetterRoutingKey: work, messageTtl: 200 });
    const inbox = await consume(channel, work);
    channel.sendToQueue(work, Buffer.from("try"));
    channel.reject(await inbox.next(), false);
    const second = await inbox.next();
    assert.deepEqual(deaths(second.properties.headers), [`expired ${wait} 1`, `rejected ${work} 1`]);
  });
}

async function ttl() {
  await withChannel(async (channel) => {
    const dead = await exclusive(channel, "dead");
    const toDead = { deadLetterExchange: "", deadLetterRoutingKey: dead };
    const own = await exclusive(channel, "own", toDead);
    const all = await exclusive(channel, "all", { ...toDead, messageTtl: 200 });
    const inbox = await consume(channel, dead, { noAck: true });
    channel.sendToQueue(own, Buffer.from("own"), { expiration: 100 });
    await inbox.expect(text, "own");
    channel.sendToQueue(all, Buffer.from("all"));
    await inbox.expect(text, "all");
  });
}

async function priority() {
  await withChannel(async (channel) => {
    const queue = await exclusive(channel, "priority", { maxPriority: 5 });
    for (const one of [1, 5, 3]) channel.sendToQueue(queue, Buffer.from(`${one}`), { priority: one });
    await (await consume(channel, queue, { noAck: true })).expect(text, "5", "3", "1");
  });
}

async function rpc() {
  await withConnection(async (connection) => {
    const [server, client] = [await connection.createChannel(), await connection.createChannel()];
    const queue = await exclusive(server, "rpc");
    await server.consume(
      queue,
      ({ content, properties: { replyTo, correlationId } }) =>
        server.sendToQueue(replyTo, Buffer.from(content.toString().toUpperCase()), { correlationId }),
      { noAck: true },
    );
    const replies = await consume(client, "amq.rabbitmq.reply-to", { noAck: true });
    client.sendToQueue(queue, Buffer.from("question"), { correlationId: "7", replyTo: "amq.rabbitmq.reply-to" });
    const reply = await replies.next();
    assert.equal(text(reply), "QUESTION");
    assert.equal(reply.properties.correlationId, "7");
  });
}

async function serverNamed() {
  await withChannel(async (channel) => {
    const { queue } = await channel.assertQueue("", { exclusive: true });
    assert.match(queue, /^amq\.gen-/);
    await withConnection((other) => refused(other, 405, (refusing) => refusing.checkQueue(queue)));
  });
}

async function cancel() {
  await withChannel(async (channel) => {
    const queue = await exclusive(channel, "cancel");
    const inbox = await consume(channel, queue);
    await channel.deleteQueue(queue);
    assert.equal(await inbox.next(), null);
  });
}

async function stream() {
  await withConfirms(async (channel, connection) => {
    const { queue } = await channel.assertQueue(name("stream"), { arguments: { "x-queue-type": "stream" } });
    for (let i = 0; i < 10; i++) channel.sendToQueue(queue, Buffer.from(`${i}`));
    await within(channel.waitForConfirms());
    for (const [offset, bodies] of [["first", ["0", "1", "2"]], [7, ["7", "8", "9"]]]) {
      const reader = await connection.createChannel();
      await reader.prefetch(10);
      const inbox = await consume(reader, queue, { arguments: { "x-stream-offset": offset } });
      await inbox.expect(text, ...bodies);
      await reader.close();
    }
    await channel.deleteQueue(queue);
  });
}

async function large() {
  await withChannel(async (channel) => {
    const queue = await exclusive(channel, "large");
    channel.sendToQueue(queue, largeBody());
    const message = await (await consume(channel, queue, { noAck: true })).next();
    assert.ok(message.content.equals(largeBody()));
  });
}

async function tls() {
  const connection = await amqp.connect(process.env.AMQPS_URL, { ca: [readFileSync(process.env.CA_FILE)] });
  await connection.createChannel();
  await connection.close();
  await assert.rejects(amqp.connect(process.env.AMQPS_URL), /certificate/);
}

async function refusedPassword() {
  await assert.rejects(amqp.connect(wrongPassword()), /403 \(ACCESS-REFUSED\)/);
}

/** A connection that amqplib opens anew, and its `setup` that declares and consumes each time. */
async function survives(what, reason) {
  const [heard, told] = [new Inbox(), new Inbox()];
  const durable = name(`durable-${what}`);
  const news = name(`news-${what}`);
  const connection = await amqp.connect(process.env.AMQP_URL, {
    recovery: {
      initialDelay: 200,
      setup: async (model) => {
        const channel = await model.createChannel();
        await channel.assertQueue(news, { exclusive: true });
        await channel.consume(news, heard.push, { noAck: true });
        told.push("set up");
      },
    },
  });
  connection.on("error", (error) => console.log(String(error)));
  connection.on("disconnect", told.push);
  try {
    assert.equal(await told.next(), "set up");
    const publisher = await connection.createConfirmChannel();
    await publisher.assertQueue(durable);
    publisher.sendToQueue(durable, Buffer.from("kept"), { persistent: true });
    await within(publisher.waitForConfirms());
    await ask(what);
    assert.match(String(await told.next()), reason);
    assert.equal(await told.next(), "set up");
    const channel = await connection.createChannel();
    channel.sendToQueue(news, Buffer.from("after"));
    await heard.expect(text, "after");
    await (await consume(channel, durable, { noAck: true })).expect(text, "kept");
  } finally {
    await connection.close();
  }
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
  reconnect: () => survives("RESTART", /close|ECONN/i),
});
