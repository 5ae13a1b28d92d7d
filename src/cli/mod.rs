//! The commands of `idmint`.

mod command;

mod cdm;
mod check;
mod decode;
mod formats;
mod health;
mod ledger;
mod mint;
mod serve;

mod exit;
mod print;
mod running_service;
mod settings;

pub use command::run;
pub use exit::{Exit, Failure};
