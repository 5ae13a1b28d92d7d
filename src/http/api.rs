//! Everything the service answers.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, Response};
use axum::routing::future::RouteFuture;
use pin_project_lite::pin_project;

use super::edge::{Edge, Passage};
use super::metrics::{HttpMetrics, Route};
use super::router::router;
use crate::http::answer::Problem;
use crate::http::routes::mint;
use crate::service::{Service, Soon};

/// The whole API: mints, and leaves what else it is asked to the table of routes.
///
/// Nearly every request mints. Those skip the table, whose way to a handler costs more than all that a mint does; they
/// pass the same [edge](super::edge) and end in the same handler.
#[derive(Clone)]
pub struct Api(Arc<Parts>);

/// Shared as a whole: every request has a clone.
struct Parts {
    service: Arc<Service>,
    edge: Edge,
    mint_route: Route,
    router: Router,
}

impl Api {
    /// The API of this service, counted by these metrics.
    pub fn new(service: Arc<Service>, metrics: Arc<HttpMetrics>) -> Self {
        let router = router(Arc::clone(&service), Arc::clone(&metrics));
        let mint_route = metrics.route(Some(mint::ROUTE));
        Self(Arc::new(Parts { service, edge: Edge { metrics }, mint_route, router }))
    }
}

impl tower::Service<Request> for Api {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // A router is always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Answering {
        let Parts { service, edge, mint_route, router } = &*self.0;
        if request.method() == Method::POST && mint::format_name(request.uri()).is_some() {
            Answering::Minting { passage: edge.pass(*mint_route, request, |request| mint::mint(service, request)) }
        } else {
            Answering::Routed { answer: router.clone().call(request) }
        }
    }
}

pin_project! {
    /// One request on the way to its answer.
    #[project = AnsweringProjection]
    pub enum Answering {
        Minting { #[pin] passage: Passage<Soon<Result<Response<Body>, Problem>>> },
        Routed { #[pin] answer: RouteFuture<Infallible> },
    }
}

impl Future for Answering {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            AnsweringProjection::Minting { passage } => passage.poll(context),
            AnsweringProjection::Routed { answer } => answer.poll(context),
        }
    }
}
