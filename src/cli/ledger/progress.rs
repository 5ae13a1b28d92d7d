//! A bar that shows how much of a file is done.

use indicatif::{ProgressBar, ProgressStyle};

/// A shorter file is appended before anyone could look at a bar.
pub(super) const SENT_SHOWN_FROM_LEN: u64 = 8 * 1024 * 1024;

/// A shorter file is checked before anyone could look at a bar.
pub(super) const CHECKED_SHOWN_FROM_LEN: u64 = 64 * 1024 * 1024;

/// A bar for a file of at least `shown_from_len` bytes, if standard error is a terminal.
pub(super) fn progress_bar(len: u64, shown_from_len: u64) -> ProgressBar {
    if len < shown_from_len {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left");
    ProgressBar::new(len).with_style(style.expect("a template of known keys"))
}
