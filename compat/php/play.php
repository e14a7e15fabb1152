<?php
// php-amqplib, as its users write it. compat/matrix/playing.py describes the protocol with the harness.

require_once 'PhpAmqpLib/autoload.php';

use PhpAmqpLib\Channel\AMQPChannel;
use PhpAmqpLib\Connection\AMQPConnectionConfig;
use PhpAmqpLib\Connection\AMQPConnectionFactory;
use PhpAmqpLib\Connection\AMQPStreamConnection;
use PhpAmqpLib\Exception\AMQPBasicCancelException;
use PhpAmqpLib\Exception\AMQPConnectionClosedException;
use PhpAmqpLib\Exception\AMQPIOException;
use PhpAmqpLib\Exception\AMQPProtocolChannelException;
use PhpAmqpLib\Exception\AMQPTimeoutException;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPTable;

const PATIENCE_S = 15;
// Silence after which nothing more is expected.
const QUIET_S = 0.3;

// Return a unique name of a queue or exchange.
function name(string $stem): string
{
    return getenv('PREFIX') . ".$stem";
}

function check(bool $is, string $otherwise): void
{
    if (!$is) {
        throw new RuntimeException($otherwise);
    }
}

function same(mixed $came, mixed $expected): void
{
    check($came === $expected, json_encode($came) . ' instead of ' . json_encode($expected));
}

function connection(string $password = 'guest'): AMQPStreamConnection
{
    $url = parse_url(getenv('AMQP_URL'));
    return new AMQPStreamConnection($url['host'], $url['port'], 'guest', $password, '/', read_write_timeout: PATIENCE_S);
}

// Declare an exclusive queue.
function queue(AMQPChannel $channel, string $stem, array $arguments = []): string
{
    $channel->queue_declare(name($stem), exclusive: true, auto_delete: false, arguments: new AMQPTable($arguments));
    return name($stem);
}

function send(AMQPChannel $channel, string $key, string $body, array $properties = [], string $exchange = ''): void
{
    $channel->basic_publish(new AMQPMessage($body, $properties), $exchange, $key);
}

// Consume into a list that `take` reads.
function consume(AMQPChannel $channel, string $queue, ArrayObject $inbox, bool $noAck = true, array $arguments = []): string
{
    $taken = fn (AMQPMessage $message) => $inbox->append($message);
    return $channel->basic_consume($queue, no_ack: $noAck, callback: $taken, arguments: new AMQPTable($arguments));
}

// Wait until the list has this number of messages, and return them.
function take(AMQPChannel $channel, ArrayObject $inbox, int $count): array
{
    while (count($inbox) < $count) {
        $channel->wait(timeout: PATIENCE_S);
    }
    return array_slice($inbox->getArrayCopy(), 0, $count);
}

function bodies(AMQPChannel $channel, ArrayObject $inbox, int $count): array
{
    return array_map(fn ($message) => $message->getBody(), take($channel, $inbox, $count));
}

function refused(int $code, callable $work): void
{
    try {
        $work();
    } catch (AMQPProtocolChannelException $error) {
        same($error->getCode(), $code);
        return;
    }
    check(false, "not refused with $code");
}

// Request a restart of the broker ("RESTART") or a close of all connections ("CLOSE").
function ask(string $what): void
{
    echo "$what\n";
    same(fgets(STDIN), "DONE\n");
}

function toQueue(string $queue): array
{
    return ['x-dead-letter-exchange' => '', 'x-dead-letter-routing-key' => $queue];
}

$scenarios = [
    'connect' => function (): void {
        $connection = connection();
        $channel = $connection->channel();
        $q = queue($channel, 'connect');
        consume($channel, $q, $inbox = new ArrayObject());
        $headers = new AMQPTable(['n' => 1]);
        $sent = ['content_type' => 'text/plain', 'message_id' => 'm1', 'application_headers' => $headers];
        send($channel, $q, 'hello', $sent);
        [$message] = take($channel, $inbox, 1);
        same([$message->getBody(), $message->get('message_id')], ['hello', 'm1']);
        same($message->get('application_headers')->getNativeData(), ['n' => 1]);
        $channel->close();
        $connection->close();
    },
    'topology' => function (): void {
        $connection = connection();
        $channel = $connection->channel();
        [$first, $second, $q] = [name('events'), name('archive'), name('topology')];
        $channel->exchange_declare($first, 'topic', durable: true, auto_delete: false);
        $channel->exchange_declare($second, 'fanout', durable: true, auto_delete: false);
        $channel->queue_declare($q, durable: true, auto_delete: false);
        $channel->exchange_bind($second, $first, 'order.#');
        $channel->queue_bind($q, $second);
        send($channel, 'order.created', '1', exchange: $first);
        $channel->exchange_unbind($second, $first, 'order.#');
        send($channel, 'order.created', '2', exchange: $first);
        $channel->queue_unbind($q, $second);
        same($channel->queue_purge($q), 1);
        refused(404, fn () => $connection->channel()->queue_declare(name('missing'), passive: true));
        refused(406, fn () => $connection->channel()->queue_declare($q, durable: false, auto_delete: false));
        $channel->queue_delete($q);
        $channel->exchange_delete($first);
        $channel->exchange_delete($second);
        $connection->close();
    },
    'confirms' => function (): void {
        $channel = connection()->channel();
        $q = queue($channel, 'confirms');
        $channel->confirm_select();
        $confirmed = 0;
        $channel->set_ack_handler(function () use (&$confirmed): void {
            $confirmed++;
        });
        for ($i = 0; $i < 100; $i++) {
            send($channel, $q, 'x', ['delivery_mode' => AMQPMessage::DELIVERY_MODE_PERSISTENT]);
        }
        $channel->wait_for_pending_acks(PATIENCE_S);
        same($confirmed, 100);
    },
    'returns' => function (): void {
        $channel = connection()->channel();
        $channel->confirm_select();
        $returned = [];
        $channel->set_return_listener(function (int $code, string $text) use (&$returned): void {
            $returned[] = [$code, $text];
        });
        $channel->basic_publish(new AMQPMessage('lost'), '', name('nobody'), true);
        $channel->wait_for_pending_acks_returns(PATIENCE_S);
        same($returned, [[312, 'NO_ROUTE']]);
    },
    'consume' => function (): void {
        $channel = connection()->channel();
        $q = queue($channel, 'consume');
        foreach (range(0, 9) as $number) {
            send($channel, $q, "$number");
        }
        $channel->basic_qos(0, 3, false);
        consume($channel, $q, $inbox = new ArrayObject(), noAck: false);
        $messages = take($channel, $inbox, 3);
        try {
            $channel->wait(timeout: QUIET_S);
            check(false, 'one more than the prefetch count');
        } catch (AMQPTimeoutException) {
        }
        $messages[2]->ack(true);
        same(array_slice(bodies($channel, $inbox, 6), 3), ['3', '4', '5']);
    },
    'requeue' => function (): void {
        $channel = connection()->channel();
        $q = queue($channel, 'requeue');
        consume($channel, $q, $inbox = new ArrayObject(), noAck: false);
        send($channel, $q, 'again');
        take($channel, $inbox, 1)[0]->nack(true);
        same(array_map(fn ($message) => $message->isRedelivered(), take($channel, $inbox, 2)), [false, true]);
    },
    'dead_letter' => function (): void {
        $channel = connection()->channel();
        $work = queue($channel, 'work', toQueue(name('wait')));
        queue($channel, 'wait', toQueue($work) + ['x-message-ttl' => 200]);
        consume($channel, $work, $inbox = new ArrayObject(), noAck: false);
        send($channel, $work, 'try');
        take($channel, $inbox, 1)[0]->reject(false);
        $deaths = take($channel, $inbox, 2)[1]->get('application_headers')->getNativeData()['x-death'];
        $told = array_map(fn ($death) => [$death['queue'], $death['reason'], $death['count']], $deaths);
        same($told, [[name('wait'), 'expired', 1], [$work, 'rejected', 1]]);
    },
    'ttl' => function (): void {
        $channel = connection()->channel();
        $dead = queue($channel, 'dead');
        consume($channel, $dead, $inbox = new ArrayObject());
        send($channel, queue($channel, 'own', toQueue($dead)), 'own', ['expiration' => '100']);
        same(bodies($channel, $inbox, 1), ['own']);
        send($channel, queue($channel, 'all', toQueue($dead) + ['x-message-ttl' => 200]), 'all');
        same(bodies($channel, $inbox, 2), ['own', 'all']);
    },
    'priority' => function (): void {
        $channel = connection()->channel();
        $q = queue($channel, 'priority', ['x-max-priority' => 5]);
        foreach ([1, 5, 3] as $priority) {
            send($channel, $q, "$priority", ['priority' => $priority]);
        }
        consume($channel, $q, $inbox = new ArrayObject());
        same(bodies($channel, $inbox, 3), ['5', '3', '1']);
    },
    'rpc' => function (): void {
        $connection = connection();
        $channel = $connection->channel();
        $server = $connection->channel();
        $q = queue($channel, 'rpc');
        consume($server, $q, $questions = new ArrayObject());
        consume($channel, 'amq.rabbitmq.reply-to', $replies = new ArrayObject());
        send($channel, $q, 'question', ['reply_to' => 'amq.rabbitmq.reply-to', 'correlation_id' => '7']);
        [$question] = take($server, $questions, 1);
        $answer = ['correlation_id' => $question->get('correlation_id')];
        send($server, $question->get('reply_to'), strtoupper($question->getBody()), $answer);
        [$reply] = take($channel, $replies, 1);
        same([$reply->getBody(), $reply->get('correlation_id')], ['QUESTION', '7']);
    },
    'server_named' => function (): void {
        [$q] = ($kept = connection()->channel())->queue_declare('', exclusive: true);
        check(str_starts_with($q, 'amq.gen-'), $q);
        refused(405, fn () => connection()->channel()->basic_consume($q));
    },
    'cancel' => function (): void {
        $channel = connection()->channel();
        $q = queue($channel, 'cancel');
        $tag = consume($channel, $q, new ArrayObject());
        try {
            // The broker's word comes before its answer.
            $channel->queue_delete($q);
            $channel->wait(timeout: PATIENCE_S);
        } catch (AMQPBasicCancelException $error) {
            same($error->consumerTag, $tag);
            return;
        }
        check(false, 'the client reported nothing');
    },
    'stream' => function (): void {
        $connection = connection();
        $channel = $connection->channel();
        $q = name('stream');
        $isStream = new AMQPTable(['x-queue-type' => 'stream']);
        $channel->queue_declare($q, durable: true, auto_delete: false, arguments: $isStream);
        $channel->confirm_select();
        foreach (range(0, 9) as $number) {
            send($channel, $q, "$number");
        }
        $channel->wait_for_pending_acks(PATIENCE_S);
        foreach ([['first', ['0', '1', '2']], [7, ['7', '8', '9']]] as [$offset, $expected]) {
            $reader = $connection->channel();
            $reader->basic_qos(0, 10, false);
            consume($reader, $q, $inbox = new ArrayObject(), noAck: false, arguments: ['x-stream-offset' => $offset]);
            same(bodies($reader, $inbox, 3), $expected);
            $reader->close();
        }
        $channel->queue_delete($q);
    },
    'large' => function (): void {
        $channel = connection()->channel();
        $q = queue($channel, 'large');
        $body = str_repeat('0123456789abcdef', 1 << 20);
        consume($channel, $q, $inbox = new ArrayObject());
        send($channel, $q, $body);
        check(bodies($channel, $inbox, 1) === [$body], 'another body came');
    },
    'tls' => function (): void {
        $url = parse_url(getenv('AMQPS_URL'));
        $config = new AMQPConnectionConfig();
        $config->setHost($url['host']);
        $config->setPort($url['port']);
        $config->setIsSecure(true);
        $config->setNetworkProtocol('ssl');
        $config->setSslVerify(true);
        $config->setSslVerifyName(true);
        $config->setSslCaCert(getenv('CA_FILE'));
        AMQPConnectionFactory::create($config)->close();
        $config->setSslCaCert(null);
        try {
            AMQPConnectionFactory::create($config);
        } catch (AMQPIOException $error) {
            // All that PHP reports.
            check(str_contains($error->getMessage(), 'Unable to connect to ssl:'), $error->getMessage());
            return;
        }
        check(false, 'connected without the authority');
    },
    'wrong_password' => function (): void {
        try {
            connection('wrong');
        } catch (AMQPConnectionClosedException $error) {
            same($error->getCode(), 403);
            return;
        }
        check(false, 'not refused');
    },
    'forced_close' => function (): void {
        $channel = connection()->channel();
        ask('CLOSE');
        try {
            $channel->wait(timeout: PATIENCE_S);
        } catch (AMQPConnectionClosedException $error) {
            same($error->getCode(), 320);
            return;
        }
        check(false, 'the client reported nothing');
    },
    'reconnect' => function (): void {
        $connection = connection();
        $channel = $connection->channel();
        $q = name('reconnect');
        $channel->queue_declare($q, durable: true, auto_delete: false);
        $channel->confirm_select();
        send($channel, $q, 'kept', ['delivery_mode' => AMQPMessage::DELIVERY_MODE_PERSISTENT]);
        $channel->wait_for_pending_acks(PATIENCE_S);
        ask('RESTART');
        try {
            $channel->wait(timeout: PATIENCE_S);
            check(false, 'the client did not report the lost connection');
        } catch (AMQPConnectionClosedException) {
        }
        $connection->reconnect();
        $channel = $connection->channel();
        same($channel->basic_get($q, true)->getBody(), 'kept');
        $channel->queue_delete($q);
    },
];

foreach (array_slice($argv, 1) as $scenario) {
    try {
        $scenarios[$scenario]();
        $outcome = 'ok';
    } catch (Throwable $error) {
        $outcome = 'failed ' . $error::class . ': ' . str_replace("\n", ' ', $error->getMessage());
    }
    echo "RESULT $scenario $outcome\n";
}
