//! The clients in `clients/`, each in the hands of a small program in its language: a folder a language; and `idmint::client` in
//! this process.
//!
//! Such a program is started with addresses, a format, threads, ids and seconds of validity. For each line that it reads it
//! mints so many ids by so many threads, and writes 16 bytes for each: the id, and the Unix time in milliseconds just before
//! it was asked for, both big-endian. An error ends it.

mod go;
mod java;
mod javascript;
mod pair;
mod python;
mod recipes;
mod rounds;
mod rust;
mod secured;
mod speed;
