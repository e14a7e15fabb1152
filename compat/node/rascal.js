// The scenarios with rascal: everything is configured, and subscriptions and publications survive what happens.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import Rascal from "rascal";
import { Inbox, Unsupported, ask, deaths, largeBody, name, play, within, wrongPassword } from "./player.js";

const content = (received) => String(received.content);

const retry = { min: 200, max: 500, strategy: "linear" };

/** Run work with a broker for one vhost that has these queues, exchanges and bindings. */
async function withBroker(vhost, work, connection) {
  const url = process.env.AMQP_URL;
  const vhosts = { "/": { connection: { url, retry, ...connection }, ...vhost } };
  const broker = await Rascal.BrokerAsPromised.create(Rascal.withDefaultConfig({ vhosts }));
  broker.on("error", (error) => console.log(String(error)));
  try {
    await work(broker);
  } finally {
    await broker.shutdown();
  }
}

/** Queues by the stems of their names, gone with their connection. */
const queues = (stems) => ({
  queues: Object.fromEntries(
    Object.entries(stems).map(([stem, queueArguments]) => [
      name(stem),
      { options: { durable: false, exclusive: true, arguments: queueArguments } },
    ]),
  ),
});

/** Publish, and wait until the broker has it. */
async function publish(broker, publication, message, overrides) {
  const session = await broker.publish(publication, message, overrides);
  await within(
    new Promise((resolve, reject) => {
      session.on("success", resolve);
      session.on("error", reject);
      session.on("return", (returned) => console.log("returned", returned.fields.replyCode));
    }),
  );
}

const send = (broker, queue, message, options) => publish(broker, `/${queue}`, message, { options });

/** Subscribe to a queue; each message comes with its content and the function that settles it. */
async function consume(broker, queue, overrides) {
  const inbox = new Inbox();
  // Otherwise the broker's shutdown waits for unsettled messages.
  const subscription = await broker.subscribe(`/${queue}`, { retry, closeTimeout: 100, ...overrides });
  subscription.on("error", (error) => console.log(String(error)));
  subscription.on("message", (message, parsed, ackOrNack) => inbox.push({ message, content: parsed, ackOrNack }));
  await within(new Promise((resolve) => subscription.on("subscribed", resolve)));
  return { inbox, subscription };
}

async function connect() {
  await withBroker(queues({ connect: {} }), async (broker) => {
    const { inbox } = await consume(broker, name("connect"));
    await send(broker, name("connect"), { text: "hello" }, { messageId: "m1", headers: { n: 1 } });
    const received = await inbox.next();
    assert.deepEqual(received.content, { text: "hello" });
    assert.equal(received.message.properties.messageId, "m1");
    assert.equal(received.message.properties.headers.n, 1);
    received.ackOrNack();
  });
}

async function topology() {
  const [events, archive, queue] = ["events", "archive", "topology"].map(name);
  const vhost = {
    exchanges: { [events]: { type: "topic" }, [archive]: { type: "fanout" } },
    queues: { [queue]: {} },
    bindings: {
      one: { source: events, destination: archive, destinationType: "exchange", bindingKey: "order.#" },
      two: { source: archive, destination: queue },
    },
  };
  await withBroker(vhost, async (broker) => {
    await publish(broker, `/${events}`, "1", "order.created");
    await (await consume(broker, queue)).inbox.expect(content, "1");
    const missing = { queues: { [name("missing")]: { assert: false, check: true } } };
    await assert.rejects(withBroker(missing, () => {}), /404/);
    await assert.rejects(withBroker({ queues: { [queue]: { options: { durable: false } } } }, () => {}), /406/);
    await broker.nuke();
    await assert.rejects(withBroker({ queues: { [queue]: { assert: false, check: true } } }, () => {}), /404/);
  });
}

async function confirms() {
  await withBroker(queues({ confirms: {} }), async (broker) => {
    await Promise.all(Array.from({ length: 100 }, () => send(broker, name("confirms"), "x")));
  });
}

async function returns() {
  await withBroker({ exchanges: { [name("nobody")]: {} } }, async (broker) => {
    const told = new Inbox();
    const session = await broker.publish(`/${name("nobody")}`, "lost", "anywhere"); // mandatory by default
    session.on("return", told.push).on("success", () => told.push("success"));
    const [first, second] = [await told.next(), await told.next()];
    const returned = first === "success" ? second : first;
    assert.equal(returned.fields.replyCode, 312);
    assert.equal(String(returned.content), "lost");
    await broker.nuke();
  });
}

async function prefetch() {
  await withBroker(queues({ consume: {} }), async (broker) => {
    for (let i = 0; i < 10; i++) await send(broker, name("consume"), `${i}`);
    const { inbox } = await consume(broker, name("consume"), { prefetch: 3 });
    await inbox.expect(content, "0", "1");
    const third = await inbox.next();
    await inbox.none();
    third.ackOrNack(null, { all: true });
    await inbox.expect(content, "3", "4", "5");
  });
}

async function requeue() {
  await withBroker(queues({ requeue: {} }), async (broker) => {
    const { inbox } = await consume(broker, name("requeue"));
    await send(broker, name("requeue"), "again");
    const first = await inbox.next();
    assert.equal(first.message.fields.redelivered, false);
    first.ackOrNack(new Error("once more, please"), { strategy: "nack", requeue: true });
    const second = await inbox.next();
    assert.equal(second.message.fields.redelivered, true);
    second.ackOrNack();
  });
}

async function deadLetter() {
  const [work, wait] = [name("work"), name("wait")];
  const vhost = queues({
    work: { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": wait },
    wait: { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": work, "x-message-ttl": 200 },
  });
  await withBroker(vhost, async (broker) => {
    const { inbox } = await consume(broker, work);
    await send(broker, work, "try");
    (await inbox.next()).ackOrNack(new Error("later, please"), { strategy: "nack" });
    const second = await inbox.next();
    assert.deepEqual(deaths(second.message.properties.headers), [`expired ${wait} 1`, `rejected ${work} 1`]);
    second.ackOrNack();
  });
}

async function ttl() {
  const toDead = { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": name("dead") };
  const vhost = queues({ dead: {}, own: toDead, all: { ...toDead, "x-message-ttl": 200 } });
  await withBroker(vhost, async (broker) => {
    const { inbox } = await consume(broker, name("dead"), { options: { noAck: true } });
    await send(broker, name("own"), "own", { expiration: 100 });
    await inbox.expect(content, "own");
    await send(broker, name("all"), "all");
    await inbox.expect(content, "all");
  });
}

async function priority() {
  await withBroker(queues({ priority: { "x-max-priority": 5 } }), async (broker) => {
    for (const one of [1, 5, 3]) await send(broker, name("priority"), `${one}`, { priority: one });
    const { inbox } = await consume(broker, name("priority"), { options: { noAck: true } });
    await inbox.expect(content, "5", "3", "1");
  });
}

async function rpc() {
  throw new Unsupported("it publishes on other channels than those it consumes on");
}

async function serverNamed() {
  throw new Unsupported("every queue has the name that it is configured with");
}

async function cancel() {
  const vhost = { queues: { [name("cancel")]: {} } };
  await withBroker(vhost, async (broker) => {
    const { subscription } = await consume(broker, name("cancel"), { retry: false });
    const told = new Inbox();
    subscription.on("cancelled", told.push);
    await withBroker(vhost, (other) => other.nuke());
    assert.match(String(await told.next()), /cancelled/);
  });
}

async function stream() {
  const queue = name("stream");
  const vhost = { queues: { [queue]: { options: { arguments: { "x-queue-type": "stream" } } } } };
  await withBroker(vhost, async (broker) => {
    for (let i = 0; i < 10; i++) await send(broker, queue, `${i}`);
    for (const [offset, bodies] of [["first", [..."0123456789"]], [7, ["7", "8", "9"]]]) {
      const options = { arguments: { "x-stream-offset": offset } };
      const { inbox, subscription } = await consume(broker, queue, { prefetch: 10, options });
      for (const body of bodies) {
        const received = await inbox.next();
        assert.equal(content(received), body);
        received.ackOrNack();
      }
      await subscription.cancel();
    }
    await broker.nuke();
  });
}

async function large() {
  await withBroker(queues({ large: {} }), async (broker) => {
    const { inbox } = await consume(broker, name("large"));
    await send(broker, name("large"), largeBody());
    const received = await inbox.next();
    assert.ok(received.content.equals(largeBody()));
    received.ackOrNack();
  });
}

async function tls() {
  const socketOptions = { ca: [readFileSync(process.env.CA_FILE)] };
  await withBroker(queues({ tls: {} }), (broker) => send(broker, name("tls"), "secret"), {
    url: process.env.AMQPS_URL,
    socketOptions,
  });
  await assert.rejects(withBroker({}, () => {}, { url: process.env.AMQPS_URL }), /certificate/);
}

async function refusedPassword() {
  await assert.rejects(withBroker({}, () => {}, { url: wrongPassword() }), /403 \(ACCESS-REFUSED\)|ACCESS_REFUSED/);
}

async function survives(what, reason) {
  const durable = name(`durable-${what}`);
  const news = name(`news-${what}`);
  const vhost = { queues: { [durable]: {}, [news]: { options: { durable: false } } } };
  await withBroker(vhost, async (broker) => {
    const told = new Inbox();
    broker.on("error", told.push);
    const { inbox } = await consume(broker, news);
    const again = new Promise((resolve) => broker.on("vhost_initialised", resolve));
    await send(broker, durable, "kept"); // persistent by default
    await ask(what);
    assert.match(String(await told.next()), reason);
    await within(again);
    await send(broker, news, "after");
    await inbox.expect(content, "after");
    await (await consume(broker, durable)).inbox.expect(content, "kept");
    await broker.nuke();
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
