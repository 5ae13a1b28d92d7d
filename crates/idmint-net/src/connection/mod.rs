//! One connection: its protocol, its requests, and its end.

mod http2_streams;
mod sent_answer;

mod handler;
mod observed_handler;
mod timeouts;

mod connection;

pub(super) use connection::{Connection, Context};
pub use handler::{Dispatch, Handler, ResponseBody};
pub use observed_handler::{
    ConnectedCaller, ConnectionObserver, RequestObserver, ResponseObserver,
};
