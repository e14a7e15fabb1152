# AnyEvent::RabbitMQ. compat/matrix/playing.py describes the protocol with the harness.

use strict;
use warnings;
use AnyEvent;
use AnyEvent::RabbitMQ;

$| = 1;
my $PATIENCE_S = 15;
AnyEvent::RabbitMQ->load_xml_spec();

# Return a unique name of a queue or exchange.
sub name { "$ENV{PREFIX}.$_[0]" }

sub same {
    my ($came, $expected) = @_;
    die "got '$came' instead of '$expected'\n" unless $came eq $expected;
}

# Wait for the condition variable, but not for ever.
sub await {
    my ($cv, $what) = @_;
    my $timer = AnyEvent->timer(after => $PATIENCE_S, cb => sub { $cv->croak("$what: it does not come\n") });
    return $cv->recv;
}

sub pause {
    my $cv = AnyEvent->condvar;
    my $timer = AnyEvent->timer(after => $_[0], cb => $cv);
    $cv->recv;
}

# What a failure says: text, the frame with which the broker refuses, or what a handle tells of its socket.
sub told {
    my ($why, undef, $message) = @_;
    return $message // '' if ref $why && $why->isa('AnyEvent::Handle');
    return "$why" unless ref $why && $why->can('method_frame');
    return join ' ', $why->method_frame->reply_code, $why->method_frame->reply_text;
}

# Call a method that ends with `on_success` or `on_failure`, and wait for it.
sub call {
    my ($object, $method, %arguments) = @_;
    my $cv = AnyEvent->condvar;
    $object->$method(%arguments, on_success => sub { $cv->send(@_) }, on_failure => sub { $cv->croak(told(@_) . "\n") });
    my ($result) = await($cv, $method);
    return $result;
}

# Why the last channel was closed: what was under way on it only fails.
my $refusal = '';

sub refused {
    my ($code, $work) = @_;
    $refusal = '';
    eval { $work->(); 1 } and die "not refused with $code\n";
    my $error = $@;
    pause(0.1);
    die "'$error$refusal' instead of $code\n" unless "$error$refusal" =~ /$code/;
}

# Those of the scenario that is played.
my @connections;

sub connected {
    my ($url, %arguments) = @_;
    my ($user, $pass, $host, $port) = $url =~ m{//(\w+):(\w+)@([\w.]+):(\d+)} or die "the URL is wrong\n";
    my @at = (host => $host, port => $port, user => $user, pass => $pass, vhost => '/', timeout => $PATIENCE_S);
    my $closed = AnyEvent->condvar;
    my $connection = AnyEvent::RabbitMQ->new;
    call($connection, 'connect', @at, on_close => sub { $closed->send(told(@_)) },
        on_read_failure => sub { $closed->send(told(@_)) }, %arguments);
    push @connections, $connection;
    return ($connection, $closed);
}

sub channel { call($_[0], 'open_channel', on_close => sub { $refusal = told(@_) }) }

sub opened {
    my ($connection) = connected($ENV{AMQP_URL});
    return ($connection, channel($connection));
}

# Declare an exclusive queue.
sub queue {
    my ($channel, $stem, %arguments) = @_;
    call($channel, 'declare_queue', queue => name($stem), exclusive => 1, arguments => \%arguments);
    return name($stem);
}

sub publish {
    my ($channel, $queue, $body, %header) = @_;
    $channel->publish(routing_key => $queue, body => $body, header => \%header);
}

# Consume into the list that is returned; `take` reads it.
sub consume {
    my ($channel, $queue, %options) = @_;
    my @inbox;
    call($channel, 'consume', queue => $queue, on_consume => sub { push @inbox, $_[0] }, %options);
    return \@inbox;
}

sub take {
    my ($inbox) = @_;
    for (1 .. $PATIENCE_S * 100) {
        return shift @$inbox if @$inbox;
        pause(0.01);
    }
    die "no message came\n";
}

sub bodies {
    my ($inbox, $count) = @_;
    return join ' ', map { take($inbox)->{body}->to_raw_payload } 1 .. $count;
}

sub confirmed {
    my ($channel, $queue, @bodies) = @_;
    my $cv = AnyEvent->condvar;
    for my $body (@bodies) {
        $cv->begin;
        $channel->publish(routing_key => $queue, body => $body, header => { delivery_mode => 2 },
            on_ack => sub { $cv->end }, on_nack => sub { $cv->croak("nacked\n") });
    }
    await($cv, 'confirms');
}

# Request a restart of the broker ("RESTART") or a close of all connections ("CLOSE").
sub ask {
    print "$_[0]\n";
    same(scalar(<STDIN>), "DONE\n");
}

sub to_queue { ('x-dead-letter-exchange' => '', 'x-dead-letter-routing-key' => $_[0]) }

my %scenarios = (
    connect => sub {
        my ($connection, $channel) = opened();
        my $q = queue($channel, 'connect');
        publish($channel, $q, 'hello', content_type => 'text/plain', message_id => 'm1', headers => { n => 1 });
        my $message = take(consume($channel, $q));
        same($message->{body}->to_raw_payload, 'hello');
        same(join(' ', $message->{header}->message_id, $message->{header}->headers->{n}), 'm1 1');
        call($channel, 'close');
        call($connection, 'close');
    },
    topology => sub {
        my ($connection, $channel) = opened();
        my ($first, $second, $q) = (name('events'), name('archive'), name('topology'));
        call($channel, 'declare_exchange', exchange => $first, type => 'topic', durable => 1);
        call($channel, 'declare_exchange', exchange => $second, type => 'fanout', durable => 1);
        call($channel, 'declare_queue', queue => $q, durable => 1);
        my @binding = (source => $first, destination => $second, routing_key => 'order.#');
        call($channel, 'bind_exchange', @binding);
        call($channel, 'bind_queue', queue => $q, exchange => $second, routing_key => '');
        $channel->publish(exchange => $first, routing_key => 'order.created', body => '1');
        call($channel, 'unbind_exchange', @binding);
        $channel->publish(exchange => $first, routing_key => 'order.created', body => '2');
        call($channel, 'unbind_queue', queue => $q, exchange => $second, routing_key => '');
        same(call($channel, 'purge_queue', queue => $q)->method_frame->message_count, 1);
        refused(404, sub { call(channel($connection), 'declare_queue', queue => name('missing'), passive => 1) });
        refused(406, sub { call(channel($connection), 'declare_queue', queue => $q, durable => 0) });
        call($channel, 'delete_queue', queue => $q);
        call($channel, 'delete_exchange', exchange => $_) for $first, $second;
    },
    confirms => sub {
        my ($connection, $channel) = opened();
        my $q = queue($channel, 'confirms');
        call($channel, 'confirm');
        confirmed($channel, $q, ('x') x 100);
    },
    returns => sub {
        my ($connection, $channel) = opened();
        call($channel, 'confirm');
        my $cv = AnyEvent->condvar;
        $channel->publish(routing_key => name('nobody'), body => 'lost', mandatory => 1, on_ack => sub { },
            on_return => sub { $cv->send(told(@_)) });
        same(await($cv, 'the return'), '312 NO_ROUTE');
    },
    consume => sub {
        my ($connection, $channel) = opened();
        my $q = queue($channel, 'consume');
        publish($channel, $q, $_) for 0 .. 9;
        call($channel, 'qos', prefetch_count => 3);
        my $inbox = consume($channel, $q, no_ack => 0);
        my @first = map { take($inbox) } 1 .. 3;
        pause(0.3);
        same(scalar(@$inbox), 0);
        $channel->ack(delivery_tag => $first[2]{deliver}->method_frame->delivery_tag, multiple => 1);
        same(bodies($inbox, 3), '3 4 5');
    },
    requeue => sub {
        my ($connection, $channel) = opened();
        my $q = queue($channel, 'requeue');
        my $inbox = consume($channel, $q, no_ack => 0);
        publish($channel, $q, 'again');
        my $first = take($inbox)->{deliver}->method_frame;
        $channel->reject(delivery_tag => $first->delivery_tag, requeue => 1);
        my $second = take($inbox)->{deliver}->method_frame;
        same(join(' ', map { $_->redelivered ? 1 : 0 } $first, $second), '0 1');
    },
    dead_letter => sub { die "unsupported: it cannot read 64-bit integers in headers, as `x-death` has them\n" },
    ttl => sub {
        my ($connection, $channel) = opened();
        my ($own, $all) = (queue($channel, 'own'), queue($channel, 'all', 'x-message-ttl' => 1000));
        publish($channel, $own, 'own', expiration => '1000');
        publish($channel, $all, 'all');
        my $counts = sub {
            my @declared = map { call($channel, 'declare_queue', queue => $_, passive => 1) } $own, $all;
            return join ' ', map { $_->method_frame->message_count } @declared;
        };
        pause(0.1);
        same($counts->(), '1 1');
        pause(1.3);
        same($counts->(), '0 0');
    },
    priority => sub {
        my ($connection, $channel) = opened();
        my $q = queue($channel, 'priority', 'x-max-priority' => 5);
        publish($channel, $q, $_, priority => $_) for 1, 5, 3;
        same(bodies(consume($channel, $q), 3), '5 3 1');
    },
    rpc => sub {
        my ($connection, $channel) = opened();
        my $q = queue($channel, 'rpc');
        my $server = channel($connection);
        my $questions = consume($server, $q);
        my $replies = consume($channel, 'amq.rabbitmq.reply-to');
        publish($channel, $q, 'question', reply_to => 'amq.rabbitmq.reply-to', correlation_id => '7');
        my $question = take($questions);
        my $header = $question->{header};
        publish($server, $header->reply_to, uc $question->{body}->to_raw_payload, correlation_id => $header->correlation_id);
        my $answer = take($replies);
        same($answer->{body}->to_raw_payload . ' ' . $answer->{header}->correlation_id, 'QUESTION 7');
    },
    server_named => sub {
        my ($connection, $channel) = opened();
        my $q = call($channel, 'declare_queue', queue => '', exclusive => 1)->method_frame->queue;
        same(substr($q, 0, 8), 'amq.gen-');
        my ($other, $theirs) = opened();
        refused(405, sub { call($theirs, 'consume', queue => $q) });
    },
    cancel => sub {
        my ($connection, $channel) = opened();
        my $q = queue($channel, 'cancel');
        my $cv = AnyEvent->condvar;
        consume($channel, $q, on_cancel => sub { $cv->send('told') });
        call($channel, 'delete_queue', queue => $q);
        await($cv, 'the cancel');
    },
    stream => sub { die "unsupported: it cannot read 64-bit integers in headers, as `x-stream-offset` is\n" },
    large => sub {
        my ($connection, $channel) = opened();
        my $q = queue($channel, 'large');
        my $body = '0123456789abcdef' x (1 << 20);
        publish($channel, $q, $body);
        die "another body came\n" unless bodies(consume($channel, $q), 1) eq $body;
    },
    tls => sub {
        my $checked = { verify => 1, verify_peername => 'rfc2818' };
        my ($connection) = connected($ENV{AMQPS_URL}, tls => 1, tls_ctx => { %$checked, ca_file => $ENV{CA_FILE} });
        call($connection, 'close');
        refused('certificate|error|fail', sub { connected($ENV{AMQPS_URL}, tls => 1, tls_ctx => $checked) });
    },
    wrong_password => sub {
        (my $url = $ENV{AMQP_URL}) =~ s/guest:guest/guest:wrong/;
        # Before it is open, the library has no other word for what the broker says than this.
        refused('403|closed|Broken|reset', sub { connected($url) });
    },
    forced_close => sub {
        my ($connection, $closed) = connected($ENV{AMQP_URL});
        my $channel = channel($connection);
        ask('CLOSE');
        my $why = await($closed, 'the close');
        die "told '$why' instead of 320\n" unless $why =~ /^320/;
    },
    reconnect => sub {
        my $q = name('reconnect');
        my ($connection, $closed) = connected($ENV{AMQP_URL});
        my $channel = channel($connection);
        call($channel, 'declare_queue', queue => $q, durable => 1);
        call($channel, 'confirm');
        confirmed($channel, $q, 'kept');
        ask('RESTART');
        await($closed, 'the loss');
        my ($again, $reader) = opened();
        same(bodies(consume($reader, $q), 1), 'kept');
        call($reader, 'delete_queue', queue => $q);
    },
);

for my $scenario (@ARGV) {
    my $outcome = eval { $scenarios{$scenario}->(); 'ok' } // "failed $@";
    for (splice @connections) {
        eval { call($_, 'close') } if $_->is_open;
    }
    $outcome =~ s/^failed unsupported:/unsupported/;
    $outcome =~ s/\s+/ /g;
    print "RESULT $scenario $outcome\n";
}
