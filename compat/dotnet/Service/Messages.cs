namespace Service;

/// <summary>Submit an order; the consumer fails this many times before it accepts it.</summary>
public sealed record SubmitOrder
{
    public Guid OrderId { get; init; }

    public int Failures { get; init; }
}

/// <summary>An order begins.</summary>
public sealed record OrderAccepted
{
    public Guid OrderId { get; init; }
}

/// <summary>Comes a while after an order was accepted.</summary>
public sealed record ShipmentDue
{
    public Guid OrderId { get; init; }
}

/// <summary>An order is complete.</summary>
public sealed record OrderShipped
{
    public Guid OrderId { get; init; }
}

/// <summary>A request for the state of an order.</summary>
public sealed record GetOrderStatus
{
    public Guid OrderId { get; init; }
}

/// <summary>The state of an order, or "unknown".</summary>
public sealed record OrderStatus
{
    public string State { get; init; } = "";
}
