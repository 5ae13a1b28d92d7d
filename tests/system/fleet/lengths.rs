//! How long the tests of a fleet are: short in `make test-all`, whole in `make torture`, which sets `FLEET_WHOLE`.

/// What a test does much of, or long: the first where it is to be short, the second where it is to be whole.
pub(super) fn short_or_whole<T>(short: T, whole: T) -> T {
    if std::env::var_os("FLEET_WHOLE").is_some() {
        whole
    } else {
        short
    }
}
