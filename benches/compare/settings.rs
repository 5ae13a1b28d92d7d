//! The settings of a run, read from the environment.

use std::env;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

pub(crate) struct Settings {
    /// The number of rounds of every scenario. One more round precedes these rounds and does not
    /// count. Variable: `COMPARE_ROUNDS`.
    pub(crate) rounds: usize,
    /// The number of rounds of the scaling scenarios. It is smaller, because only the shape of
    /// their results matters.
    pub(crate) scaling_rounds: usize,
    /// The duration of a scenario in one round. Variable: `COMPARE_SECONDS`.
    pub(crate) time: Duration,
    /// The folder to which the results are written. Variable: `COMPARE_OUTPUT`.
    pub(crate) output: PathBuf,
}

impl Settings {
    /// Reads the settings from the environment.
    ///
    /// # Errors
    /// Returns the name of the variable that cannot be used.
    pub(crate) fn from_environment() -> Result<Self, String> {
        let rounds = read("COMPARE_ROUNDS", 9_usize, |rounds| {
            (1..=1_000).contains(rounds)
        })?;
        let seconds = read("COMPARE_SECONDS", 1.0_f64, |seconds| {
            (0.05..=60.0).contains(seconds)
        })?;
        let output = env::var_os("COMPARE_OUTPUT")
            .map_or_else(|| PathBuf::from("target/compare"), PathBuf::from);
        Ok(Self {
            rounds,
            scaling_rounds: rounds.min(3),
            time: Duration::from_secs_f64(seconds),
            output,
        })
    }
}

fn read<T: FromStr + Display>(
    name: &str,
    default: T,
    is_sound: impl Fn(&T) -> bool,
) -> Result<T, String> {
    let Ok(text) = env::var(name) else {
        return Ok(default);
    };
    let value = text.parse().ok().filter(is_sound);
    value.ok_or_else(|| {
        format!("{name} is {text}: a positive number of sensible size is needed, such as {default}")
    })
}
