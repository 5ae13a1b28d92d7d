//! The clients in `clients/`, each used by a small program in its language, with one folder per
//! language. `idmint_client` runs in this process.
//!
//! Such a program gets addresses, a format, a number of threads, a number of ids and a validity in
//! seconds as arguments. For each input line, its threads mint that number of ids. The program
//! writes 16 bytes for each id: the id, and the Unix time in milliseconds just before the id was
//! requested, both big-endian. An error ends the program.

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
