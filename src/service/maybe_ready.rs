//! Values that are nearly always there at once.

use std::pin::Pin;
use std::task::{Context, Poll};

/// A value, or the work that ends in one. Where there is nothing to wait for, no future is made and nothing allocated.
#[must_use]
pub enum Soon<T> {
    /// There already; `None` once it is taken.
    Now(Option<T>),
    /// Still to come.
    Later(Pin<Box<dyn Future<Output = T> + Send>>),
}

impl<T: Send + Unpin + 'static> Soon<T> {
    /// A value that is there.
    pub fn now(value: T) -> Self {
        Self::Now(Some(value))
    }

    /// A value to be waited for.
    pub fn later(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self::Later(Box::pin(work))
    }

    /// What `change` makes of the value, at once or later.
    pub fn map<U: Send + Unpin + 'static>(self, change: impl FnOnce(T) -> U + Send + 'static) -> Soon<U> {
        match self {
            Self::Now(value) => Soon::Now(value.map(change)),
            Self::Later(work) => Soon::later(async move { change(work.await) }),
        }
    }
}

impl<T: Unpin> Future for Soon<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match self.get_mut() {
            Self::Now(value) => Poll::Ready(value.take().expect("a future that is ready is not polled again")),
            Self::Later(work) => work.as_mut().poll(context),
        }
    }
}
