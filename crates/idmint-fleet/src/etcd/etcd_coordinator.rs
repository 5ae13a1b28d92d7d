//! A blocking client for etcd that implements the trait `Coordinator`.

use std::fmt;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use etcd_client::{Client, Error, LeaseClient, StatusResponse};
use tokio::runtime::{Builder, Runtime};

use super::members::{Members, Repeat};
use super::transactions::{outcome_of, snapshot_of, to_read, to_txn};
use crate::coordinator::{
    Coordinator, CoordinatorError, Lease, Member, MemberState, Outcome, Range, Snapshot,
    Transaction,
};
use idmint_storage::{EtcdEndpoint, EtcdSettings};
use idmint_storage::{FailureKind, StoreError};

/// etcd's default for `--max-txn-ops`. The limit applies separately to the comparisons of a
/// transaction and to each of its two lists of operations.
const OPERATIONS_MAX: usize = 128;

/// The maximum size of a response in bytes. One read may return many rows of half a megabyte each.
const ANSWER_LEN_MAX: usize = 256 * 1024 * 1024;

/// A blocking client for etcd. It has its own runtime, so callers may block on any thread, even on
/// a thread of another runtime.
pub(super) struct EtcdCoordinator {
    members: Arc<Members>,
    /// Always `Some` until the client is dropped.
    runtime: Option<Runtime>,
}

impl EtcdCoordinator {
    /// Creates a client for the etcd in the settings, without connecting to it.
    ///
    /// # Errors
    /// Returns [`StoreError`] if a file that the settings name cannot be read, or if the client's
    /// runtime cannot be started. Certificates are parsed only when a connection is opened.
    pub(super) fn new(settings: &EtcdSettings) -> Result<EtcdCoordinator, StoreError> {
        let members = Arc::new(Members::new(settings)?);
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("etcd")
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| StoreError::new(FailureKind::NotUsable, error))?;
        Ok(EtcdCoordinator {
            members,
            runtime: Some(runtime),
        })
    }

    /// Sends `request` to the members, and waits for the response.
    fn ask<T, F>(
        &self,
        repeat: Repeat,
        request: impl Fn(Client) -> F + Send + Sync + 'static,
    ) -> Result<T, CoordinatorError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let members = Arc::clone(&self.members);
        self.wait_for(async move { members.ask(request, repeat).await })
    }

    fn wait_for<T: Send + 'static>(&self, asking: impl Future<Output = T> + Send + 'static) -> T {
        let (answer, answered) = mpsc::sync_channel(1);
        let asking = async move {
            // A failed send means that the caller no longer waits for the response.
            drop(answer.send(asking.await));
        };
        self.runtime
            .as_ref()
            .expect("taken only by drop")
            .spawn(asking);
        answered
            .recv()
            .expect("the runtime lives as long as this value, and asking does not panic")
    }

    fn read_some(
        &self,
        ranges: &[Range],
        at: Option<&Snapshot>,
    ) -> Result<Snapshot, CoordinatorError> {
        let read = to_read(ranges, at.map(|earlier| earlier.revision));
        self.ask(Repeat::Harmless, move |client| {
            let (mut kv, read) = (
                client.kv_client().max_decoding_message_size(ANSWER_LEN_MAX),
                read.clone(),
            );
            async move { snapshot_of(&kv.txn(read).await?) }
        })
    }

    fn ask_of_lease<T, F>(
        &self,
        request: impl Fn(LeaseClient) -> F + Send + Sync + 'static,
    ) -> Result<T, CoordinatorError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        self.ask(Repeat::Harmless, move |client| {
            request(client.lease_client())
        })
    }
}

impl Coordinator for EtcdCoordinator {
    fn commit(&self, transaction: &Transaction) -> Result<Outcome, CoordinatorError> {
        let txn = to_txn(transaction);
        self.ask(Repeat::Callers, move |client| {
            let (mut kv, txn) = (
                client.kv_client().max_decoding_message_size(ANSWER_LEN_MAX),
                txn.clone(),
            );
            async move { outcome_of(&kv.txn(txn).await?) }
        })
    }

    fn read(&self, ranges: &[Range]) -> Result<Snapshot, CoordinatorError> {
        let mut parts = ranges.chunks(OPERATIONS_MAX);
        let mut snapshot = self.read_some(parts.next().unwrap_or_default(), None)?;
        for part in parts {
            let more = self.read_some(part, Some(&snapshot))?;
            snapshot.ranges.extend(more.ranges);
        }
        Ok(snapshot)
    }

    fn grant(&self, lasts: Duration) -> Result<Lease, CoordinatorError> {
        let seconds = i64::try_from(lasts.as_secs())
            .expect("a lease is short")
            .max(1);
        self.ask_of_lease(move |mut leases| async move {
            Ok(Lease(leases.grant(seconds, None).await?.id()))
        })
    }

    fn keep_alive(&self, lease: Lease) -> Result<bool, CoordinatorError> {
        self.ask_of_lease(move |mut leases| async move {
            // Opening the stream already sends a keep-alive request. `keep_alive` returns when the
            // response to that request has arrived.
            match leases.keep_alive(lease.0).await {
                Ok(_) => Ok(true),
                // The client library turns etcd's response for a lease that does not exist into
                // this error.
                Err(Error::LeaseKeepAliveError(why)) if why == "lease not found" => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    fn members(&self) -> Vec<Member> {
        let members = Arc::clone(&self.members);
        let asking = async move {
            let status = |client: Client| async move { client.maintenance_client().status().await };
            members.ask_each(status).await
        };
        let answers = self.wait_for(asking);
        let member =
            |(endpoint, answer): (EtcdEndpoint, Result<StatusResponse, CoordinatorError>)| Member {
                endpoint: endpoint.to_string(),
                state: answer
                    .map(|status| state_of(&status))
                    .map_err(|error| error.to_string()),
            };
        answers.into_iter().map(member).collect()
    }
}

fn state_of(status: &StatusResponse) -> MemberState {
    // Some versions of etcd do not report all of these sizes. A missing size is decoded as 0.
    let told = |bytes: i64| u64::try_from(bytes).ok().filter(|bytes| *bytes > 0);
    MemberState {
        cluster: status.header().map_or(0, |header| header.cluster_id()),
        version: status.version().to_owned(),
        is_leader: status
            .header()
            .is_some_and(|header| header.member_id() == status.leader()),
        size: told(status.db_size()).unwrap_or(0),
        size_in_use: told(status.raft_used_db_size()),
        quota: told(status.db_size_quota()),
        problems: status.errors().to_vec(),
    }
}

impl fmt::Debug for EtcdCoordinator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EtcdCoordinator")
    }
}

impl Drop for EtcdCoordinator {
    fn drop(&mut self) {
        // Shut down in the background, because this client may be dropped on a thread of another
        // runtime, which must not block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
