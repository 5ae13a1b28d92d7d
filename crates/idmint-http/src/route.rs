//! The route of a request, which the edge looks up once.
//!
//! Admission, counters, audit and dispatch all use this route.

use std::convert::Infallible;
use std::mem;
use std::pin::Pin;

use axum::extract::Request;
use axum::http::{Method, Response};
use axum::routing::{MethodRouter, any};
use tower::Service;

use crate::access::Need;
use crate::answer::{AnswerBody, Problem, Slug};

/// One operation of the API: its name, method and path, the permission it needs, and its handler.
pub struct Row<S = ()> {
    pub(super) name: &'static str,
    pub(super) method: Method,
    pub(super) path: &'static str,
    need: Need,
    is_audited: bool,
    handler: MethodRouter<S>,
}

/// Returns a row of the route table, which describes one operation. Paths have axum's syntax, such
/// as `/ledgers/{ledger}/ids/{id}` or `/decode/{*id}`.
pub(super) fn row<S>(
    name: &'static str,
    method: Method,
    path: &'static str,
    need: Need,
    handler: MethodRouter<S>,
) -> Row<S> {
    Row {
        name,
        method,
        path,
        need,
        is_audited: false,
        handler,
    }
}

impl<S> Row<S> {
    /// Returns an operation that needs no permission.
    pub fn open(
        name: &'static str,
        method: Method,
        path: &'static str,
        handler: MethodRouter<S>,
    ) -> Row<S> {
        row(name, method, path, Need::Nothing, handler)
    }

    /// Returns the method and the path. They are the labels of the operation's metrics.
    pub fn operation(&self) -> (Method, &'static str) {
        (self.method.clone(), self.path)
    }

    /// Marks the operation as audited: each of its requests is recorded in the audit trail,
    /// whatever the outcome. Audited operations mint ids, or change a ledger or a series of
    /// numbers.
    pub(super) fn audited(self) -> Row<S> {
        Row {
            is_audited: true,
            ..self
        }
    }
}

/// An entry of the route table, for one method and one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The number of the path in the route table, counted from 1. The number is 0 for a path that
    /// is not in the table.
    pub(super) path: usize,
    /// The path as written in the table, such as `/ids/{format}`. Empty if the request has no
    /// handler.
    pub(super) template: &'static str,
    pub(super) need: Need,
    pub(super) is_audited: bool,
}

impl Route {
    /// The route of all paths that are not in the table.
    pub(super) const UNMATCHED: Route = Route::unanswered(0);

    /// Returns the route of requests without a handler. The request has either an unknown path,
    /// with `path` 0, or an unknown method. If the service requires tokens, the route needs a token
    /// of any scope, so that strangers do not learn which routes exist. Preflight requests never
    /// need a token.
    const fn unanswered(path: usize) -> Route {
        Route {
            path,
            template: "",
            need: Need::Token,
            is_audited: false,
        }
    }
}

/// The operations of the API, indexed by path.
#[derive(Clone)]
pub struct RouteTable {
    by_path: matchit::Router<usize>,
    /// The operations of each path. `by_path` has their indices. Index 0 is for unknown paths.
    paths: Vec<Operations>,
}

/// The operations of one path.
#[derive(Clone)]
struct Operations {
    by_method: Vec<(Method, Route)>,
    other: Route,
    handler: MethodRouter,
}

/// The future of a request in progress. It resolves to the response of the request's route.
pub(super) type Routed = Pin<Box<dyn Future<Output = Response<AnswerBody>> + Send>>;

impl RouteTable {
    /// Returns a table of these operations, whose handlers receive `service`.
    ///
    /// # Panics
    /// Panics if an operation is given twice, or if axum does not accept a path.
    pub fn new<S: Clone + Send + Sync + 'static>(rows: Vec<Row<S>>, service: &S) -> RouteTable {
        let unmatched = Operations {
            by_method: Vec::new(),
            other: Route::UNMATCHED,
            handler: any(not_found),
        };
        let mut table = RouteTable {
            by_path: matchit::Router::new(),
            paths: vec![unmatched],
        };
        let templates = templates(rows.iter().map(|row| row.path));
        for template in &templates {
            let number = table.paths.len();
            table
                .by_path
                .insert(*template, number)
                .expect("no two paths of the table take the same requests");
            let handler = MethodRouter::new().fallback(method_not_allowed);
            let other = Route::unanswered(number);
            table.paths.push(Operations {
                by_method: Vec::new(),
                other,
                handler,
            });
        }
        for Row {
            method,
            path: template,
            need,
            is_audited,
            handler,
            ..
        } in rows
        {
            let at = templates
                .iter()
                .position(|known| *known == template)
                .expect("every path of the table is one");
            let operations = &mut table.paths[at + 1];
            let route = Route {
                template,
                need,
                is_audited,
                ..operations.other
            };
            operations.by_method.push((method, route));
            operations.handler =
                mem::take(&mut operations.handler).merge(handler.with_state(service.clone()));
        }
        table
    }

    /// Returns the number of this path in the table, which is at least 1, or 0 if the table does
    /// not have the path.
    #[inline]
    pub(super) fn number_of(&self, path: &str) -> usize {
        self.by_path.at(path).map_or(0, |found| *found.value)
    }

    /// Returns the route for `method` on the path with the number `path`. `HEAD` has the same route
    /// as `GET`.
    #[inline]
    pub(super) fn route_of(&self, path: usize, method: &Method) -> &Route {
        let Operations {
            by_method, other, ..
        } = &self.paths[path];
        let method = if *method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        by_method
            .iter()
            .find(|(known, _)| known == method)
            .map_or(other, |(_, route)| route)
    }

    /// Starts to handle a request on this route.
    pub(super) fn answer(&self, route: &Route, request: Request) -> Routed {
        let answering = self.paths[route.path].handler.clone().call(request);
        Box::pin(async move {
            let answer: Result<_, Infallible> = answering.await;
            answer
                .unwrap_or_else(|never| match never {})
                .map(AnswerBody::from)
        })
    }
}

/// Returns the distinct paths of a route table, in the order in which they first occur. The number
/// of a path in the table is its index in this list plus 1.
pub(super) fn templates(paths: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let mut templates = Vec::new();
    for path in paths {
        if !templates.contains(&path) {
            templates.push(path);
        }
    }
    templates
}

pub(crate) async fn not_found(request: Request) -> Problem {
    let path = request.uri().path();
    Problem::new(Slug::NotFound, format!("no route has the path {path:?}"))
        .example("GET /openapi.yaml")
}

/// Returns the error response for a method that the path does not have. The router adds the header
/// `Allow`.
pub(crate) async fn method_not_allowed(request: Request) -> Problem {
    let (method, path) = (request.method(), request.uri().path());
    Problem::new(
        Slug::MethodNotAllowed,
        format!("{method} does not apply to {path:?}; see the header Allow"),
    )
}
