// Jobs with NestJS's transport for RabbitMQ: `serve` works them off, `submit FIRST COUNT SIZE` sends some.
import "reflect-metadata";
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Controller, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import {
  ClientProxyFactory, Ctx, EventPattern, MicroserviceOptions, Payload, RmqContext, RmqOptions, Transport,
} from "@nestjs/microservices";
import { lastValueFrom } from "rxjs";

interface Job {
  number: number;
  payload: string;
}

const transport = (options: RmqOptions["options"]): RmqOptions => ({
  transport: Transport.RMQ,
  options: {
    urls: [process.env.AMQP_URL!],
    queue: "jobs",
    queueOptions: { durable: true },
    socketOptions: { reconnectTimeInSeconds: 1 },
    ...options,
  },
});

@Controller()
class Worker {
  @EventPattern("job")
  async work(@Payload() job: Job, @Ctx() context: RmqContext): Promise<void> {
    await sleep(5);
    console.log("done", job.number, createHash("sha256").update(job.payload).digest("hex").slice(0, 8));
    context.getChannelRef().ack(context.getMessage());
  }
}

@Module({ controllers: [Worker] })
class Jobs {}

async function serve(): Promise<void> {
  const application = await NestFactory.createMicroservice<MicroserviceOptions>(
    Jobs,
    transport({ noAck: false, prefetchCount: 10 }),
  );
  await application.listen();
  console.log("ready");
}

async function submit(first: number, count: number, size: number): Promise<void> {
  const client = ClientProxyFactory.create(transport({ persistent: true }));
  for (let number = first; number < first + count; number++) {
    await lastValueFrom(client.emit("job", { number, payload: "x".repeat(size) }));
    console.log("accepted", number);
    await sleep(5);
  }
  await client.close();
}

const [verb, ...numbers] = process.argv.slice(2);
const [first, count, size] = numbers.map(Number);
(verb === "serve" ? serve() : submit(first, count, size)).catch((error) => {
  console.error(error);
  process.exit(1);
});
