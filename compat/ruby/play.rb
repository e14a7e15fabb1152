# bunny, as its users write it. compat/matrix/playing.py describes the protocol with the harness.

require "bunny"
require "timeout"

PATIENCE_S = 15
# Silence after which nothing more is expected.
QUIET_S = 0.3

$stdout.sync = true

# Return a unique name of a queue or exchange.
def name(stem)
  "#{ENV.fetch('PREFIX')}.#{stem}"
end

def same(came, expected)
  raise "#{came.inspect} instead of #{expected.inspect}" unless came == expected
end

def opened(**options)
  options = { log_level: :fatal, continuation_timeout: PATIENCE_S * 1000, network_recovery_interval: 0.3, **options }
  connection = Bunny.new(ENV.fetch("AMQP_URL"), **options)
  connection.start
  yield connection.create_channel, connection
ensure
  connection.close if connection&.open?
end

# Declare an exclusive queue.
def queue(channel, stem, **arguments)
  channel.queue(name(stem), exclusive: true, arguments: arguments.transform_keys(&:to_s))
end

# Consume into what is returned (with a tag of the client's own: it drops what comes before it knows the broker's): lists of delivery, properties and body.
def consume(queue, **options)
  inbox = Queue.new
  queue.subscribe(**options) { |*message| inbox << message }
  inbox
end

def take(inbox)
  Timeout.timeout(PATIENCE_S, nil, "no message came") { inbox.pop }
end

def bodies(inbox, count)
  Array.new(count) { take(inbox).last }
end

def refused(error)
  yield
rescue error
  nil
else
  raise "not refused with #{error}"
end

# Request a restart of the broker ("RESTART") or a close of all connections ("CLOSE").
def ask(what)
  puts what
  same $stdin.gets, "DONE\n"
end

def to_queue(name)
  { "x-dead-letter-exchange" => "", "x-dead-letter-routing-key" => name }
end

SCENARIOS = {
  connect: lambda do
    opened do |channel, connection|
      q = queue(channel, "connect")
      q.publish("hello", content_type: "text/plain", message_id: "m1", headers: { n: 1 })
      _, properties, body = take(consume(q))
      same [body, properties.content_type, properties.message_id, properties.headers],
           ["hello", "text/plain", "m1", { "n" => 1 }]
      channel.close
      connection.close
    end
  end,
  topology: lambda do
    opened do |channel, connection|
      first = channel.topic(name("events"), durable: true)
      second = channel.fanout(name("archive"), durable: true)
      q = channel.queue(name("topology"), durable: true)
      second.bind(first, routing_key: "order.#")
      q.bind(second)
      first.publish("1", routing_key: "order.created")
      second.unbind(first, routing_key: "order.#")
      first.publish("2", routing_key: "order.created")
      q.unbind(second)
      same q.message_count, 1
      q.purge
      same q.message_count, 0
      refused(Bunny::NotFound) { connection.create_channel.queue(name("missing"), passive: true) }
      refused(Bunny::PreconditionFailed) { connection.create_channel.queue(q.name, durable: false) }
      [q, first, second].each(&:delete)
    end
  end,
  confirms: lambda do
    opened do |channel|
      q = queue(channel, "confirms")
      channel.confirm_select
      100.times { q.publish("x", persistent: true) }
      same channel.wait_for_confirms, true
      same channel.nacked_set.empty?, true
      same q.message_count, 100
    end
  end,
  returns: lambda do
    opened do |channel|
      returned = Queue.new
      exchange = channel.default_exchange
      exchange.on_return { |info, _, body| returned << [info.reply_code, info.reply_text, body] }
      exchange.publish("lost", routing_key: name("nobody"), mandatory: true)
      same take(returned), [312, "NO_ROUTE", "lost"]
    end
  end,
  consume: lambda do
    opened do |channel|
      q = queue(channel, "consume")
      10.times { |number| q.publish(number.to_s) }
      channel.prefetch(3)
      inbox = consume(q, manual_ack: true)
      last = Array.new(3) { take(inbox) }.last
      sleep QUIET_S
      same inbox.empty?, true
      channel.ack(last.first.delivery_tag, true)
      same bodies(inbox, 3), %w[3 4 5]
    end
  end,
  requeue: lambda do
    opened do |channel|
      q = queue(channel, "requeue")
      inbox = consume(q, manual_ack: true)
      q.publish("again")
      first = take(inbox).first
      channel.nack(first.delivery_tag, false, true)
      same [first.redelivered?, take(inbox).first.redelivered?], [false, true]
    end
  end,
  dead_letter: lambda do
    opened do |channel|
      work = queue(channel, "work", **to_queue(name("wait")))
      queue(channel, "wait", "x-message-ttl" => 200, **to_queue(work.name))
      inbox = consume(work, manual_ack: true)
      work.publish("try")
      channel.reject(take(inbox).first.delivery_tag, false)
      deaths = take(inbox)[1].headers["x-death"].map { |death| death.values_at("queue", "reason", "count") }
      same deaths, [[name("wait"), "expired", 1], [work.name, "rejected", 1]]
    end
  end,
  ttl: lambda do
    opened do |channel|
      dead = queue(channel, "dead")
      inbox = consume(dead)
      queue(channel, "own", **to_queue(dead.name)).publish("own", expiration: "100")
      same bodies(inbox, 1), ["own"]
      queue(channel, "all", "x-message-ttl" => 200, **to_queue(dead.name)).publish("all")
      same bodies(inbox, 1), ["all"]
    end
  end,
  priority: lambda do
    opened do |channel|
      q = queue(channel, "priority", "x-max-priority" => 5)
      [1, 5, 3].each { |priority| q.publish(priority.to_s, priority: priority) }
      same bodies(consume(q), 3), %w[5 3 1]
    end
  end,
  rpc: lambda do
    opened do |channel, connection|
      q = queue(channel, "rpc")
      server = connection.create_channel
      server.queue(q.name, exclusive: true).subscribe do |_, properties, body|
        answer = { routing_key: properties.reply_to, correlation_id: properties.correlation_id }
        server.default_exchange.publish(body.upcase, **answer)
      end
      replies = Queue.new
      channel.basic_consume("amq.rabbitmq.reply-to", channel.generate_consumer_tag, true) { |*message| replies << message }
      q.publish("question", reply_to: "amq.rabbitmq.reply-to", correlation_id: "7")
      _, properties, body = take(replies)
      same [body, properties.correlation_id], %w[QUESTION 7]
    end
  end,
  server_named: lambda do
    opened do |channel|
      q = channel.queue("", exclusive: true)
      same q.name[0, 8], "amq.gen-"
      opened { |other| refused(Bunny::ResourceLocked) { other.basic_consume(q.name) } }
    end
  end,
  cancel: lambda do
    opened do |channel|
      q = queue(channel, "cancel")
      told = Queue.new
      consumer = Bunny::Consumer.new(channel, q)
      consumer.on_cancellation { |cancelled| told << [cancelled.consumer_tag] }
      q.subscribe_with(consumer)
      q.delete
      same take(told), [consumer.consumer_tag]
    end
  end,
  stream: lambda do
    opened do |channel, connection|
      q = channel.queue(name("stream"), durable: true, arguments: { "x-queue-type" => "stream" })
      channel.confirm_select
      10.times { |number| q.publish(number.to_s) }
      same channel.wait_for_confirms, true
      { "first" => %w[0 1 2], 7 => %w[7 8 9] }.each do |offset, expected|
        reader = connection.create_channel
        reader.prefetch(10)
        from = { "x-stream-offset" => offset }
        inbox = consume(reader.queue(q.name, durable: true, arguments: q.arguments), manual_ack: true, arguments: from)
        expected.each do |body|
          message = take(inbox)
          same message.last, body
          reader.ack(message.first.delivery_tag)
        end
        reader.close
      end
      q.delete
    end
  end,
  large: lambda do
    opened do |channel|
      q = queue(channel, "large")
      body = "0123456789abcdef" * (1 << 20)
      q.publish(body)
      raise "another body came" unless bodies(consume(q), 1) == [body]
    end
  end,
  tls: lambda do
    port = URI(ENV.fetch("AMQPS_URL")).port
    at = { host: "localhost", port: port, tls: true, verify_peer: true, log_level: :fatal, recovery_attempts: 0 }
    connection = Bunny.new(**at, tls_ca_certificates: [ENV.fetch("CA_FILE")])
    connection.start
    connection.close
    begin
      Bunny.new(**at).start
    rescue OpenSSL::SSL::SSLError, Bunny::TCPConnectionFailed => error
      raise unless error.message.include?("certificate verify failed")
    else
      raise "connected without the authority"
    end
  end,
  wrong_password: lambda do
    url = ENV.fetch("AMQP_URL").sub("guest:guest@", "guest:wrong@")
    begin
      Bunny.new(url, log_level: :fatal).start
    rescue Bunny::AuthenticationFailureError
      nil # it is the client's word for 403
    else
      raise "not refused"
    end
  end,
  # The connection recovers by itself, and its consumer with it.
  forced_close: -> { recovers("CLOSE") },
  reconnect: -> { recovers("RESTART") }
}.freeze

def recovers(what)
  recovered = Queue.new
  opened(recovery_completed: -> { recovered << [true] }) do |channel|
    q = channel.queue(name("recovers-#{what}"), durable: true)
    channel.confirm_select
    q.publish("kept", persistent: true)
    channel.wait_for_confirms
    inbox = consume(q, manual_ack: true)
    take(inbox)
    ask(what)
    take(recovered)
    delivery, _, body = take(inbox)
    same [delivery.redelivered?, body], [true, "kept"]
    channel.ack(delivery.delivery_tag)
    q.publish("after")
    same bodies(inbox, 1), ["after"]
    q.delete
  end
end

ARGV.each do |scenario|
  SCENARIOS.fetch(scenario.to_sym).call
  puts "RESULT #{scenario} ok"
rescue StandardError => error
  puts "RESULT #{scenario} failed #{error.class}: #{error.message.tr("\n", ' ')}"
end
