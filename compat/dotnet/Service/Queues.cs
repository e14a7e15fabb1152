using System.Text;
using Matrix;
using RabbitMQ.Client;
using RabbitMQ.Client.Exceptions;
using static Matrix.Player;

namespace Service;

/// <summary>The service's needs beyond MassTransit, with RabbitMQ's client.</summary>
internal static class Queues
{
    /// <summary>Return whether the broker has delayed exchanges; RabbitMQ has them with a plugin.</summary>
    public static async Task<bool> DelaysMessagesAsync(CancellationToken token)
    {
        ConnectionFactory factory = Broker.Factory();
        // An unknown type ends the connection.
        factory.AutomaticRecoveryEnabled = false;
        await using IConnection connection = await factory.CreateConnectionAsync(token);
        await using IChannel channel = await connection.CreateChannelAsync(cancellationToken: token);
        try
        {
            await channel.ExchangeDeclareAsync(
                Name("delays"), "x-delayed-message", durable: false, autoDelete: false,
                arguments: new Dictionary<string, object?> { ["x-delayed-type"] = ExchangeType.Fanout },
                cancellationToken: token);
        }
        catch (OperationInterruptedException error) when (error.ShutdownReason?.ReplyCode is 503 or 406)
        {
            return false;
        }
        await channel.ExchangeDeleteAsync(Name("delays"), cancellationToken: token);
        return true;
    }

    /// <summary>Declare a queue, and its exchange, that passes messages on to another exchange after a time.</summary>
    public static async Task DeclareWaitingRoomAsync(
        string name, TimeSpan time, string exchange, CancellationToken token)
    {
        await using IConnection connection = await Broker.Factory().CreateConnectionAsync(token);
        await using IChannel channel = await connection.CreateChannelAsync(cancellationToken: token);
        var arguments = new Dictionary<string, object?>
        {
            [Headers.XMessageTTL] = (int)time.TotalMilliseconds,
            [Headers.XDeadLetterExchange] = exchange,
        };
        await channel.ExchangeDeclareAsync(
            name, ExchangeType.Fanout, durable: true, autoDelete: false, cancellationToken: token);
        await channel.QueueDeclareAsync(
            name, durable: true, exclusive: false, autoDelete: false, arguments: arguments, cancellationToken: token);
        await channel.QueueBindAsync(name, name, "", cancellationToken: token);
    }

    /// <summary>Take a message from an error queue, and require that it failed for this reason.</summary>
    public static async Task<bool> TakesFailedAsync(string queue, string reason, CancellationToken token)
    {
        await using IConnection connection = await Broker.Factory().CreateConnectionAsync(token);
        await using IChannel channel = await connection.CreateChannelAsync(cancellationToken: token);
        BasicGetResult? failed = await channel.BasicGetAsync(queue, autoAck: true, token);
        if (failed is null)
        {
            return false;
        }
        Same(reason, Encoding.UTF8.GetString((byte[])failed.BasicProperties.Headers!["MT-Fault-Message"]!));
        return true;
    }
}
