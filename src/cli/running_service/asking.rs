//! Asks a service, and waits for what it says.

use crate::cli::exit::{Exit, Failure};
use crate::client::{Client, ClientError};

/// Asks a service once. Whatever it refuses is the answer: nothing is asked again.
///
/// # Errors
/// 1 when the service refuses, 69 when it cannot be reached or it is not the service that answers.
pub(in crate::cli) fn ask_once<T>(
    client: Client,
    request: impl AsyncFnOnce(&Client) -> Result<T, ClientError>,
) -> Result<T, Failure> {
    block_on(async { request(&client).await.map_err(of_one_request) })
}

/// Runs work that asks a service.
///
/// # Errors
/// 74 when the process gets no means to wait with, and those of the work.
pub(in crate::cli) fn block_on<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let failed = |error: std::io::Error| Failure::new(Exit::Io, format!("cannot start: {error}"));
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?
        .block_on(work)
}

fn of_one_request(error: ClientError) -> Failure {
    match &error {
        ClientError::Refused(refusal) | ClientError::Busy(refusal) if refusal.is_explained => {
            Failure::of(Exit::No, &error)
        }
        ClientError::Refused(_) | ClientError::Busy(_) => Failure::of(Exit::Unavailable, &error),
        _ => error.into(),
    }
}
