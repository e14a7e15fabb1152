using MassTransit;
using Matrix;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;
using static Matrix.Player;
using Host = Microsoft.Extensions.Hosting.Host;
using IHost = Microsoft.Extensions.Hosting.IHost;

namespace Service;

/// <summary>The service: it takes orders, retries those that fail, ships them later, and tells their state.</summary>
internal static class Job
{
    // Orders wait when something happens to the broker.
    private static readonly TimeSpan ShipsAfter = TimeSpan.FromSeconds(6);

    /// <summary>Start the service, give it orders, and let the harness do something in the middle.</summary>
    public static async Task DoAsync(string stem, string? disturbance, CancellationToken token)
    {
        string orders = Name($"{stem}.orders");
        string saga = Name($"{stem}.saga");
        string news = Name($"{stem}.news");
        string waitingRoom = Name($"{stem}.waiting");
        var delays = new Delays(
            await Queues.DelaysMessagesAsync(token), ShipsAfter, new Uri($"exchange:{waitingRoom}"));
        if (!delays.ByBroker)
        {
            await Queues.DeclareWaitingRoomAsync(waitingRoom, ShipsAfter, saga, token);
        }
        var shipped = new Inbox<Guid>();
        using IHost host = Build(delays, orders, saga, news, shipped);
        await host.StartAsync(token);
        try
        {
            await TakeOrdersAsync(host, orders, shipped, disturbance, token);
        }
        finally
        {
            await host.StopAsync(CancellationToken.None);
        }
    }

    private static IHost Build(Delays delays, string orders, string saga, string news, Inbox<Guid> shipped)
    {
        HostApplicationBuilder builder = Host.CreateApplicationBuilder();
        builder.Logging.ClearProviders();
        // The harness reads the other stream.
        builder.Logging.AddConsole(options => options.LogToStandardErrorThreshold = LogLevel.Trace);
        builder.Services.Configure<HostOptions>(options => options.ShutdownTimeout = TimeSpan.FromSeconds(10));
        builder.Services.Configure<MassTransitHostOptions>(options => options.WaitUntilStarted = true);
        builder.Services.AddSingleton(delays);
        builder.Services.AddSingleton<Attempts>();
        builder.Services.AddMassTransit(services =>
        {
            // By default, it tells its vendor how it is used.
            services.DisableUsageTelemetry();
            services.AddConsumer<SubmitOrderConsumer>();
            services.AddSagaStateMachine<OrderStateMachine, OrderState>().InMemoryRepository();
            services.AddRequestClient<GetOrderStatus>(new Uri($"exchange:{saga}"));
            services.UsingRabbitMq((context, bus) =>
            {
                bus.Host(Broker.Url.Host, (ushort)Broker.Url.Port, "/", settings =>
                {
                    (string user, string password) = Broker.Credentials(Broker.Url);
                    settings.Username(user);
                    settings.Password(password);
                });
                if (delays.ByBroker)
                {
                    bus.UseDelayedMessageScheduler();
                }
                bus.ReceiveEndpoint(orders, endpoint =>
                {
                    endpoint.UseMessageRetry(retry => retry.Immediate(2));
                    endpoint.ConfigureConsumer<SubmitOrderConsumer>(context);
                });
                bus.ReceiveEndpoint(saga, endpoint => endpoint.ConfigureSaga<OrderState>(context));
                bus.ReceiveEndpoint(news, endpoint => endpoint.Handler<OrderShipped>(told =>
                {
                    shipped.Add(told.Message.OrderId);
                    return Task.CompletedTask;
                }));
            });
        });
        return builder.Build();
    }

    private static async Task TakeOrdersAsync(
        IHost host, string orders, Inbox<Guid> shipped, string? disturbance, CancellationToken token)
    {
        var attempts = host.Services.GetRequiredService<Attempts>();
        ISendEndpoint submit =
            await host.Services.GetRequiredService<IBus>().GetSendEndpoint(new Uri($"exchange:{orders}"));

        Guid hopeless = NewId.NextGuid();
        await submit.Send(new SubmitOrder { OrderId = hopeless, Failures = 3 }, token);
        await EventuallyAsync(
            "the failed order is not in the error queue",
            () => Queues.TakesFailedAsync($"{orders}_error", $"order {hopeless} fails", token),
            token);
        Same(3, attempts.Of(hopeless));

        Guid waiting = NewId.NextGuid();
        await submit.Send(new SubmitOrder { OrderId = waiting, Failures = 2 }, token);
        await BecomesAsync(host, waiting, "Waiting", token);
        Same(3, attempts.Of(waiting));
        if (disturbance is not null)
        {
            await AskAsync(disturbance, token);
        }
        await ShipsAsync(waiting, shipped, token);
        await BecomesAsync(host, waiting, "Shipped", token);

        Guid later = NewId.NextGuid();
        await EventuallyAsync(
            "no order can be submitted afterwards",
            async () =>
            {
                await submit.Send(new SubmitOrder { OrderId = later }, token);
                return true;
            },
            token);
        await ShipsAsync(later, shipped, token);
    }

    /// <summary>Ask the service for an order until it is in the state.</summary>
    private static async Task BecomesAsync(IHost host, Guid order, string state, CancellationToken token)
    {
        await using AsyncServiceScope scope = host.Services.CreateAsyncScope();
        var client = scope.ServiceProvider.GetRequiredService<IRequestClient<GetOrderStatus>>();
        await EventuallyAsync(
            $"the order does not become {state}",
            async () =>
            {
                Response<OrderStatus> response = await client.GetResponse<OrderStatus>(
                    new GetOrderStatus { OrderId = order }, token, RequestTimeout.After(s: 3));
                return response.Message.State == state;
            },
            token);
    }

    /// <summary>Wait for the news of a shipment; news of an earlier one may come twice.</summary>
    private static async Task ShipsAsync(Guid order, Inbox<Guid> shipped, CancellationToken token)
    {
        while (await shipped.NextAsync(token) != order)
        {
        }
    }
}
