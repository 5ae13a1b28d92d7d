//! For which host a request is, and from which site it comes: what keeps other people's web pages out.
//!
//! A browser sends requests for whatever page it shows, from inside a network that the page's author cannot reach. Two
//! things give such a page away: the host it names (a name of its own that it has pointed at this machine, DNS
//! rebinding), and the origin that the browser names for it (cross-site request forgery).

mod authority;
mod cors;
mod host_name;
mod host_policy;
mod origin;

pub(in crate::http) use cors::Cors;
pub use host_name::{HostName, HostRule};
pub use host_policy::HostPolicy;
pub use origin::CorsOrigin;
