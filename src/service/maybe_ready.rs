//! A result that is usually ready without waiting.

use std::pin::Pin;
use std::task::{Context, Poll};

/// A value, or the work that ends in one. Where there is nothing to wait for, no future is made and nothing allocated.
#[must_use]
pub enum MaybeReady<T> {
    /// There already; `None` once it is taken.
    Ready(Option<T>),
    /// Still to come.
    Pending(Pin<Box<dyn Future<Output = T> + Send>>),
}

impl<T: Send + Unpin + 'static> MaybeReady<T> {
    /// A value that is there.
    #[inline]
    pub fn ready(value: T) -> Self {
        Self::Ready(Some(value))
    }

    /// A value to be waited for.
    pub fn pending(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self::Pending(Box::pin(work))
    }

    /// What `change` makes of the value, at once or later.
    #[inline]
    pub fn map<U: Send + Unpin + 'static>(
        self,
        change: impl FnOnce(T) -> U + Send + 'static,
    ) -> MaybeReady<U> {
        match self {
            Self::Ready(value) => MaybeReady::Ready(value.map(change)),
            Self::Pending(work) => MaybeReady::pending(async move { change(work.await) }),
        }
    }
}

impl<T: Unpin> Future for MaybeReady<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match self.get_mut() {
            Self::Ready(value) => Poll::Ready(
                value
                    .take()
                    .expect("a future that is ready is not polled again"),
            ),
            Self::Pending(work) => work.as_mut().poll(context),
        }
    }
}
