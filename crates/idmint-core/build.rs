//! Build script that stores the build time in the program. If the system clock shows a time before
//! the build, the program knows that the clock was never set.

use std::time::{SystemTime, UNIX_EPOCH};

const DAY_S: u64 = 86_400;

fn main() {
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    println!("cargo:rerun-if-changed=Cargo.toml");
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the build machine's clock is set")
        .as_secs();
    let built = std::env::var("SOURCE_DATE_EPOCH")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(now);
    // Use midnight of the day before the build, so that a clock in local time is not mistaken for a
    // clock that was never set. The name of the variable has no `IDMINT_` prefix, because `cargo
    // run` also passes the variable to the program, which rejects every unknown variable with that
    // prefix.
    println!(
        "cargo:rustc-env=BUILT_AT_UNIX_SECONDS={}",
        (built / DAY_S).saturating_sub(1) * DAY_S
    );
}
