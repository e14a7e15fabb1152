using MassTransit;
using static Matrix.Player;

namespace Matrix;

/// <summary>The message of most scenarios.</summary>
public sealed record Note
{
    public string Text { get; init; } = "";
}

/// <summary>A note as it arrived.</summary>
internal sealed record Received(string Text, bool IsRedelivered, Guid? MessageId, string? Color);

/// <summary>A started bus of MassTransit with one receive endpoint, whose notes arrive in an inbox.</summary>
internal sealed class App : IAsyncDisposable
{
    private App(IBusControl bus, Uri address, Inbox<Received> notes)
    {
        Bus = bus;
        Address = address;
        Notes = notes;
    }

    /// <summary>The bus, which the app stops.</summary>
    public IBusControl Bus { get; }

    /// <summary>The address of the endpoint.</summary>
    public Uri Address { get; }

    /// <summary>The notes that have arrived.</summary>
    public Inbox<Received> Notes { get; }

    /// <summary>Start a bus; `handle` runs after a note is in the inbox, and before it is acked.</summary>
    public static async Task<App> StartAsync(
        string queue,
        CancellationToken token,
        Action<IRabbitMqReceiveEndpointConfigurator>? configure = null,
        Func<Task>? handle = null,
        Action<IRabbitMqHostConfigurator>? overTls = null)
    {
        var notes = new Inbox<Received>();
        Uri? address = null;
        IBusControl bus = Create(overTls is null ? Broker.Url : Broker.TlsUrl, overTls, queue, endpoint =>
        {
            configure?.Invoke(endpoint);
            endpoint.Handler<Note>(context =>
            {
                notes.Add(new Received(
                    context.Message.Text, context.ReceiveContext.Redelivered, context.MessageId,
                    context.Headers.Get<string>("color")));
                return handle?.Invoke() ?? Task.CompletedTask;
            });
            // Nothing may be configured after it was read.
            address = endpoint.InputAddress;
        });
        await bus.StartAsync(token);
        return new App(bus, address ?? throw new ScenarioException("the endpoint has no address"), notes);
    }

    /// <summary>Return a bus that is not started, with one receive endpoint.</summary>
    public static IBusControl Create(
        Uri url,
        Action<IRabbitMqHostConfigurator>? host,
        string queue,
        Action<IRabbitMqReceiveEndpointConfigurator> configure) =>
        MassTransit.Bus.Factory.CreateUsingRabbitMq(bus =>
        {
            bus.Host(url.Host, (ushort)url.Port, "/", settings =>
            {
                (string user, string password) = Broker.Credentials(url);
                settings.Username(user);
                settings.Password(password);
                settings.PublisherConfirmation = true;
                host?.Invoke(settings);
            });
            bus.ReceiveEndpoint(queue, endpoint =>
            {
                // Notes are sent to the endpoint, so the exchange of their type needs no binding.
                endpoint.ConfigureConsumeTopology = false;
                configure(endpoint);
            });
        });

    /// <summary>Send a note to the endpoint; this ends when the broker has confirmed it.</summary>
    public Task SendAsync(string text, CancellationToken token, Action<SendContext<Note>>? configure = null) =>
        SendAsync(Address, text, token, configure);

    /// <summary>Send a note to an address.</summary>
    public async Task SendAsync(
        Uri address, string text, CancellationToken token, Action<SendContext<Note>>? configure = null)
    {
        ISendEndpoint endpoint = await Bus.GetSendEndpoint(address);
        await endpoint.Send(new Note { Text = text }, context => configure?.Invoke(context), token);
    }

    /// <summary>Send notes until one arrives: those that are sent while the endpoint is away may be lost.</summary>
    public Task ConsumesAgainAsync(CancellationToken token) =>
        EventuallyAsync(
            "the endpoint does not consume again",
            async () =>
            {
                await SendAsync("again", token);
                return await Notes.ComesSoonAsync(token);
            },
            token);

    /// <summary>Stop the bus.</summary>
    public async ValueTask DisposeAsync()
    {
        using var patience = new CancellationTokenSource(TimeSpan.FromSeconds(10));
        try
        {
            await Bus.StopAsync(patience.Token);
        }
        catch (OperationCanceledException error)
        {
            // After a failure, handlers may wait for what does not happen; the failure is the one to report.
            await Console.Error.WriteLineAsync(error.ToString());
        }
    }
}
