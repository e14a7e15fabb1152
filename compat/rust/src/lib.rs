//! The programs' protocol with the harness, whose other side is `compat/matrix/playing.py`.

use std::{env, fmt::Debug, future::Future, io, time::Duration};

use tokio::time::timeout;

pub type Outcome = Result<(), Box<dyn std::error::Error>>;

pub const PATIENCE: Duration = Duration::from_secs(15);
/// Silence after which nothing more is expected.
pub const QUIET: Duration = Duration::from_millis(300);

/// The harness's description of the broker.
pub fn told(variable: &str) -> String {
    env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set"))
}

/// Return a unique name of a queue or exchange.
pub fn name(stem: &str) -> String {
    format!("{}.{stem}", told("PREFIX"))
}

/// Request a restart of the broker ("RESTART"), a close of all connections ("CLOSE"), or a broker in use ("USE", "LEAVE").
pub async fn ask(what: &str) -> Outcome {
    println!("{what}");
    tokio::task::spawn_blocking(|| io::stdin().read_line(&mut String::new())).await??;
    Ok(())
}

/// An error that says what came if it is not what was expected.
pub fn same<T: PartialEq + Debug>(came: T, expected: T) -> Outcome {
    if came == expected {
        Ok(())
    } else {
        Err(format!("got {came:?} instead of {expected:?}").into())
    }
}

/// Play one scenario and report its outcome.
pub async fn play(scenario: &str, playing: impl Future<Output = Outcome>) {
    let outcome = match timeout(4 * PATIENCE, playing).await {
        Ok(Ok(())) => "ok".to_string(),
        Ok(Err(error)) => match error.to_string().strip_prefix("unsupported: ") {
            Some(reason) => format!("unsupported {reason}"),
            None => format!("failed {}", error.to_string().replace('\n', " ")),
        },
        Err(_) => "failed it does not end".to_string(),
    };
    println!("RESULT {scenario} {outcome}");
}
