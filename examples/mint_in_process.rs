//! A Snowflake without a service: `cargo run --example mint_in_process`.
//!
//! How far the promise then goes says `idmint::InProcess`: a worker number for one object at a time, and a clock that does not
//! go back across a restart.

use idmint::InProcess;
use idmint::id::Format;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let format = Format::built_in("snowflake").expect("is built in");
    let ids = InProcess::new(format, 7)?;
    let id = ids.next()?;
    println!("{}", ids.format().canonical().to_text(id));
    Ok(())
}
