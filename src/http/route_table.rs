//! The table in which the edge looks up each request, once: admission, counters, audit and dispatch use what it found.

use std::convert::Infallible;
use std::mem;
use std::pin::Pin;

use axum::extract::Request;
use axum::http::{Method, Response};
use axum::routing::{MethodRouter, any};
use tower::Service;

use super::fallback::{method_not_allowed, not_found};
use crate::http::access::Need;
use crate::http::answer::AnswerBody;

/// One operation: its name, its method and path, what a caller must be permitted, and what answers.
pub struct Row<S = ()> {
    pub(super) name: &'static str,
    pub(super) method: Method,
    pub(super) path: &'static str,
    need: Need,
    is_audited: bool,
    handler: MethodRouter<S>,
}

/// A row of the table. A path is written as axum has it: `/ledgers/{ledger}/ids/{id}`, `/decode/{*id}`.
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
    /// An operation that anybody may ask for.
    pub fn open(
        name: &'static str,
        method: Method,
        path: &'static str,
        handler: MethodRouter<S>,
    ) -> Row<S> {
        row(name, method, path, Need::Nothing, handler)
    }

    /// Its method and path, as it is counted by.
    pub fn operation(&self) -> (Method, &'static str) {
        (self.method.clone(), self.path)
    }

    /// The same, of which an audit trail is told whatever comes of it: it makes ids, or what ids are made in.
    pub(super) fn audited(self) -> Row<S> {
        Row {
            is_audited: true,
            ..self
        }
    }
}

/// What the table says of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The number of its path in the table from 1 on; 0 if the table does not have it.
    pub(super) path: usize,
    /// The path as the table has it; empty where nothing is answered.
    pub(super) template: &'static str,
    pub(super) need: Need,
    pub(super) is_audited: bool,
}

impl Route {
    /// That of every path that the table does not have.
    pub(super) const UNMATCHED: Route = Route::unanswered(0);

    /// That of a path, or of a method, that the table does not have: some token is needed, so that strangers do not learn which
    /// routes there are.
    const fn unanswered(path: usize) -> Route {
        Route {
            path,
            template: "",
            need: Need::Token,
            is_audited: false,
        }
    }
}

/// Every operation, by path.
#[derive(Clone)]
pub struct RouteTable {
    by_path: matchit::Router<usize>,
    /// The first is that of all paths which the table does not have.
    paths: Vec<Operations>,
}

/// What there is on one path.
#[derive(Clone)]
struct Operations {
    by_method: Vec<(Method, Route)>,
    other: Route,
    handler: MethodRouter,
}

/// A request on its way to the answer of a route.
pub(super) type Routed = Pin<Box<dyn Future<Output = Response<AnswerBody>> + Send>>;

impl RouteTable {
    /// The table of these operations of a service.
    ///
    /// # Panics
    /// If one is there twice, or a path is none that axum takes.
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

    /// The number of the path that a request has.
    #[inline]
    pub(super) fn number_of(&self, path: &str) -> usize {
        self.by_path.at(path).map_or(0, |found| *found.value)
    }

    /// The route of a method on the path of this number.
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

    /// Begins to answer a request of this route.
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

/// The paths of a table, each once, in the order of their numbers, which begin with 1.
pub(super) fn templates(paths: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let mut templates = Vec::new();
    for path in paths {
        if !templates.contains(&path) {
            templates.push(path);
        }
    }
    templates
}
