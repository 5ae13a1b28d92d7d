//! Records when this build was made, so that a clock set before it is recognised as wrong.

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
    // The midnight before the day before: a clock that runs on local time is not one that was never set.
    // Not under IDMINT_: `cargo run` sets it for the program too, which would take it for a setting that there is not.
    println!(
        "cargo:rustc-env=BUILT_AT_UNIX_SECONDS={}",
        (built / DAY_S).saturating_sub(1) * DAY_S
    );
}
