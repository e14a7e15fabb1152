using MassTransit;

namespace Service;

/// <summary>How messages are delayed: by the broker's delayed exchanges, or in a queue with a TTL.</summary>
public sealed record Delays(bool ByBroker, TimeSpan Time, Uri WaitingRoom);

/// <summary>An order that was accepted.</summary>
public sealed class OrderState : SagaStateMachineInstance
{
    public Guid CorrelationId { get; set; }

    public string CurrentState { get; set; } = null!;

    public Guid? ShipmentTokenId { get; set; }
}

/// <summary>Ships orders a while after they were accepted, and answers questions about them.</summary>
public sealed class OrderStateMachine : MassTransitStateMachine<OrderState>
{
    public OrderStateMachine(Delays delays)
    {
        InstanceState(order => order.CurrentState);
        Event(() => Accepted, accepted => accepted.CorrelateById(context => context.Message.OrderId));
        Event(() => StatusAsked, asked =>
        {
            asked.CorrelateById(context => context.Message.OrderId);
            asked.OnMissingInstance(missing => missing.ExecuteAsync(
                context => context.RespondAsync(new OrderStatus { State = "unknown" })));
        });
        Schedule(() => Shipment, order => order.ShipmentTokenId, shipment =>
        {
            shipment.Delay = delays.Time;
            shipment.Received = due => due.CorrelateById(context => context.Message.OrderId);
        });
        Initially(
            When(Accepted)
                .IfElse(
                    _ => delays.ByBroker,
                    accepted => accepted.Schedule(
                        Shipment, context => new ShipmentDue { OrderId = context.Message.OrderId }),
                    accepted => accepted.ThenAsync(async context =>
                    {
                        ISendEndpoint waitingRoom = await context.GetSendEndpoint(delays.WaitingRoom);
                        await waitingRoom.Send(new ShipmentDue { OrderId = context.Message.OrderId });
                    }))
                .TransitionTo(Waiting));
        During(
            Waiting,
            When(Shipment.Received)
                .Publish(context => new OrderShipped { OrderId = context.Message.OrderId })
                .TransitionTo(Shipped));
        DuringAny(
            When(StatusAsked)
                .Respond(context => new OrderStatus { State = context.Saga.CurrentState }));
    }

    public State Waiting { get; private set; } = null!;

    public State Shipped { get; private set; } = null!;

    public Event<OrderAccepted> Accepted { get; private set; } = null!;

    public Event<GetOrderStatus> StatusAsked { get; private set; } = null!;

    public Schedule<OrderState, ShipmentDue> Shipment { get; private set; } = null!;
}
