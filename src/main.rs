//! The `idmint` command.
fn main() {}
