using System.Net.Security;
using System.Security.Authentication;
using MassTransit;
using static Matrix.Player;
using AuthenticationFailureException = RabbitMQ.Client.Exceptions.AuthenticationFailureException;
using PublishException = RabbitMQ.Client.Exceptions.PublishException;

namespace Matrix;

/// <summary>A message that nothing consumes.</summary>
public sealed record Lost;

/// <summary>A request.</summary>
public sealed record Question
{
    public string Text { get; init; } = "";
}

/// <summary>A response.</summary>
public sealed record Answer
{
    public string Text { get; init; } = "";
}

/// <summary>MassTransit without a container: buses with receive endpoints.</summary>
internal static class MassTransitClient
{
    public static readonly IReadOnlyDictionary<string, Scenario> Scenarios = new Dictionary<string, Scenario>
    {
        ["connect"] = ConnectAsync,
        ["topology"] = Unsupported("it declares by message types, never passively, and unbinds nothing"),
        ["confirms"] = ConfirmsAsync,
        ["returns"] = ReturnsAsync,
        ["consume"] = ConsumeAsync,
        ["requeue"] = RequeueAsync,
        ["dead_letter"] = Unsupported("it moves failed messages to an error queue itself, and rejects none"),
        ["ttl"] = TtlAsync,
        ["priority"] = PriorityAsync,
        ["rpc"] = RpcAsync,
        ["server_named"] = Unsupported("it names its temporary queues itself"),
        ["cancel"] = CancelAsync,
        ["stream"] = StreamAsync,
        ["large"] = LargeAsync,
        ["tls"] = TlsAsync,
        ["wrong_password"] = WrongPasswordAsync,
        ["forced_close"] = token => SurviveAsync("CLOSE", token),
        ["reconnect"] = token => SurviveAsync("RESTART", token),
    };

    /// <summary>Require these texts in any order: an endpoint handles several messages at once.</summary>
    private static void SameSet(IEnumerable<string> expected, IEnumerable<Received> notes) =>
        Same(
            string.Join(", ", expected.Order(StringComparer.Ordinal)),
            string.Join(", ", notes.Select(note => note.Text).Order(StringComparer.Ordinal)));

    private static IEnumerable<string> Numbers(int first, int count) =>
        Enumerable.Range(first, count).Select(number => $"{number}");

    private static async Task ConnectAsync(CancellationToken token)
    {
        await using App app = await App.StartAsync(Name("connect"), token);
        Guid id = NewId.NextGuid();
        await app.SendAsync("hello", token, context =>
        {
            context.MessageId = id;
            context.Headers.Set("color", "blue");
        });
        Same(new Received("hello", IsRedelivered: false, id, "blue"), await app.Notes.NextAsync(token));
    }

    private static async Task ConfirmsAsync(CancellationToken token)
    {
        await using App app = await App.StartAsync(Name("confirms"), token);
        await Task.WhenAll(Numbers(0, 100).Select(text => app.SendAsync(text, token)));
        SameSet(Numbers(0, 100), await app.Notes.NextAsync(100, token));
    }

    private static async Task ReturnsAsync(CancellationToken token)
    {
        await using App app = await App.StartAsync(Name("returns"), token);
        try
        {
            await app.Bus.Publish(new Lost(), context => { context.Mandatory = true; }, token);
        }
        catch (MessageReturnedException error)
        {
            Require(Cause<PublishException>(error).IsReturn, "nacked, not returned");
            return;
        }
        throw new ScenarioException("confirmed as if it had been routed");
    }

    private static async Task ConsumeAsync(CancellationToken token)
    {
        using var gate = new SemaphoreSlim(0);
        await using App app = await App.StartAsync(
            Name("consume"), token, endpoint => { endpoint.PrefetchCount = 3; }, () => gate.WaitAsync(token));
        foreach (string text in Numbers(0, 10))
        {
            await app.SendAsync(text, token);
        }
        SameSet(Numbers(0, 3), await app.Notes.NextAsync(3, token));
        await app.Notes.NoneAsync(token);
        gate.Release();
        SameSet(Numbers(3, 1), await app.Notes.NextAsync(1, token));
        await app.Notes.NoneAsync(token);
        gate.Release(9);
        SameSet(Numbers(4, 6), await app.Notes.NextAsync(6, token));
    }

    /// <summary>Without the error queue, a message whose handler fails is nacked with requeue.</summary>
    private static async Task RequeueAsync(CancellationToken token)
    {
        int attempts = 0;
        await using App app = await App.StartAsync(
            Name("requeue"), token, endpoint => endpoint.RethrowFaultedMessages(),
            () => Interlocked.Increment(ref attempts) == 1
                ? throw new InvalidOperationException("once more, please")
                : Task.CompletedTask);
        await app.SendAsync("again", token);
        Received first = await app.Notes.NextAsync(token);
        Require(!first.IsRedelivered, "the first delivery is marked as redelivered");
        Received second = await app.Notes.NextAsync(token);
        Require(second.IsRedelivered, "the second delivery is not marked as redelivered");
        Same(first.MessageId, second.MessageId);
    }

    /// <summary>Messages expire behind one that is being handled.</summary>
    private static async Task TtlAsync(CancellationToken token)
    {
        string dead = Name("dead");
        await using App graveyard = await App.StartAsync(dead, token);
        using var gate = new SemaphoreSlim(0);
        await using App own = await StartBusyAsync("own", token, gate, endpoint => endpoint.DeadLetterExchange = dead);
        await own.SendAsync("own", token, context => context.TimeToLive = TimeSpan.FromMilliseconds(100));
        Same("own", (await graveyard.Notes.NextAsync(token)).Text);
        await using App all = await StartBusyAsync("all", token, gate, endpoint =>
        {
            endpoint.DeadLetterExchange = dead;
            endpoint.SetQueueArgument("x-message-ttl", 200);
        });
        await all.SendAsync("all", token);
        Same("all", (await graveyard.Notes.NextAsync(token)).Text);
        gate.Release(2);
    }

    private static async Task PriorityAsync(CancellationToken token)
    {
        using var gate = new SemaphoreSlim(0);
        await using App app = await StartBusyAsync("priority", token, gate, endpoint => endpoint.EnablePriority(5));
        foreach (byte priority in new byte[] { 1, 5, 3 })
        {
            await app.SendAsync($"{priority}", token, context => context.SetPriority(priority));
        }
        gate.Release(4);
        Same("5, 3, 1", string.Join(", ", (await app.Notes.NextAsync(3, token)).Select(note => note.Text)));
    }

    /// <summary>Start an endpoint that handles one note at a time, and begins with one.</summary>
    private static async Task<App> StartBusyAsync(
        string stem,
        CancellationToken token,
        SemaphoreSlim gate,
        Action<IRabbitMqReceiveEndpointConfigurator> configure)
    {
        App app = await App.StartAsync(
            Name(stem), token,
            endpoint =>
            {
                endpoint.PrefetchCount = 1;
                configure(endpoint);
            },
            () => gate.WaitAsync(token));
        await app.SendAsync("busy", token);
        Same("busy", (await app.Notes.NextAsync(token)).Text);
        return app;
    }

    private static async Task RpcAsync(CancellationToken token)
    {
        var addresses = new Inbox<string?>();
        await using App app = await App.StartAsync(Name("rpc"), token, endpoint =>
            endpoint.Handler<Question>(context =>
            {
                context.TryGetPayload(out RabbitMqBasicConsumeContext? basic);
                addresses.Add(basic?.Properties.ReplyTo);
                return context.RespondAsync(new Answer { Text = context.Message.Text.ToUpperInvariant() });
            }));
        IClientFactory clients = app.Bus.CreateReplyToClientFactory(RequestTimeout.After(s: 15));
        IRequestClient<Question> client = clients.CreateRequestClient<Question>(app.Address);
        foreach (string text in new[] { "question", "and another" })
        {
            Response<Answer> response = await client.GetResponse<Answer>(new Question { Text = text }, token);
            Same(text.ToUpperInvariant(), response.Message.Text);
            string address = await addresses.NextAsync(token) ?? "";
            Require(
                address.StartsWith("amq.rabbitmq.reply-to.", StringComparison.Ordinal), $"the address is {address}");
        }
    }

    /// <summary>The endpoint is told that its queue is gone, and declares and consumes it again.</summary>
    private static async Task CancelAsync(CancellationToken token)
    {
        string queue = Name("cancel");
        await using App app = await App.StartAsync(queue, token);
        await app.SendAsync("1", token);
        Same("1", (await app.Notes.NextAsync(token)).Text);
        await Channels.DeleteQueueAsync(queue, token);
        await app.ConsumesAgainAsync(token);
    }

    private static async Task StreamAsync(CancellationToken token)
    {
        string queue = Name("stream");
        await using (App app = await ReadAsync(queue, token, stream => stream.FromFirst()))
        {
            foreach (string text in Numbers(0, 10))
            {
                await app.SendAsync(text, token);
            }
            SameSet(Numbers(0, 10), await app.Notes.NextAsync(10, token));
        }
        await using (App app = await ReadAsync(queue, token, stream => stream.FromFirst()))
        {
            SameSet(Numbers(0, 10), await app.Notes.NextAsync(10, token));
        }
        await using (App app = await ReadAsync(queue, token, stream => stream.FromOffset(7)))
        {
            SameSet(Numbers(7, 3), await app.Notes.NextAsync(3, token));
            await app.Notes.NoneAsync(token);
        }
        await Channels.DeleteQueueAsync(queue, token);
    }

    private static Task<App> ReadAsync(
        string queue, CancellationToken token, Action<IRabbitMqStreamConfigurator> configure) =>
        App.StartAsync(queue, token, endpoint =>
        {
            endpoint.PrefetchCount = 10;
            endpoint.Stream(configure);
        });

    /// <summary>The broker accepts 16 MiB, and the note has an envelope.</summary>
    private static async Task LargeAsync(CancellationToken token)
    {
        await using App app = await App.StartAsync(Name("large"), token);
        const string letters = "abcdefghijklmnopqrstuvwxyz0123456789";
        string text = string.Create(
            (16 << 20) - (16 << 10), letters, (span, alphabet) =>
            {
                for (int i = 0; i < span.Length; i++)
                {
                    span[i] = alphabet[i * 31 % alphabet.Length];
                }
            });
        await app.SendAsync(text, token);
        Require((await app.Notes.NextAsync(token)).Text == text, "not what was sent");
    }

    private static async Task TlsAsync(CancellationToken token)
    {
        Action<IRabbitMqHostConfigurator> trusting = host => host.UseSsl(tls =>
        {
            tls.Protocol = SslProtocols.None;
            tls.CertificateValidationCallback = Broker.IsTrusted;
        });
        await using (App app = await App.StartAsync(Name("tls"), token, overTls: trusting))
        {
            await app.SendAsync("secret", token);
            Same("secret", (await app.Notes.NextAsync(token)).Text);
        }
        Action<IRabbitMqHostConfigurator> strict = host => host.UseSsl(tls =>
        {
            tls.Protocol = SslProtocols.None;
            // By default, MassTransit accepts any authority.
            tls.EnforcePolicyErrors(
                SslPolicyErrors.RemoteCertificateChainErrors | SslPolicyErrors.RemoteCertificateNameMismatch);
        });
        Cause<AuthenticationException>(await RefusalAsync(Broker.TlsUrl, strict, token));
    }

    private static async Task WrongPasswordAsync(CancellationToken token)
    {
        Exception refusal = await RefusalAsync(Broker.Url, host => host.Password("wrong"), token);
        string reason = Cause<AuthenticationFailureException>(refusal).Message;
        // The client's error for 403.
        Require(reason.StartsWith("ACCESS_REFUSED", StringComparison.Ordinal), reason);
    }

    /// <summary>Return the error of a bus that cannot connect, which would try again for ever.</summary>
    private static async Task<Exception> RefusalAsync(
        Uri url, Action<IRabbitMqHostConfigurator> host, CancellationToken token)
    {
        var faults = new FaultObserver();
        IBusControl bus = App.Create(
            url, host, Name("refused"), endpoint => endpoint.ConnectReceiveEndpointObserver(faults));
        using var patience = CancellationTokenSource.CreateLinkedTokenSource(token);
        patience.CancelAfter(Patience);
        Task<BusHandle> starting = bus.StartAsync(patience.Token);
        Task<Exception> fault = faults.Faults.NextAsync(token);
        try
        {
            if (await Task.WhenAny(fault, starting) == fault)
            {
                return await fault;
            }
            await starting;
        }
        catch (Exception error) when (starting.IsFaulted || starting.IsCanceled)
        {
            return error;
        }
        finally
        {
            await patience.CancelAsync();
        }
        await bus.StopAsync(token);
        throw new ScenarioException("connected");
    }

    /// <summary>The bus connects again; a durable message is there when its endpoint is.</summary>
    private static async Task SurviveAsync(string what, CancellationToken token)
    {
        string durable = Name($"durable-{what}");
        Uri kept;
        await using (App declaring = await App.StartAsync(durable, token))
        {
            kept = declaring.Address;
        }
        await using App app = await App.StartAsync(Name($"news-{what}"), token);
        await app.SendAsync(kept, "kept", token);
        await app.SendAsync("before", token);
        Same("before", (await app.Notes.NextAsync(token)).Text);
        await AskAsync(what, token);
        await app.ConsumesAgainAsync(token);
        await using App later = await App.StartAsync(durable, token);
        Same("kept", (await later.Notes.NextAsync(token)).Text);
    }

    private sealed class FaultObserver : IReceiveEndpointObserver
    {
        public Inbox<Exception> Faults { get; } = new();

        public Task Ready(ReceiveEndpointReady ready) => Task.CompletedTask;

        public Task Stopping(ReceiveEndpointStopping stopping) => Task.CompletedTask;

        public Task Completed(ReceiveEndpointCompleted completed) => Task.CompletedTask;

        public Task Faulted(ReceiveEndpointFaulted faulted)
        {
            Faults.Add(faulted.Exception ?? new ScenarioException("a fault without an exception"));
            return Task.CompletedTask;
        }
    }
}
