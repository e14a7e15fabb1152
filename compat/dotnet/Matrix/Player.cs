using System.Diagnostics;
using System.Diagnostics.CodeAnalysis;
using System.Text.RegularExpressions;

namespace Matrix;

/// <summary>A scenario; it throws if it goes wrong.</summary>
internal delegate Task Scenario(CancellationToken token);

/// <summary>A scenario that went wrong.</summary>
internal sealed class ScenarioException(string message, Exception? cause = null) : Exception(message, cause);

/// <summary>A scenario that the client does not support.</summary>
internal sealed class UnsupportedException(string reason) : Exception(reason);

/// <summary>The lines that are spoken with the harness, and checks.</summary>
internal static partial class Player
{
    /// <summary>The longest wait for a single event.</summary>
    public static readonly TimeSpan Patience = TimeSpan.FromSeconds(30);

    // The harness ends a program that is silent for longer.
    private static readonly TimeSpan Longest = TimeSpan.FromSeconds(100);

    /// <summary>Play the scenarios and report each; `otherwise` is the reason not to support any other.</summary>
    public static async Task PlayAsync(
        IEnumerable<string> names, IReadOnlyDictionary<string, Scenario> scenarios, string? otherwise = null)
    {
        foreach (string name in names)
        {
            Scenario? scenario = scenarios.GetValueOrDefault(name);
            if (scenario is null && otherwise is not null)
            {
                scenario = Unsupported(otherwise);
            }
            Console.WriteLine($"RESULT {name} {await OutcomeAsync(scenario)}");
        }
    }

    /// <summary>Return a scenario that the client does not support.</summary>
    public static Scenario Unsupported(string reason) => _ => throw new UnsupportedException(reason);

    /// <summary>Let the harness restart the broker ("RESTART") or close all connections ("CLOSE").</summary>
    public static async Task AskAsync(string what, CancellationToken token)
    {
        Console.WriteLine(what);
        Same("DONE", await Console.In.ReadLineAsync(token));
    }

    /// <summary>Return a unique name of a queue or exchange.</summary>
    public static string Name(string stem) => $"{Variable("PREFIX")}.{stem}";

    /// <summary>Return a variable of the environment that the harness sets.</summary>
    public static string Variable(string name) =>
        Environment.GetEnvironmentVariable(name) ?? throw new ScenarioException($"{name} is not set");

    /// <summary>Fail the scenario with this reason if the condition does not hold.</summary>
    public static void Require([DoesNotReturnIf(false)] bool isTrue, string otherwise)
    {
        if (!isTrue)
        {
            throw new ScenarioException(otherwise);
        }
    }

    /// <summary>Require that both are equal.</summary>
    public static void Same<T>(T expected, T got) =>
        Require(EqualityComparer<T>.Default.Equals(expected, got), $"got {got} instead of {expected}");

    /// <summary>Return the first exception of this type among the causes; there has to be one.</summary>
    public static T Cause<T>(Exception error) where T : Exception =>
        Causes(error).OfType<T>().FirstOrDefault() ?? throw new ScenarioException($"it is no {typeof(T).Name}", error);

    /// <summary>Try again until the attempt succeeds; errors are those of a broker that is away.</summary>
    public static async Task EventuallyAsync(string what, Func<Task<bool>> attempt, CancellationToken token)
    {
        var watch = Stopwatch.StartNew();
        Exception? last = null;
        while (watch.Elapsed < Patience)
        {
            try
            {
                if (await attempt())
                {
                    return;
                }
            }
            catch (Exception error) when (!token.IsCancellationRequested)
            {
                last = error;
            }
            await Task.Delay(TimeSpan.FromMilliseconds(200), token);
        }
        throw new ScenarioException($"{what}: not within {Patience.TotalSeconds} s", last);
    }

    private static async Task<string> OutcomeAsync(Scenario? scenario)
    {
        if (scenario is null)
        {
            return "failed there is no such scenario here";
        }
        using var longest = new CancellationTokenSource(Longest);
        try
        {
            await scenario(longest.Token);
            return "ok";
        }
        catch (UnsupportedException unsupported)
        {
            return $"unsupported {unsupported.Message}";
        }
        catch (Exception error)
        {
            await Console.Error.WriteLineAsync(error.ToString());
            IEnumerable<string> causes = Causes(error).Select(cause => $"{cause.GetType().Name}: {cause.Message}");
            return $"failed {Blanks().Replace(string.Join(", caused by ", causes), " ")}";
        }
    }

    private static IEnumerable<Exception> Causes(Exception error)
    {
        yield return error;
        Exception?[] inner = error is AggregateException several
            ? [.. several.InnerExceptions]
            : [error.InnerException];
        foreach (Exception cause in inner.OfType<Exception>().SelectMany(Causes))
        {
            yield return cause;
        }
    }

    [GeneratedRegex(@"\s+")]
    private static partial Regex Blanks();
}
