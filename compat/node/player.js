// The lines that are spoken with the harness, and what the programs here share.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";

export const PATIENCE_MS = 20_000;

/** What this client has no way to do. */
export class Unsupported extends Error {}

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// An error that nobody listens to would end the process, and with it the scenarios that follow.
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

/** A name of a queue or exchange that nobody else uses. */
export const name = (stem) => `${process.env.PREFIX}.${stem}`;

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export const wrongPassword = () => process.env.AMQP_URL.replace("guest:guest", "guest:wrong");

export const largeBody = () => Buffer.alloc(16 * 1024 * 1024, "0123456789abcdef-");

/** The deaths of a message, newest first, as "reason queue count". */
export const deaths = (headers) => headers["x-death"].map((death) => `${death.reason} ${death.queue} ${death.count}`);

/** What came in, for whoever waits for it. */
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
