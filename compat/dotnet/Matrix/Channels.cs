using System.Text;
using RabbitMQ.Client;
using RabbitMQ.Client.Events;
using RabbitMQ.Client.Exceptions;
using static Matrix.Player;

namespace Matrix;

/// <summary>A delivery with a copy of its body, as the client reuses the memory.</summary>
internal sealed record Delivery(ulong Tag, bool IsRedelivered, IReadOnlyBasicProperties Properties, byte[] Body)
{
    public string Text => Encoding.UTF8.GetString(Body);
}

/// <summary>Common steps of the scenarios with RabbitMQ's client.</summary>
internal static class Channels
{
    /// <summary>Declare an exclusive queue and return its name.</summary>
    public static async Task<string> NewQueueAsync(
        this IChannel channel, string stem, CancellationToken token, Dictionary<string, object?>? arguments = null)
    {
        QueueDeclareOk declared = await channel.QueueDeclareAsync(
            Name(stem), durable: false, exclusive: true, autoDelete: true, arguments: arguments,
            cancellationToken: token);
        return declared.QueueName;
    }

    /// <summary>Send a text to a queue.</summary>
    public static Task SendAsync(this IChannel channel, string queue, string body, CancellationToken token) =>
        channel.SendAsync(queue, body, new BasicProperties(), token);

    /// <summary>Send a text with properties to a queue.</summary>
    public static async Task SendAsync(
        this IChannel channel, string queue, string body, BasicProperties properties, CancellationToken token) =>
        await channel.BasicPublishAsync(
            exchange: "", routingKey: queue, mandatory: false, basicProperties: properties,
            body: Encoding.UTF8.GetBytes(body), cancellationToken: token);

    /// <summary>Publish "news" to an exchange.</summary>
    public static async Task PublishAsync(
        this IChannel channel, string exchange, string key, CancellationToken token) =>
        await channel.BasicPublishAsync(
            exchange: exchange, routingKey: key, body: "news"u8.ToArray(), cancellationToken: token);

    /// <summary>Consume a queue into an inbox.</summary>
    public static async Task<Inbox<Delivery>> ConsumeAsync(
        this IChannel channel, string queue, bool autoAck, CancellationToken token,
        Dictionary<string, object?>? arguments = null)
    {
        var deliveries = new Inbox<Delivery>();
        var consumer = new AsyncEventingBasicConsumer(channel);
        consumer.ReceivedAsync += (_, delivery) =>
        {
            deliveries.Add(new Delivery(
                delivery.DeliveryTag, delivery.Redelivered, delivery.BasicProperties, delivery.Body.ToArray()));
            return Task.CompletedTask;
        };
        await channel.BasicConsumeAsync(
            queue: queue, autoAck: autoAck, consumerTag: "", noLocal: false, exclusive: false, arguments: arguments,
            consumer: consumer, cancellationToken: token);
        return deliveries;
    }

    /// <summary>Require that these texts come next.</summary>
    public static async Task ExpectAsync(
        this Inbox<Delivery> deliveries, CancellationToken token, params string[] bodies)
    {
        foreach (string body in bodies)
        {
            Same(body, (await deliveries.NextAsync(token)).Text);
        }
    }

    /// <summary>Require that the work ends a new channel with the reply code, and leaves the connection open.</summary>
    public static async Task RefusedAsync(
        this IConnection connection, int code, Func<IChannel, Task> work, CancellationToken token)
    {
        await using IChannel channel = await connection.CreateChannelAsync(cancellationToken: token);
        try
        {
            await work(channel);
        }
        catch (OperationInterruptedException error)
        {
            Require(error.ShutdownReason?.ReplyCode == code, $"not refused with {code}: {error.Message}");
            Require(channel.IsClosed, "the channel stays open");
            Require(connection.IsOpen, "the connection does not stay open");
            return;
        }
        throw new ScenarioException($"not refused with {code}");
    }

    /// <summary>Delete a queue over a connection of its own.</summary>
    public static async Task DeleteQueueAsync(string queue, CancellationToken token)
    {
        await using IConnection connection = await Broker.Factory().CreateConnectionAsync(token);
        await using IChannel channel = await connection.CreateChannelAsync(cancellationToken: token);
        await channel.QueueDeleteAsync(queue, ifUnused: false, ifEmpty: false, cancellationToken: token);
    }

    /// <summary>Return a string of a table, which arrives as octets.</summary>
    public static string Decoded(object? value) => Encoding.UTF8.GetString((byte[])value!);
}
