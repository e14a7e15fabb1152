// The scenarios with amqp-connection-manager: a channel wrapper that confirms what it sends, and is set up anew each
// time the connection comes back.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import amqp from "amqp-connection-manager";
import { Inbox, ask, deaths, largeBody, name, play, within, wrongPassword } from "./player.js";

const text = (message) => message.content.toString();

const QUICKLY = { heartbeatIntervalInSeconds: 5, reconnectTimeInSeconds: 0.2 };

async function withConnection(work) {
  const connection = amqp.connect(process.env.AMQP_URL, QUICKLY);
  try {
    await work(connection);
  } finally {
    await connection.close().catch((error) => console.log(String(error)));
  }
}

/** Run work with a wrapper whose channels have been set up, and with its connection. */
const withChannel = (setup, work) =>
  withConnection(async (connection) => {
    const channel = connection.createChannel({ setup });
    channel.on("error", (error) => console.log(String(error)));
    await within(channel.waitForConnect());
    await work(channel, connection);
  });

const declare = (stem, options) => (channel) => channel.assertQueue(name(stem), { exclusive: true, ...options });

async function consume(channel, queue, options) {
  const inbox = new Inbox();
  await channel.consume(queue, inbox.push, options);
  return inbox;
}

/** Expect a setup to fail with this reply code; the manager then begins anew, and so has a connection of its own. */
async function refused(code, setup) {
  await withConnection(async (connection) => {
    const channel = connection.createChannel({ setup });
    const told = new Inbox();
    channel.on("error", told.push);
    assert.equal((await told.next()).code, code);
    await channel.close();
  });
}

async function connect() {
  await withChannel(declare("connect"), async (channel, connection) => {
    await channel.sendToQueue(name("connect"), "hello", { messageId: "m1", headers: { n: 1 } });
    const message = await (await consume(channel, name("connect"), { noAck: true })).next();
    assert.equal(text(message), "hello");
    assert.equal(message.properties.messageId, "m1");
    assert.deepEqual(message.properties.headers, { n: 1 });
    assert.ok(connection.isConnected());
    await channel.close();
  });
}

async function topology() {
  const [events, archive, queue] = ["events", "archive", "topology"].map(name);
  const setup = async (channel) => {
    await channel.assertExchange(events, "topic");
    await channel.assertExchange(archive, "fanout");
    await channel.assertQueue(queue);
    await channel.bindExchange(archive, events, "order.#");
    await channel.bindQueue(queue, archive, "");
  };
  await withChannel(setup, async (channel) => {
    await channel.publish(events, "order.created", "1");
    await channel.unbindExchange(archive, events, "order.#");
    await channel.publish(events, "order.created", "2");
    await channel.unbindQueue(queue, archive, "");
    assert.equal((await channel.purgeQueue(queue)).messageCount, 1);
    await refused(404, (other) => other.checkQueue(name("missing")));
    await refused(406, (other) => other.assertQueue(queue, { durable: false }));
    await channel.deleteQueue(queue);
    await channel.deleteExchange(events);
    await channel.deleteExchange(archive);
  });
}

async function confirms() {
  await withChannel(declare("confirms"), async (channel) => {
    const sent = Array.from({ length: 100 }, () => channel.sendToQueue(name("confirms"), "x", { persistent: true }));
    await within(Promise.all(sent));
    assert.equal((await channel.checkQueue(name("confirms"))).messageCount, 100);
  });
}

async function returns() {
  const told = new Inbox();
  const setup = async (channel) => channel.on("return", told.push);
  await withChannel(setup, async (channel) => {
    await channel.publish("", name("nobody"), "lost", { mandatory: true });
    const returned = await told.next();
    assert.equal(returned.fields.replyCode, 312);
    assert.equal(text(returned), "lost");
  });
}

async function prefetch() {
  await withChannel(declare("consume"), async (channel) => {
    for (let i = 0; i < 10; i++) await channel.sendToQueue(name("consume"), `${i}`);
    const inbox = await consume(channel, name("consume"), { prefetch: 3 });
    await inbox.expect(text, "0", "1");
    const third = await inbox.next();
    await inbox.none();
    channel.ack(third, true);
    await inbox.expect(text, "3", "4", "5");
  });
}

async function requeue() {
  await withChannel(declare("requeue"), async (channel) => {
    const inbox = await consume(channel, name("requeue"));
    await channel.sendToQueue(name("requeue"), "again");
    const first = await inbox.next();
    assert.equal(first.fields.redelivered, false);
    channel.nack(first);
    assert.equal((await inbox.next()).fields.redelivered, true);
  });
}

async function deadLetter() {
  const [work, wait] = [name("work"), name("wait")];
  const setup = async (channel) => {
    await declare("work", { deadLetterExchange: "", deadLetterRoutingKey: wait })(channel);
    await declare("wait", { deadLetterExchange: "", deadLetterRoutingKey: work, messageTtl: 200 })(channel);
  };
  await withChannel(setup, async (channel) => {
    const inbox = await consume(channel, work);
    await channel.sendToQueue(work, "try");
    channel.nack(await inbox.next(), false, false);
    const second = await inbox.next();
    assert.deepEqual(deaths(second.properties.headers), [`expired ${wait} 1`, `rejected ${work} 1`]);
  });
}

async function ttl() {
  const toDead = { deadLetterExchange: "", deadLetterRoutingKey: name("dead") };
  const setup = async (channel) => {
    await declare("dead")(channel);
    await declare("own", toDead)(channel);
    await declare("all", { ...toDead, messageTtl: 200 })(channel);
  };
  await withChannel(setup, async (channel) => {
    const inbox = await consume(channel, name("dead"), { noAck: true });
    await channel.sendToQueue(name("own"), "own", { expiration: 100 });
    await inbox.expect(text, "own");
    await channel.sendToQueue(name("all"), "all");
    await inbox.expect(text, "all");
  });
}

async function priority() {
  await withChannel(declare("priority", { maxPriority: 5 }), async (channel) => {
    for (const one of [1, 5, 3]) await channel.sendToQueue(name("priority"), `${one}`, { priority: one });
    await (await consume(channel, name("priority"), { noAck: true })).expect(text, "5", "3", "1");
  });
}

async function rpc() {
  await withChannel(declare("rpc"), async (server, connection) => {
    const answer = ({ content, properties: { replyTo, correlationId } }) =>
      server.sendToQueue(replyTo, content.toString().toUpperCase(), { correlationId });
    await server.consume(name("rpc"), answer, { noAck: true });
    const client = connection.createChannel();
    const replies = await consume(client, "amq.rabbitmq.reply-to", { noAck: true });
    await client.sendToQueue(name("rpc"), "question", { correlationId: "7", replyTo: "amq.rabbitmq.reply-to" });
    const reply = await replies.next();
    assert.equal(text(reply), "QUESTION");
    assert.equal(reply.properties.correlationId, "7");
  });
}

async function serverNamed() {
  let queue;
  const setup = async (channel) => ({ queue } = await channel.assertQueue("", { exclusive: true }));
  await withChannel(setup, async () => {
    assert.match(queue, /^amq\.gen-/);
    await refused(405, (channel) => channel.checkQueue(queue));
  });
}

/** The wrapper keeps the end of a consumer for itself and consumes again, which fails while there is no queue. */
async function cancel() {
  await withChannel(declare("cancel"), async (channel, connection) => {
    const inbox = new Inbox();
    const watching = connection.createChannel({
      setup: (raw) => raw.consume(name("cancel"), inbox.push),
    });
    await within(watching.waitForConnect());
    await channel.deleteQueue(name("cancel"));
    assert.equal(await inbox.next(), null);
  });
}

async function stream() {
  const queue = name("stream");
  const setup = (channel) => channel.assertQueue(queue, { arguments: { "x-queue-type": "stream" } });
  await withChannel(setup, async (channel, connection) => {
    await within(Promise.all(Array.from({ length: 10 }, (_, i) => channel.sendToQueue(queue, `${i}`))));
    for (const [offset, bodies] of [["first", ["0", "1", "2"]], [7, ["7", "8", "9"]]]) {
      const reader = connection.createChannel();
      const inbox = await consume(reader, queue, { prefetch: 10, arguments: { "x-stream-offset": offset } });
      await inbox.expect(text, ...bodies);
      await reader.close();
    }
    await channel.deleteQueue(queue);
  });
}

async function large() {
  await withChannel(declare("large"), async (channel) => {
    await channel.sendToQueue(name("large"), largeBody());
    const message = await (await consume(channel, name("large"), { noAck: true })).next();
    assert.ok(message.content.equals(largeBody()));
  });
}

/** A manager tries for ever, and tells why each try failed. */
async function tryToConnect(url, connectionOptions) {
  const told = new Inbox();
  const connection = amqp.connect(url, { ...QUICKLY, connectionOptions });
  connection.on("connect", () => told.push("connected"));
  connection.on("connectFailed", ({ err }) => told.push(err));
  try {
    return String(await told.next());
  } finally {
    await connection.close();
  }
}

async function tls() {
  const authority = { ca: [readFileSync(process.env.CA_FILE)] };
  assert.equal(await tryToConnect(process.env.AMQPS_URL, authority), "connected");
  assert.match(await tryToConnect(process.env.AMQPS_URL), /certificate/);
}

async function refusedPassword() {
  assert.match(await tryToConnect(wrongPassword()), /403 \(ACCESS-REFUSED\)/);
}

async function survives(what, reason) {
  const durable = name(`durable-${what}`);
  const news = name(`news-${what}`);
  const setup = async (channel) => {
    await channel.assertQueue(durable);
    await channel.assertQueue(news, { exclusive: true });
  };
  await withChannel(setup, async (channel, connection) => {
    const told = new Inbox();
    connection.on("disconnect", ({ err }) => told.push(err));
    const heard = await consume(channel, news, { noAck: true });
    await channel.sendToQueue(durable, "kept", { persistent: true });
    await ask(what);
    assert.match(String(await told.next()), reason);
    // Kept by the wrapper until its channel is back.
    await within(channel.sendToQueue(news, "after"));
    await heard.expect(text, "after");
    await (await consume(channel, durable, { noAck: true })).expect(text, "kept");
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
  forced_close: () => survives("CLOSE", /320|CONNECTION.FORCED/),
  reconnect: () => survives("RESTART", /close|ECONN/i),
});
