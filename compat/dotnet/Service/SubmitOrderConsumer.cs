using System.Collections.Concurrent;
using MassTransit;

namespace Service;

/// <summary>The number of attempts at each order.</summary>
public sealed class Attempts
{
    private readonly ConcurrentDictionary<Guid, int> _counts = new();

    public int Of(Guid order) => _counts.GetValueOrDefault(order);

    public void Count(Guid order) => _counts.AddOrUpdate(order, 1, (_, count) => count + 1);
}

/// <summary>Accepts orders, some of them only after retries.</summary>
public sealed class SubmitOrderConsumer(Attempts attempts) : IConsumer<SubmitOrder>
{
    public async Task Consume(ConsumeContext<SubmitOrder> context)
    {
        Guid order = context.Message.OrderId;
        attempts.Count(order);
        if (context.GetRetryAttempt() < context.Message.Failures)
        {
            throw new InvalidOperationException($"order {order} fails");
        }
        await context.Publish(new OrderAccepted { OrderId = order });
    }
}
