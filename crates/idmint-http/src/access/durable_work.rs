//! Work whose results the service stores, such as appended events or issued numbers. The work
//! continues after its caller disconnects, and is still audited.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::http::request::Parts;
use axum::http::{HeaderValue, Response};

use super::caller::AuditedRequest;
use super::caller::Caller;
use super::caller::CallerNote;
use crate::answer::{Answer, Problem, X_REQUEST_ID};
use crate::request::request_id;
use idmint_service::WorkLimits;

/// A future that resolves to a response.
type Work<B> = Pin<Box<dyn Future<Output = Answer<B>> + Send>>;

/// The work of one request, from its parsed input to its response. It continues if the caller
/// disconnects.
///
/// If the caller disconnects before the work completes, this value is dropped. A separate task then
/// completes the work and audits its outcome. If the work completes first, it is audited together
/// with its response. A handler must not wait for anything between the end of this work and its
/// response. If the caller disconnected during that wait, the work would not be audited.
pub(crate) struct DurableWork<B: Send + 'static> {
    /// The work, or `None` once it has completed.
    work: Option<Work<B>>,
    requests: Arc<WorkLimits>,
    /// The data for the audit trail, or `None` if the request is not audited.
    detached: Option<DetachedWork>,
}

/// The data with which the request is audited if its caller disconnects before the work is done.
struct DetachedWork {
    audited: AuditedRequest,
    note: CallerNote,
    request_id: HeaderValue,
}

impl<B: Send + 'static> DurableWork<B> {
    /// Wraps a request's work, so that the work continues if the caller disconnects. Call this only
    /// after the whole request has arrived, because the work must not need the connection any more.
    pub(crate) fn of(
        parts: &Parts,
        requests: &Arc<WorkLimits>,
        work: impl Future<Output = Answer<B>> + Send + 'static,
    ) -> Self {
        Self {
            work: Some(Box::pin(work)),
            requests: Arc::clone(requests),
            detached: DetachedWork::of(parts),
        }
    }
}

impl<B: Send + 'static> Future for DurableWork<B> {
    type Output = Answer<B>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Take the work out while it is polled, so that it is never polled again after a panic.
        let mut work = self
            .work
            .take()
            .expect("a future that is ready is not polled again");
        let done = work.as_mut().poll(context);
        if done.is_pending() {
            self.work = Some(work);
        }
        done
    }
}

impl<B: Send + 'static> Drop for DurableWork<B> {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        let detached = self.detached.take();
        self.requests.work_detached(async move {
            let outcome = work.await;
            if let Some(detached) = detached {
                detached.tell(outcome);
            }
        });
    }
}

impl DetachedWork {
    fn of(parts: &Parts) -> Option<DetachedWork> {
        let caller = Caller::of(&parts.extensions)?;
        let auditor = caller.auditor.as_ref()?;
        let audited = AuditedRequest::new(
            auditor,
            caller.address,
            &parts.method,
            &parts.uri,
            &parts.headers,
        );
        Some(DetachedWork {
            audited,
            note: caller.note.clone(),
            request_id: request_id(&parts.headers),
        })
    }

    fn tell<B>(self, outcome: Answer<B>) {
        let refusal = |problem: Problem| {
            let mut answer = Response::new(());
            *answer.status_mut() = problem.status();
            answer
        };
        let mut answer = outcome.map_or_else(refusal, |response| response.map(drop));
        answer.headers_mut().insert(X_REQUEST_ID, self.request_id);
        self.audited.tell(&self.note, &answer, false);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Mutex;

    use axum::http::Request;
    use tokio::sync::oneshot;
    use tokio::time::Duration;

    use super::*;
    use crate::answer::Slug;
    use idmint_service::Load;

    type Outcome = Result<Response<()>, Problem>;

    /// The parts of a test. `work` completes with the value sent to `end`. `told` lists audit
    /// entries: the request id, the status, and `true` if the caller was still connected.
    struct Scene {
        load: Load,
        work: DurableWork<()>,
        end: oneshot::Sender<Outcome>,
        told: Arc<Mutex<Vec<(String, u16, bool)>>>,
    }

    fn scene() -> Scene {
        let told: Arc<Mutex<Vec<_>>> = Arc::default();
        let lines = Arc::clone(&told);
        let note = CallerNote::default();
        note.is_to_be_told();
        let caller = Caller {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            certificate: None,
            note,
            auditor: Some(Arc::new(move |line| {
                let line = (line.request_id.to_owned(), line.status, line.is_answered);
                lines.lock().expect("no panic").push(line);
            })),
        };
        let request = Request::post("/ids/evently")
            .header(X_REQUEST_ID, "a-1")
            .extension(caller);
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        let ((end, ended), load) = (oneshot::channel(), Load::default());
        let work = DurableWork::of(&parts, &load.requests, async {
            ended.await.expect("it ends")
        });
        Scene {
            load,
            work,
            end,
            told,
        }
    }

    async fn left_and_then(outcome: Outcome) -> Vec<(String, u16, bool)> {
        let Scene {
            load,
            mut work,
            end,
            told,
        } = scene();
        assert!(
            tokio::time::timeout(Duration::ZERO, &mut work)
                .await
                .is_err(),
            "it is not done"
        );
        drop(work);
        assert_eq!(
            load.requests.wait_for_detached(Duration::ZERO).await,
            1,
            "it goes on"
        );
        assert!(
            told.lock().expect("no panic").is_empty(),
            "nothing has come of it"
        );
        end.send(outcome).expect("it is waited for");
        assert_eq!(
            load.requests
                .wait_for_detached(Duration::from_secs(60))
                .await,
            0
        );
        told.lock().expect("no panic").clone()
    }

    #[tokio::test]
    async fn work_whose_caller_has_gone_goes_on_and_is_told_once() {
        let told = left_and_then(Ok(Response::new(()))).await;
        assert_eq!(told, [("a-1".to_owned(), 200, false)]);
        let told = left_and_then(Err(Problem::new(Slug::OutcomeUnknown, "who knows"))).await;
        assert_eq!(told, [("a-1".to_owned(), 504, false)]);
    }

    #[tokio::test]
    async fn work_whose_caller_waits_is_told_with_its_answer_alone() {
        let Scene {
            load,
            work,
            end,
            told,
        } = scene();
        end.send(Ok(Response::new(()))).expect("it is waited for");
        assert!(work.await.is_ok());
        assert_eq!(load.requests.wait_for_detached(Duration::ZERO).await, 0);
        assert!(told.lock().expect("no panic").is_empty());
    }
}
