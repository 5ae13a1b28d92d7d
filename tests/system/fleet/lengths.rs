//! The lengths of fleet tests: short in `make test-all`, whole in `make torture`, which sets
//! `FLEET_WHOLE`.

/// Returns `short` by default, and `whole` if `FLEET_WHOLE` is set.
pub(super) fn short_or_whole<T>(short: T, whole: T) -> T {
    if std::env::var_os("FLEET_WHOLE").is_some() {
        whole
    } else {
        short
    }
}
