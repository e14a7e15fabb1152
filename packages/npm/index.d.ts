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
  readonly clock: Clock
  /** The fault rules of all vhosts, and of connections that have none yet. */
  readonly faults: Faults
  /** Create a vhost with a name of its own. */
  vhost(): Promise<VHost>
  /** Stop the broker, and return when it has ended. */
  stop(): Promise<void>
}

/** A vhost for one test. */
export interface VHost {
  readonly broker: Broker
  readonly name: string
  /** amqp://guest:guest@127.0.0.1:PORT/NAME */
  readonly url: string
  /** The fault rules of this vhost. */
  readonly faults: Faults
  /**
   * Close the connections of the vhost, and delete it with its fault rules. The clock runs again if it ran when the
   * vhost was created. After the end of the broker there is nothing to do.
   */
  delete(): Promise<void>
}

/** Fault rules. A refused rule is an error with the broker's reason. */
export interface Faults {
  /** Add a rule, such as `add('confirm_nack', { routing_key: 'orders.*', times: 3 })`. */
  add(action: string, fields?: FaultFields): Promise<Rule>
  /** Return how often a rule has hit. */
  hits(rule: Rule): Promise<number>
  /** Make the oldest deliveries that a rule `hold_delivery` holds, by default one, and return how many it held. */
  release(rule: Rule, count?: number): Promise<number>
  /** Remove a rule, and end its effects on connections. */
  remove(rule: Rule): Promise<void>
  /** Remove all rules. */
  clear(): Promise<void>
}

export interface Rule extends FaultFields {
  readonly id: number
  readonly action: string
}

/** The fields of a fault rule, as the broker's page about faults explains them. */
export interface FaultFields {
  on?: string
  vhost?: string | null
  exchange?: string | null
  routing_key?: string | null
  queue?: string | null
  method?: string | null
  user?: string | null
  connection?: string | null
  client_property?: Record<string, string> | null
  after?: number
  times?: number
  probability?: number
  seed?: number
  delay_ms?: number
  jitter_ms?: number
  duration_ms?: number
  bytes_per_s?: number
  direction?: 'output' | 'input'
  code?: number
  text?: string
  is_routed?: boolean
  is_mid_frame?: boolean
  then?: (FaultFields & { action: string })[]
}

/** The clock of a broker, which is that of all its vhosts. */
export interface Clock {
  /** Return the time of the broker in ms since the epoch. */
  nowMs(): Promise<number>
  /** Advance time by ms, or by a text such as `'30m'`. Everything that falls due meanwhile happens in order. */
  advance(duration: number | string): Promise<void>
  /** Stop the clock; `advance` still moves it. */
  freeze(): Promise<void>
  /** Let the clock run again from its current time. */
  resume(): Promise<void>
}

/** Start a broker on free ports, in memory. It ends with this process at the latest. */
export function startBroker(options?: BrokerOptions): Promise<Broker>
