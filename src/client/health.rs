//! `GET /health/ready`.

use super::error::ClientError;
use super::http_client::Client;
use crate::wire::Readiness;

impl Client {
    /// Whether the service mints, and if not, why. Asks once.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn readiness(&self) -> Result<Readiness, ClientError> {
        self.get("/health/ready").send_for_any_status().await
    }
}
