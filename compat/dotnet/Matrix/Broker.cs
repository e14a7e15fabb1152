using System.Net.Security;
using System.Security.Cryptography.X509Certificates;
using RabbitMQ.Client;

namespace Matrix;

/// <summary>The broker that the harness has started.</summary>
internal static class Broker
{
    /// <summary>The address without TLS, with a user and a password.</summary>
    public static Uri Url => new(Player.Variable("AMQP_URL"));

    /// <summary>The address with TLS.</summary>
    public static Uri TlsUrl => new(Player.Variable("AMQPS_URL"));

    /// <summary>Return a factory of connections that soon recover.</summary>
    public static ConnectionFactory Factory() => new()
    {
        Uri = Url,
        NetworkRecoveryInterval = TimeSpan.FromMilliseconds(500),
    };

    /// <summary>Return the user name and the password of an address.</summary>
    public static (string User, string Password) Credentials(Uri url)
    {
        string[] parts = url.UserInfo.Split(':', 2);
        return (Uri.UnescapeDataString(parts[0]), Uri.UnescapeDataString(parts[1]));
    }

    /// <summary>Accept a certificate for the right host that the authority in `CA_FILE` has signed.</summary>
    public static bool IsTrusted(
        object sender, X509Certificate? certificate, X509Chain? chain, SslPolicyErrors errors)
    {
        // The system does not know the authority, so only the errors of the chain are judged anew.
        if ((errors & ~SslPolicyErrors.RemoteCertificateChainErrors) != SslPolicyErrors.None
            || certificate is not X509Certificate2 shown)
        {
            return false;
        }
        using var trusted = new X509Chain();
        trusted.ChainPolicy.RevocationMode = X509RevocationMode.NoCheck;
        trusted.ChainPolicy.TrustMode = X509ChainTrustMode.CustomRootTrust;
        trusted.ChainPolicy.CustomTrustStore.ImportFromPemFile(Player.Variable("CA_FILE"));
        return trusted.Build(shown);
    }
}
