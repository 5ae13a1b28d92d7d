//! Work that durable ids come from: it goes on when its caller has gone, and is told all the same.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::http::request::Parts;
use axum::http::{HeaderValue, Response};

use super::audited::AuditedRequest;
use super::caller::Caller;
use super::caller_note::CallerNote;
use crate::http::answer::{Problem, X_REQUEST_ID};
use crate::http::request::request_id;
use crate::service::Requests;

/// Ends in an answer.
type Work<B> = Pin<Box<dyn Future<Output = Result<Response<B>, Problem>> + Send>>;

/// The work of one request, from what was read of it to its answer.
///
/// Dropped before it is done, since nobody waits for an answer any more, it goes on in a task of its own, which tells what came
/// of it. Done, it is told with its answer: a handler must wait for nothing more, or the caller could go in between.
pub(in crate::http) struct DurableWork<B: Send + 'static> {
    /// `None` once it is done.
    work: Option<Work<B>>,
    requests: Arc<Requests>,
    /// `None` if that is nobody's to know.
    unheard: Option<Unheard>,
}

/// What is told of a request whose caller has gone, beside what came of it.
struct Unheard {
    audited: AuditedRequest,
    note: CallerNote,
    request_id: HeaderValue,
}

impl<B: Send + 'static> DurableWork<B> {
    /// The work of the request with this head, all of which has arrived.
    pub(in crate::http) fn of(
        parts: &Parts,
        requests: &Arc<Requests>,
        work: impl Future<Output = Result<Response<B>, Problem>> + Send + 'static,
    ) -> Self {
        Self {
            work: Some(Box::pin(work)),
            requests: Arc::clone(requests),
            unheard: Unheard::of(parts),
        }
    }
}

impl<B: Send + 'static> Future for DurableWork<B> {
    type Output = Result<Response<B>, Problem>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Taken out: work that has panicked must not go on.
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
        let unheard = self.unheard.take();
        self.requests.work_unheard(async move {
            let outcome = work.await;
            if let Some(unheard) = unheard {
                unheard.tell(outcome);
            }
        });
    }
}

impl Unheard {
    fn of(parts: &Parts) -> Option<Unheard> {
        let caller = Caller::of(&parts.extensions)?;
        let auditor = caller.auditor.as_ref()?;
        let audited = AuditedRequest::new(
            auditor,
            caller.address,
            &parts.method,
            &parts.uri,
            &parts.headers,
        );
        Some(Unheard {
            audited,
            note: caller.note.clone(),
            request_id: request_id(&parts.headers),
        })
    }

    fn tell<B>(self, outcome: Result<Response<B>, Problem>) {
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

    use axum::http::{Request, StatusCode};
    use tokio::sync::oneshot;
    use tokio::time::Duration;

    use super::*;
    use crate::http::answer::Slug;
    use crate::service::Load;

    type Outcome = Result<Response<()>, Problem>;

    /// Work that ends with what is sent, and the status and whether there was a caller of each line that is told.
    struct Scene {
        load: Load,
        work: DurableWork<()>,
        end: oneshot::Sender<Outcome>,
        told: Arc<Mutex<Vec<(String, StatusCode, bool)>>>,
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

    async fn left_and_then(outcome: Outcome) -> Vec<(String, StatusCode, bool)> {
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
            load.requests.wait_for_unheard(Duration::ZERO).await,
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
                .wait_for_unheard(Duration::from_secs(60))
                .await,
            0
        );
        told.lock().expect("no panic").clone()
    }

    #[tokio::test]
    async fn work_whose_caller_has_gone_goes_on_and_is_told_once() {
        let told = left_and_then(Ok(Response::new(()))).await;
        assert_eq!(told, [("a-1".to_owned(), StatusCode::OK, false)]);
        let told = left_and_then(Err(Problem::new(Slug::OutcomeUnknown, "who knows"))).await;
        assert_eq!(
            told,
            [("a-1".to_owned(), StatusCode::GATEWAY_TIMEOUT, false)]
        );
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
        assert_eq!(load.requests.wait_for_unheard(Duration::ZERO).await, 0);
        assert!(told.lock().expect("no panic").is_empty());
    }
}
