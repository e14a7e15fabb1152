export interface BrokerOptions {
  /** The file of the program; by default that of AMQP_BROKER_PROGRAM, or amqp-broker in PATH. */
  program?: string
  /** Options of `amqp-broker serve`, such as `['--compat', '4.3']`. */
  options?: string[]
}

export interface Broker {
  /** amqp://guest:guest@127.0.0.1:PORT/%2F */
  readonly url: string
  /** The HTTP API of RabbitMQ, and the web page. */
  readonly managementUrl: string
  readonly port: number
  /** Stop the broker, and return when it has ended. */
  stop(): Promise<void>
}

/** Start a broker on free ports, in memory. It ends with this process at the latest. */
export function startBroker(options?: BrokerOptions): Promise<Broker>
