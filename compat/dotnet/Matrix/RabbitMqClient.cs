using System.Collections;
using System.Net.Security;
using System.Security.Authentication;
using System.Text;
using RabbitMQ.Client;
using RabbitMQ.Client.Events;
using RabbitMQ.Client.Exceptions;
using static Matrix.Channels;
using static Matrix.Player;

namespace Matrix;

/// <summary>RabbitMQ's own client for .NET, with its automatic recovery of connections and topology.</summary>
internal static class RabbitMqClient
{
    private const int Large = 16 << 20;

    private static readonly CreateChannelOptions Confirming =
        new(publisherConfirmationsEnabled: true, publisherConfirmationTrackingEnabled: true);

    public static readonly IReadOnlyDictionary<string, Scenario> Scenarios = new Dictionary<string, Scenario>
    {
        ["connect"] = ConnectAsync,
        ["topology"] = TopologyAsync,
        ["confirms"] = ConfirmsAsync,
        ["returns"] = ReturnsAsync,
        ["consume"] = ConsumeAsync,
        ["requeue"] = RequeueAsync,
        ["dead_letter"] = DeadLetterAsync,
        ["ttl"] = TtlAsync,
        ["priority"] = PriorityAsync,
        ["rpc"] = RpcAsync,
        ["server_named"] = ServerNamedAsync,
        ["cancel"] = CancelAsync,
        ["stream"] = StreamAsync,
        ["large"] = LargeAsync,
        ["tls"] = TlsAsync,
        ["wrong_password"] = WrongPasswordAsync,
        ["forced_close"] = token => SurviveAsync("CLOSE", token),
        ["reconnect"] = token => SurviveAsync("RESTART", token),
    };

    private static Task<IConnection> OpenAsync(CancellationToken token) =>
        Broker.Factory().CreateConnectionAsync(Name("dotnet"), token);

    private static Dictionary<string, object?> DeadLettersTo(string queue) => new()
    {
        [Headers.XDeadLetterExchange] = "",
        [Headers.XDeadLetterRoutingKey] = queue,
    };

    private static async Task ConnectAsync(CancellationToken token)
    {
        await using IConnection connection = await OpenAsync(token);
        await using IChannel channel = await connection.CreateChannelAsync(cancellationToken: token);
        Same("RabbitMQ", Decoded(connection.ServerProperties?["product"]));
        string queue = await channel.NewQueueAsync("connect", token);
        var properties = new BasicProperties
        {
            ContentType = "text/plain",
            MessageId = "m1",
            Headers = new Dictionary<string, object?> { ["n"] = 1L, ["color"] = "blue" },
        };
        await channel.SendAsync(queue, "hello", properties, token);
        Inbox<Delivery> deliveries = await channel.ConsumeAsync(queue, autoAck: true, token);
        Delivery delivery = await deliveries.NextAsync(token);
        Same("hello", delivery.Text);
        Same("text/plain", delivery.Properties.ContentType);
        Same("m1", delivery.Properties.MessageId);
        Same<object?>(1L, delivery.Properties.Headers?["n"]);
        Same("blue", Decoded(delivery.Properties.Headers?["color"]));
        await channel.CloseAsync(token);
        await connection.CloseAsync(token);
        Require(connection.CloseReason is { Initiator: ShutdownInitiator.Application, ReplyCode: 200 },
            $"closed otherwise: {connection.CloseReason}");
    }

    private static async Task TopologyAsync(CancellationToken token)
    {
        await using IConnection connection = await OpenAsync(token);
        await using IChannel channel = await connection.CreateChannelAsync(cancellationToken: token);
        (string events, string archive, string queue) = (Name("events"), Name("archive"), Name("topology"));
        await channel.ExchangeDeclareAsync(
            events, ExchangeType.Topic, durable: true, autoDelete: false, cancellationToken: token);
        await channel.ExchangeDeclareAsync(
            archive, ExchangeType.Fanout, durable: true, autoDelete: false, cancellationToken: token);
        await channel.ExchangeDeclarePassiveAsync(events, token);
        await channel.QueueDeclareAsync(
            queue, durable: true, exclusive: false, autoDelete: false, cancellationToken: token);
        await channel.ExchangeBindAsync(archive, events, "order.#", cancellationToken: token);
        await channel.QueueBindAsync(queue, archive, "", cancellationToken: token);
        await channel.PublishAsync(events, "order.created", token);
        await channel.ExchangeUnbindAsync(archive, events, "order.#", cancellationToken: token);
        await channel.PublishAsync(events, "order.created", token);
        await channel.QueueUnbindAsync(queue, archive, "", cancellationToken: token);
        Same(1u, await channel.QueuePurgeAsync(queue, token));
        await connection.RefusedAsync(404, other => other.QueueDeclarePassiveAsync(Name("missing"), token), token);
        await connection.RefusedAsync(
            406,
            other => other.QueueDeclareAsync(
                queue, durable: false, exclusive: false, autoDelete: false, cancellationToken: token),
            token);
        await channel.QueueDeleteAsync(queue, ifUnused: false, ifEmpty: false, cancellationToken: token);
        await channel.ExchangeDeleteAsync(events, cancellationToken: token);
        await channel.ExchangeDeleteAsync(archive, cancellationToken: token);
        await connection.RefusedAsync(404, other => other.ExchangeDeclarePassiveAsync(events, token), token);
    }

    private static async Task ConfirmsAsync(CancellationToken token)
    {
        await using IConnection connection = await OpenAsync(token);
        await using IChannel channel = await connection.CreateChannelAsync(Confirming, token);
        string queue = await channel.NewQueueAsync("confirms", token);
        // A publish is complete when it is confirmed; a nack throws.
        await Task.WhenAll(Enumerable.Range(0, 100).Select(i => channel.SendAsync(queue, $"{i}", token)));
        Same(101ul, await channel.GetNextPublishSequenceNumberAsync(token));
        Same(100u, await channel.MessageCountAsync(queue, token));
    }

    private static async Task ReturnsAsync(CancellationToken token)
    {
        await using IConnection connection = await OpenAsync(token);
        await using IChannel channel = await connection.CreateChannelAsync(Confirming, token);
        var returned = new Inbox<(int Code, string Text, string Body)>();
        channel.BasicReturnAsync += (_, message) =>
        {
            returned.Add((message.ReplyCode, message.ReplyText, Encoding.UTF8.GetString(message.Body.Span)));
            return Task.CompletedTask;
        };
        try
        {
            await channel.BasicPublishAsync(
                exchange: "", routingKey: Name("nobody"), mandatory: true, body: "lost"u8.ToArray(),
                cancellationToken: token);
            throw new ScenarioException("confirmed as if it had been routed");
        }
        catch (PublishException error) when (error.IsReturn)
        {
            Same((312, "NO_ROUTE", "lost"), await returned.NextAsync(token));
        }
    }

    private static async Task ConsumeAsync(CancellationToken token)
    {
        await using IConnection connection = await OpenAsync(token);
        await using IChannel channel = await connection.CreateChannelAsync(cancellationToken: token);
        string queue = await channel.NewQueueAsync("consume", token);
        foreach (int i in Enumerable.Range(0, 10))
        {
            await channel.SendAsync(queue, $"{i}", token);
        }
        await channel.BasicQosAsync(prefetchSize: 0, prefetchCount: 3, global: false, token);
        Inbox<Delivery> deliveries = await channel.ConsumeAsync(queue, autoAck: false, token);
        await deliveries.ExpectAsync(token, "0", "1");
        Delivery third = await deliveries.NextAsync(token);
        Same("2", third.Text);
        await deliveries.NoneAsync(token);
        await channel.BasicAckAsync(third.Tag, multiple: true, token);
        await deliveries.ExpectAsync(token, "3", "4", "5");
        await deliveries.NoneAsync(token);
    }

    private static async Task RequeueAsync(CancellationToken token)
    {
        await using IConnection connection = await OpenAsync(token);
        await using IChannel channel = await connection.CreateChannelAsync(cancellationToken: token);
        string queue = await channel.NewQueueAsync("requeue", token);
        Inbox<Delivery> deliveries = await channel.ConsumeAsync(queue, autoAck: false, token);
        await channel.SendAsync(queue, "again", token);
        Delivery first = await deliveries.NextAsync(token);
        Require(!first.IsRedelivered, "the first delivery is marked as redelivered");
        await channel.BasicNackAsync(first.Tag, multiple: false, requeue: true, token);
        Delivery second = await deliveries.NextAsync(token);
        Require(second.IsRedelivered, "the second delivery is not marked as redelivered");
        Same("again", second.Text);
    }

    private static async Task DeadLetterAsync(CancellationToken token)
    {
        await using IConnection connection = await OpenAsync(token);
        await using IChannel channel = await connection.CreateChannelAsync(cancellationToken: token);
        (string work, string wait) = (Name("work"), Name("wait"));
        await channel.NewQueueAsync("work", token, DeadLettersTo(wait));
        await channel.NewQueueAsync("wait", token, new(DeadLettersTo(work)) { [Headers.XMessageTTL] = 200 });
        Inbox<Delivery> deliveries = await channel.ConsumeAsync(work, autoAck: false, token);
        await channel.SendAsync(work, "try", token);
        await channel.BasicRejectAsync((await deliveries.NextAsync(token)).Tag, requeue: false, token);
        Delivery second = await deliveries.NextAsync(token);
        Same("try", second.Text);
        var deaths = ((IList)second.Properties.Headers!["x-death"]!).Cast<IDictionary<string, object?>>();
        Same(
            $"expired {wait} 1, rejected {work} 1",
            string.Join(", ", deaths.Select(death =>
                $"{Decoded(death["reason"])} {Decoded(death["queue"])} {death["count"]}")));
    }

    private static async Task TtlAsync(CancellationToken token)
    {
        await using IConnection connection = await OpenAsync(token);
        await using IChannel channel = await connection.CreateChannelAsync(cancellationToken: token);
        string dead = await channel.NewQueueAsync("dead", token);
        string own = await channel.NewQueueAsync("own", token, DeadLettersTo(dead));
        string all = await channel.NewQueueAsync(
            "all", token, new(DeadLettersTo(dead)) { [Headers.XMessageTTL] = 200 });
        Inbox<Delivery> deliveries = await channel.ConsumeAsync(dead, autoAck: true, token);
        await channel.SendAsync(own, "own", new BasicProperties { Expiration = "100" }, token);
        await deliveries.ExpectAsync(token, "own");
        await channel.SendAsync(all, "all", token);
        await deliveries.ExpectAsync(token, "all");
    }

    private static async Task PriorityAsync(CancellationToken token)
    {
        await using IConnection connection = await OpenAsync(token);
        await using IChannel channel = await connection.CreateChannelAsync(cancellationToken: token);
        string queue = await channel.NewQueueAsync("priority", token, new() { [Headers.XMaxPriority] = 5 });
        foreach (byte priority in new byte[] { 1, 5, 3 })
        {
            await channel.SendAsync(queue, $"{priority}", new BasicProperties { Priority = priority }, token);
        }
        await (await channel.ConsumeAsync(queue, autoAck: true, token)).ExpectAsync(token, "5", "3", "1");
    }

    private static async Task RpcAsync(CancellationToken token)
    {
        const string replyTo = "amq.rabbitmq.reply-to";
        await using IConnection connection = await OpenAsync(token);
        await using IChannel asker = await connection.CreateChannelAsync(cancellationToken: token);
        await using IChannel server = await connection.CreateChannelAsync(cancellationToken: token);
        string queue = await server.NewQueueAsync("rpc", token);
        Inbox<Delivery> questions = await server.ConsumeAsync(queue, autoAck: true, token);
        // A question can be sent only after its answers are consumed, on the same channel.
        Inbox<Delivery> answers = await asker.ConsumeAsync(replyTo, autoAck: true, token);
        foreach (string text in new[] { "question", "and another" })
        {
            var asked = new BasicProperties { ReplyTo = replyTo, CorrelationId = $"for {text}" };
            await asker.SendAsync(queue, text, asked, token);
            Delivery question = await questions.NextAsync(token);
            string address = question.Properties.ReplyTo ?? "";
            // The broker replaces the asker's address by one that others can send to.
            Require(address.StartsWith($"{replyTo}.", StringComparison.Ordinal), $"the address is {address}");
            var answered = new BasicProperties { CorrelationId = question.Properties.CorrelationId };
            await server.SendAsync(address, question.Text.ToUpperInvariant(), answered, token);
            Delivery answer = await answers.NextAsync(token);
            Same(text.ToUpperInvariant(), answer.Text);
            Same($"for {text}", answer.Properties.CorrelationId);
        }
    }

    private static async Task ServerNamedAsync(CancellationToken token)
    {
        await using IConnection connection = await OpenAsync(token);
        await using IChannel channel = await connection.CreateChannelAsync(cancellationToken: token);
        QueueDeclareOk declared = await channel.QueueDeclareAsync(
            "", durable: false, exclusive: true, autoDelete: true, cancellationToken: token);
        string queue = declared.QueueName;
        Require(queue.StartsWith("amq.gen-", StringComparison.Ordinal), queue);
        await channel.QueueDeclarePassiveAsync(queue, token);
        await using IConnection other = await OpenAsync(token);
        await other.RefusedAsync(405, refused => refused.QueueDeclarePassiveAsync(queue, token), token);
    }

    private static async Task CancelAsync(CancellationToken token)
    {
        await using IConnection connection = await OpenAsync(token);
        await using IChannel channel = await connection.CreateChannelAsync(cancellationToken: token);
        string queue = await channel.NewQueueAsync("cancel", token);
        var cancelled = new Inbox<string>();
        var consumer = new AsyncEventingBasicConsumer(channel);
        consumer.UnregisteredAsync += (_, gone) =>
        {
            cancelled.Add(gone.ConsumerTags[0]);
            return Task.CompletedTask;
        };
        string tag = await channel.BasicConsumeAsync(queue, autoAck: true, consumer, token);
        await channel.QueueDeleteAsync(queue, ifUnused: false, ifEmpty: false, cancellationToken: token);
        Same(tag, await cancelled.NextAsync(token));
        // The event also tells the end of a channel.
        Require(channel.IsOpen, "the channel is closed");
    }

    private static async Task StreamAsync(CancellationToken token)
    {
        await using IConnection connection = await OpenAsync(token);
        await using IChannel channel = await connection.CreateChannelAsync(Confirming, token);
        string queue = Name("stream");
        await channel.QueueDeclareAsync(
            queue, durable: true, exclusive: false, autoDelete: false,
            arguments: new Dictionary<string, object?> { [Headers.XQueueType] = "stream" }, cancellationToken: token);
        foreach (int i in Enumerable.Range(0, 10))
        {
            await channel.SendAsync(queue, $"{i}", token);
        }
        await using (IChannel reader = await connection.CreateChannelAsync(cancellationToken: token))
        {
            await (await ReadAsync(reader, queue, "first", token)).ExpectAsync(token, "0", "1", "2");
        }
        await using (IChannel reader = await connection.CreateChannelAsync(cancellationToken: token))
        {
            Inbox<Delivery> deliveries = await ReadAsync(reader, queue, 7L, token);
            Delivery seventh = await deliveries.NextAsync(token);
            Same("7", seventh.Text);
            Same<object?>(7L, seventh.Properties.Headers?[Headers.XStreamOffset]);
            await deliveries.ExpectAsync(token, "8", "9");
        }
        await channel.QueueDeleteAsync(queue, ifUnused: false, ifEmpty: false, cancellationToken: token);
    }

    private static async Task<Inbox<Delivery>> ReadAsync(
        IChannel reader, string stream, object offset, CancellationToken token)
    {
        await reader.BasicQosAsync(prefetchSize: 0, prefetchCount: 10, global: false, token);
        return await reader.ConsumeAsync(stream, autoAck: false, token, new() { [Headers.XStreamOffset] = offset });
    }

    private static async Task LargeAsync(CancellationToken token)
    {
        await using IConnection connection = await OpenAsync(token);
        await using IChannel channel = await connection.CreateChannelAsync(Confirming, token);
        string queue = await channel.NewQueueAsync("large", token);
        var body = new byte[Large];
        for (int i = 0; i < body.Length; i++)
        {
            body[i] = unchecked((byte)(i * 31));
        }
        await channel.BasicPublishAsync(exchange: "", routingKey: queue, body: body, cancellationToken: token);
        Inbox<Delivery> deliveries = await channel.ConsumeAsync(queue, autoAck: true, token);
        Require((await deliveries.NextAsync(token)).Body.AsSpan().SequenceEqual(body), "not what was sent");
    }

    /// <summary>Return a factory for TLS; by default, an address with amqps accepts any name of the broker.</summary>
    private static ConnectionFactory TlsFactory()
    {
        var factory = new ConnectionFactory { Uri = Broker.TlsUrl };
        factory.Ssl.AcceptablePolicyErrors = SslPolicyErrors.None;
        return factory;
    }

    private static async Task TlsAsync(CancellationToken token)
    {
        ConnectionFactory trusting = TlsFactory();
        trusting.Ssl.CertificateValidationCallback = Broker.IsTrusted;
        await using (IConnection connection = await trusting.CreateConnectionAsync(token))
        {
            await using IChannel channel = await connection.CreateChannelAsync(cancellationToken: token);
            string queue = await channel.NewQueueAsync("tls", token);
            await channel.SendAsync(queue, "secret", token);
            await (await channel.ConsumeAsync(queue, autoAck: true, token)).ExpectAsync(token, "secret");
        }
        Cause<AuthenticationException>(await UnreachableAsync(TlsFactory(), token));
        ConnectionFactory mistaken = TlsFactory();
        mistaken.Ssl.CertificateValidationCallback = Broker.IsTrusted;
        mistaken.Ssl.ServerName = "elsewhere";
        Cause<AuthenticationException>(await UnreachableAsync(mistaken, token));
    }

    private static async Task WrongPasswordAsync(CancellationToken token)
    {
        ConnectionFactory factory = Broker.Factory();
        factory.Password = "wrong";
        var refusal = Cause<AuthenticationFailureException>(await UnreachableAsync(factory, token));
        // The client's error for 403.
        Require(refusal.Message.StartsWith("ACCESS_REFUSED", StringComparison.Ordinal), refusal.Message);
    }

    private static async Task<BrokerUnreachableException> UnreachableAsync(
        ConnectionFactory factory, CancellationToken token)
    {
        try
        {
            await using IConnection connection = await factory.CreateConnectionAsync(token);
        }
        catch (BrokerUnreachableException error)
        {
            return error;
        }
        throw new ScenarioException("connected");
    }

    /// <summary>The connection recovers with a queue that the broker names, its binding and its consumer.</summary>
    private static async Task SurviveAsync(string what, CancellationToken token)
    {
        await using IConnection connection = await OpenAsync(token);
        await using IChannel channel = await connection.CreateChannelAsync(Confirming, token);
        var told = new Inbox<string>();
        connection.ConnectionShutdownAsync += (_, reason) =>
        {
            told.Add($"{reason.Initiator} {reason.ReplyCode}");
            return Task.CompletedTask;
        };
        connection.RecoverySucceededAsync += (_, _) =>
        {
            told.Add("recovered");
            return Task.CompletedTask;
        };
        QueueDeclareOk named = await channel.QueueDeclareAsync(
            "", durable: false, exclusive: true, autoDelete: true, cancellationToken: token);
        await channel.QueueBindAsync(named.QueueName, "amq.topic", Name("news"), cancellationToken: token);
        Inbox<Delivery> news = await channel.ConsumeAsync(named.QueueName, autoAck: true, token);
        string durable = Name($"durable-{what}");
        await channel.QueueDeclareAsync(
            durable, durable: true, exclusive: false, autoDelete: false, cancellationToken: token);
        await channel.SendAsync(durable, "kept", new BasicProperties { Persistent = true }, token);
        await AskAsync(what, token);
        Same("Peer 320", await told.NextAsync(token));
        Same("recovered", await told.NextAsync(token));
        await channel.PublishAsync("amq.topic", Name("news"), token);
        await news.ExpectAsync(token, "news");
        await (await channel.ConsumeAsync(durable, autoAck: true, token)).ExpectAsync(token, "kept");
        await channel.QueueDeleteAsync(durable, ifUnused: false, ifEmpty: false, cancellationToken: token);
    }
}
