//! Everything the service answers.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::http::{Method, Response, header};
use pin_project_lite::pin_project;
use tower::{ServiceExt, service_fn};

use super::edge::{Admission, Edge, Handle, Passage, is_probe};
use super::metrics::HttpMetrics;
use super::route_table::{Route, RouteTable, Routed};
use super::router::route_table;
use super::routes::mint;
use crate::http::access::{Guard, Need};
use crate::http::answer::{AnswerBody, Problem, Slug};
use crate::http::host_policy::{Cors, HostPolicy};
use crate::service::{MaybeReady, Service};

/// The whole API, behind one [edge](Edge).
#[derive(Clone)]
pub struct Api(Edge<Dispatch>);

impl Api {
    /// The API of this service, under this policy, counted by these metrics.
    pub fn new(service: Arc<Service>, metrics: Arc<HttpMetrics>, host_policy: HostPolicy) -> Self {
        Self::guarded(service, metrics, host_policy, None)
    }

    /// The same, for callers whom this guard lets in.
    pub fn guarded_by(
        guard: Arc<Guard>,
        service: Arc<Service>,
        metrics: Arc<HttpMetrics>,
        host_policy: HostPolicy,
    ) -> Self {
        Self::guarded(service, metrics, host_policy, Some(admission(guard)))
    }

    /// The part of it that says how the service is, `/metrics` and `/health/*`, for callers whom this guard lets in.
    pub fn of_probes(
        guard: Option<Arc<Guard>>,
        service: Arc<Service>,
        metrics: Arc<HttpMetrics>,
        host_policy: HostPolicy,
    ) -> Self {
        let guarded = guard.map(admission);
        let admission: Admission = Arc::new(move |route, request| {
            if is_probe(request.uri()) {
                guarded
                    .as_ref()
                    .map_or(Ok(()), |guarded| guarded(route, request))
            } else {
                Err(Problem::new(
                    Slug::NotFound,
                    "this address answers /metrics and /health/* alone",
                ))
            }
        });
        Self::guarded(service, metrics, host_policy, Some(admission))
    }

    /// The same; `admission` is asked about every request before anything is done for it.
    pub fn guarded(
        service: Arc<Service>,
        metrics: Arc<HttpMetrics>,
        host_policy: HostPolicy,
        admission: Option<Admission>,
    ) -> Self {
        let (table, load) = (
            route_table(&service, host_policy.address(), host_policy.has_page()),
            service.load().clone(),
        );
        let mint_path = table.number_of(mint::ROUTE);
        let is_test = service.clock().is_standing();
        let (routes, cors) = (
            Routes {
                service,
                mint_path,
                table,
            },
            host_policy.cors(),
        );
        Self(
            Edge::new(
                Dispatch { routes, cors },
                metrics,
                &load,
                host_policy,
                admission,
            )
            .of_test(is_test),
        )
    }
}

/// What the guard is asked: whether the caller is permitted what the route needs.
fn admission(guard: Arc<Guard>) -> Admission {
    Arc::new(move |route, request| guard.admit(route.need, route.template, request))
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
/// Nearly every request mints. Those skip axum, whose way to a handler costs more than all that a mint does, and end in the
/// same handler.
#[derive(Clone)]
struct Routes {
    service: Arc<Service>,
    /// The number of the path that mints.
    mint_path: usize,
    table: RouteTable,
}

impl Handle for Dispatch {
    type Answering = Answering;

    #[inline]
    fn route(&self, method: &Method, path: &str) -> &Route {
        let Routes {
            mint_path, table, ..
        } = &self.routes;
        // Of a mint the table is not asked: with it, and the loops of path_params, one took 8 909 instructions, without 7 640.
        let number = if mint::format_name(path).is_some() {
            *mint_path
        } else {
            table.number_of(path)
        };
        table.route_of(number, method)
    }

    fn handle(&self, route: &Route, request: Request) -> Answering {
        match &self.cors {
            Some(cors) if request.headers().contains_key(header::ORIGIN) => {
                let (routes, route) = (self.routes.clone(), *route);
                let answering = service_fn(move |request| {
                    let answering = routes.handle(&route, request);
                    async move { Ok::<_, Infallible>(answering.await) }
                });
                let shared = cors.around(answering).oneshot(request);
                let answer = async move { shared.await.unwrap_or_else(|never| match never {}) };
                Answering::Elsewhere {
                    answer: Box::pin(answer),
                }
            }
            _ => self.routes.handle(route, request),
        }
    }
}

impl Routes {
    fn handle(&self, route: &Route, request: Request) -> Answering {
        match route.need {
            Need::MintFormat => Answering::Minting {
                answer: mint::mint(&self.service, request),
            },
            _ => Answering::Elsewhere {
                answer: self.table.answer(route, request),
            },
        }
    }
}

pin_project! {
    /// One request on the way to its answer.
    #[project = AnsweringProjection]
    pub enum Answering {
        Minting { #[pin] answer: MaybeReady<Result<Response<AnswerBody>, Problem>> },
        // Boxed, since it is large, and every mint would be moved around in as much room.
        Elsewhere { answer: Routed },
    }
}

impl Future for Answering {
    type Output = Response<AnswerBody>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response<AnswerBody>> {
        match self.project() {
            AnsweringProjection::Minting { answer } => answer
                .poll(context)
                .map(|answer| answer.unwrap_or_else(Problem::into_answer)),
            AnsweringProjection::Elsewhere { answer } => answer.as_mut().poll(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::{MethodFilter, on};

    use super::*;
    use crate::http::route_table::Row;
    use crate::http::router::paths;

    #[test]
    fn the_way_past_the_table_takes_the_paths_that_the_table_takes_for_mints() {
        let row = |(method, path): (Method, &'static str)| {
            let only = MethodFilter::try_from(method.clone()).expect("one of axum's");
            Row::open("", method, path, on(only, || async {}))
        };
        let table = RouteTable::new(paths().into_iter().map(row).collect(), &());
        let of_mints = table.number_of(mint::ROUTE);
        let before = [
            "/ids/",
            "/ids",
            "/ids//",
            "//ids/",
            "/IDS/",
            "/%69ds/",
            "/./ids/",
            "/ids/./",
            "",
            "/ids/../ids/",
        ];
        let names = [
            "",
            "flax",
            "%66lax",
            "fl%20ax",
            "flax;x=1",
            ".",
            "..",
            "{format}",
            "*",
            "%00",
            "\u{e9}",
            "flax%2Fmore",
            ":format",
            "openapi.yaml",
            "conjunctions",
            "%",
            "flax#",
            "+",
            "~",
            "ids",
        ];
        let behind = ["", "/", "/more", "//", "%2F", "?count=1"];
        let paths = before
            .iter()
            .flat_map(|before| names.iter().map(move |name| format!("{before}{name}")));
        let paths: Vec<_> = paths
            .flat_map(|path| behind.map(|behind| format!("{path}{behind}")))
            .collect();
        let is_mint = |path: &&String| mint::format_name(path).is_some();
        for path in &paths {
            assert_eq!(is_mint(&path), table.number_of(path) == of_mints, "{path}");
        }
        let mints = paths.iter().filter(is_mint).count();
        println!("{} paths, {mints} of mints", paths.len());
        assert!(paths.len() > 1_000 && mints > 50 && mints < paths.len() / 2);
    }
}
