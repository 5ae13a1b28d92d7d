//! A Snowflake without a service: `cargo run --example mint_in_process`.
//!
//! How far the promise then goes is said by `idmint_core::InProcess`: one process at a time has the worker number, and the clock does
//! not go back from one process to the next.

use idmint_core::InProcess;
use idmint_core::id::Format;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ids = InProcess::new(Format::built_in("snowflake").expect("is built in"), 7)?;
    for _ in 0..3 {
        println!("{}", ids.format().canonical().to_text(ids.next()?));
    }
    Ok(())
}
