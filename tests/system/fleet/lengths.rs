//! The durations of fleet tests. They are short in `make test-all`, and long in `make torture`,
//! which sets `FLEET_WHOLE`.

/// Returns `short` by default, and `whole` if `FLEET_WHOLE` is set.
pub(super) fn short_or_whole<T>(short: T, whole: T) -> T {
    if std::env::var_os("FLEET_WHOLE").is_some() {
        whole
    } else {
        short
    }
}
