//! Everything the service answers.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::Request;
use axum::http::{Method, Response, header};
use pin_project_lite::pin_project;
use tower::{ServiceExt, service_fn};

use super::edge::{Admission, Edge, Handle, Passage, is_probe};
use super::metrics::{HttpMetrics, Route};
use super::router::{needs, router};
use super::routes::mint;
use crate::http::access::{Guard, Need};
use crate::http::answer::{AnswerBody, Problem, Slug};
use crate::http::sites::{Cors, Sites};
use crate::service::{MaybeReady, Service};

/// The whole API, behind one [edge](Edge).
#[derive(Clone)]
pub struct Api(Edge<Dispatch>);

impl Api {
    /// The API of this service, for these sites, counted by these metrics.
    pub fn new(service: Arc<Service>, metrics: Arc<HttpMetrics>, sites: Sites) -> Self {
        Self::guarded(service, metrics, sites, None)
    }

    /// The same, for callers whom this guard lets in.
    pub fn guarded_by(guard: Arc<Guard>, service: Arc<Service>, metrics: Arc<HttpMetrics>, sites: Sites) -> Self {
        let admission = admission(guard, &metrics);
        Self::guarded(service, metrics, sites, Some(admission))
    }

    /// The part of it that says how the service is, `/metrics` and `/health/*`, for callers whom this guard lets in.
    pub fn of_probes(
        guard: Option<Arc<Guard>>,
        service: Arc<Service>,
        metrics: Arc<HttpMetrics>,
        sites: Sites,
    ) -> Self {
        let guarded = guard.map(|guard| admission(guard, &metrics));
        let admission: Admission = Arc::new(move |route, request| {
            if is_probe(request.uri()) {
                guarded.as_ref().map_or(Ok(()), |guarded| guarded(route, request))
            } else {
                Err(Problem::new(Slug::NotFound, "this address answers /metrics and /health/* alone"))
            }
        });
        Self::guarded(service, metrics, sites, Some(admission))
    }

    /// The same; `admission` is asked about every request before anything is done for it.
    pub fn guarded(
        service: Arc<Service>,
        metrics: Arc<HttpMetrics>,
        sites: Sites,
        admission: Option<Admission>,
    ) -> Self {
        let mint_route = metrics.route(mint::ROUTE);
        let (router, load) = (router(Arc::clone(&service), sites.address()), service.load().clone());
        let (routes, cors) = (Routes { service, mint_route, router }, sites.cors());
        Self(Edge::new(Dispatch { routes, cors }, metrics, &load, sites, admission))
    }
}

/// What the guard is asked: whether the caller is permitted what the route needs. Where nothing is answered, it is some token.
fn admission(guard: Arc<Guard>, metrics: &HttpMetrics) -> Admission {
    let needs = needs().into_iter().map(|(path, method, need)| (metrics.route(path), method, path, need));
    let needs: Vec<_> = needs.collect();
    Arc::new(move |route, request| {
        let method = if *request.method() == Method::HEAD { &Method::GET } else { request.method() };
        let found = needs.iter().find(|(known, of_method, ..)| *known == route && of_method == method);
        let (template, need) = found.map_or(("", Need::Token), |(.., template, need)| (*template, *need));
        guard.admit(need, template, request)
    })
}

impl tower::Service<Request> for Api {
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Passage<Answering>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Passage<Answering> {
        self.0.call(request)
    }
}

/// Answers requests, and tells browsers which pages may read the answers.
struct Dispatch {
    routes: Routes,
    /// None if no page of another origin may: then nothing is to be told.
    cors: Option<Cors>,
}

/// Mints, and leaves what else is asked to the table of routes.
///
/// Nearly every request mints. Those skip the router, whose way to a handler costs more than all that a mint does, and end
/// in the same handler.
#[derive(Clone)]
struct Routes {
    service: Arc<Service>,
    mint_route: Route,
    router: Router,
}

impl Handle for Dispatch {
    type Answering = Answering;

    fn route(&self, metrics: &HttpMetrics, path: &str) -> Route {
        // With the table of all routes and the loops of path_params a mint took 8 909 instructions, without them 7 640.
        if mint::format_name(path).is_some() { self.routes.mint_route } else { metrics.route(path) }
    }

    fn handle(&self, route: Route, request: Request) -> Answering {
        match &self.cors {
            Some(cors) if request.headers().contains_key(header::ORIGIN) => {
                let routes = self.routes.clone();
                let answering = service_fn(move |request| {
                    let answering = routes.handle(route, request);
                    async move { Ok::<_, Infallible>(answering.await) }
                });
                let shared = cors.around(answering).oneshot(request);
                let answer = async move { shared.await.unwrap_or_else(|never| match never {}) };
                Answering::Elsewhere { answer: Box::pin(answer) }
            }
            _ => self.routes.handle(route, request),
        }
    }
}

impl Routes {
    fn handle(&self, route: Route, request: Request) -> Answering {
        if route == self.mint_route && request.method() == Method::POST {
            Answering::Minting { answer: mint::mint(&self.service, request) }
        } else {
            Answering::Elsewhere { answer: Box::pin(self.router.handle(route, request)) }
        }
    }
}

pin_project! {
    /// One request on the way to its answer.
    #[project = AnsweringProjection]
    pub enum Answering {
        Minting { #[pin] answer: MaybeReady<Result<Response<AnswerBody>, Problem>> },
        // Boxed, since it is large, and every mint would be moved around in as much room.
        Elsewhere { answer: Pin<Box<dyn Future<Output = Response<AnswerBody>> + Send>> },
    }
}

impl Future for Answering {
    type Output = Response<AnswerBody>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response<AnswerBody>> {
        match self.project() {
            AnsweringProjection::Minting { answer } => {
                answer.poll(context).map(|answer| answer.unwrap_or_else(Problem::into_answer))
            }
            AnsweringProjection::Elsewhere { answer } => answer.as_mut().poll(context),
        }
    }
}
