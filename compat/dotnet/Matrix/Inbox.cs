using System.Threading.Channels;

namespace Matrix;

/// <summary>Events in the order in which callbacks add them.</summary>
internal sealed class Inbox<T>
{
    private readonly Channel<T> _arrived = Channel.CreateUnbounded<T>();

    /// <summary>Add an event.</summary>
    public void Add(T item) => _arrived.Writer.TryWrite(item);

    /// <summary>Return the next event; one that does not come is a failure.</summary>
    public async Task<T> NextAsync(CancellationToken token)
    {
        using var patience = CancellationTokenSource.CreateLinkedTokenSource(token);
        patience.CancelAfter(Player.Patience);
        try
        {
            return await _arrived.Reader.ReadAsync(patience.Token);
        }
        catch (OperationCanceledException)
        {
            throw new ScenarioException("nothing came");
        }
    }

    /// <summary>Return the next events.</summary>
    public async Task<List<T>> NextAsync(int count, CancellationToken token)
    {
        List<T> items = [];
        while (items.Count < count)
        {
            items.Add(await NextAsync(token));
        }
        return items;
    }

    /// <summary>Require that no event comes for a while.</summary>
    public async Task NoneAsync(CancellationToken token)
    {
        await Task.Delay(TimeSpan.FromMilliseconds(300), token);
        if (_arrived.Reader.TryRead(out T? item))
        {
            throw new ScenarioException($"unexpected: {item}");
        }
    }

    /// <summary>Return whether an event comes soon, and drop it.</summary>
    public async Task<bool> ComesSoonAsync(CancellationToken token)
    {
        using var soon = CancellationTokenSource.CreateLinkedTokenSource(token);
        soon.CancelAfter(TimeSpan.FromMilliseconds(500));
        try
        {
            await _arrived.Reader.ReadAsync(soon.Token);
            return true;
        }
        catch (OperationCanceledException) when (!token.IsCancellationRequested)
        {
            return false;
        }
    }
}
