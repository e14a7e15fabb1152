using Matrix;

// The arguments are the client and the scenarios.
switch (args)
{
    case ["rabbitmq.client", .. var names]:
        await Player.PlayAsync(names, RabbitMqClient.Scenarios);
        return 0;
    case ["masstransit", .. var names]:
        await Player.PlayAsync(names, MassTransitClient.Scenarios);
        return 0;
    default:
        Console.Error.WriteLine("the first argument is rabbitmq.client or masstransit");
        return 64;
}
