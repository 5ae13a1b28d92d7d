//! What is answered where no handler is: every refusal is a problem, the router's own too.

use axum::extract::Request;

use crate::http::answer::{Problem, Slug};

/// No route has this path.
pub(crate) async fn not_found(request: Request) -> Problem {
    let path = request.uri().path();
    Problem::new(Slug::NotFound, format!("no route has the path {path:?}"))
        .example("GET /openapi.yaml")
}

/// The route exists, the method does not apply to it. The router adds `Allow`.
pub(crate) async fn method_not_allowed(request: Request) -> Problem {
    let (method, path) = (request.method(), request.uri().path());
    Problem::new(
        Slug::MethodNotAllowed,
        format!("{method} does not apply to {path:?}; the header Allow names what does"),
    )
}
