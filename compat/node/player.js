// The protocol with the harness, and functions that the programs share.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";

export const PATIENCE_MS = 20_000;

/** A scenario that this client does not support. */
export class Unsupported extends Error {}

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// An unhandled error would end the process, and the following scenarios with it.
process.on("uncaughtException", (error) => console.log("uncaught:", error));
process.on("unhandledRejection", (error) => console.log("unhandled:", error));

/** Play the scenarios of the command line: functions by name. */
export async function play(scenarios) {
  for (const name of process.argv.slice(2)) {
    console.log(`RESULT ${name} ${await outcome(scenarios[name])}`);
  }
  process.exit(0);
}

async function outcome(scenario) {
  try {
    if (!scenario) return "failed there is no such scenario here";
    await within(scenario(), 2 * PATIENCE_MS, "the scenario did not end");
    return "ok";
  } catch (error) {
    if (error instanceof Unsupported) return `unsupported ${error.message}`;
    console.log(error);
    return `failed ${String(error).replaceAll(/\s+/g, " ")}`;
  }
}

/** The promise's value, or an error if it takes longer. */
export function within(promise, ms = PATIENCE_MS, reason = "nothing came") {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(reason)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Let the harness restart the broker ("RESTART") or close all connections ("CLOSE"). */
export async function ask(what) {
  console.log(what);
  const { value } = await answers.next();
  assert.equal(value, "DONE");
}

/** Return a unique name of a queue or exchange. */
export const name = (stem) => `${process.env.PREFIX}.${stem}`;

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export const wrongPassword = () => process.env.AMQP_URL.replace("guest:guest", "guest:wrong");

export const largeBody = () => Buffer.alloc(16 * 1024 * 1024, "0123456789abcdef-");

/** The deaths of a message, newest first, as "reason queue count". */
export const deaths = (headers) => headers["x-death"].map((death) => `${death.reason} ${death.queue} ${death.count}`);

/** Received messages, for those who wait. */
export class Inbox {
  #items = [];
  #waiting = [];

  push = (item) => {
    const resolve = this.#waiting.shift();
    if (resolve) resolve(item);
    else this.#items.push(item);
  };

  next() {
    if (this.#items.length) return Promise.resolve(this.#items.shift());
    return within(new Promise((resolve) => this.#waiting.push(resolve)));
  }

  /** Expect that nothing comes for a while. */
  async none() {
    await pause(300);
    assert.deepEqual(this.#items, []);
  }

  /** Expect these, as `read` tells them. */
  async expect(read, ...expected) {
    for (const one of expected) assert.equal(read(await this.next()), one);
  }
}
