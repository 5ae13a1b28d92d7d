//! The commands of `idmint`.

mod command;
mod conjunction;

mod decode;
mod fleet;
mod ledger;
mod mint;
mod node;
mod numbers;

mod exit;
mod manual;
mod print;
mod running_service;
mod settings;
mod token;

pub use command::run;
pub use exit::{Exit, Failure};
