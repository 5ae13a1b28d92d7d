//! Tests the clients in `clients/`. Each language has a folder with small programs that use its
//! client. The Rust client `idmint_client` runs in this process.
//!
//! A program gets these arguments: addresses, a format, a number of threads, a number of ids, and a
//! validity in seconds. For each input line, its threads mint that number of ids. For each id, the
//! program writes 16 bytes: the id, and the Unix time in milliseconds just before the id was
//! requested. Both numbers are big-endian. An error ends the program.

mod go;
mod hostile;
mod java;
mod javascript;
mod packages;
mod pair;
mod python;
mod recipes;
mod rounds;
mod rust;
mod secured;
mod speed;
