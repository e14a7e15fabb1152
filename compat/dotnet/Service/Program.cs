using Matrix;
using Service;

// The arguments are scenarios. In each, the service does its whole job, and something happens in the middle of it.
await Player.PlayAsync(
    args,
    new Dictionary<string, Scenario>
    {
        ["connect"] = token => Job.DoAsync("connect", disturbance: null, token),
        ["forced_close"] = token => Job.DoAsync("forced_close", "CLOSE", token),
        ["reconnect"] = token => Job.DoAsync("reconnect", "RESTART", token),
    },
    otherwise: "its whole job is in connect, forced_close and reconnect");
