//! `idmint encode`.

use std::io::{self, IsTerminal};

use clap::Args;

use super::vectors::vectors;
use crate::cli::exit::{Exit, Failure};
use crate::cli::print::print;
use crate::cli::settings::Settings;
use crate::id::{FieldKind, Format};
use crate::server;
use crate::time::Clock;
use crate::wire::{Style, ruler};

/// Write the id of given fields in every encoding, offline; nothing is minted.
#[derive(Debug, Args)]
pub(in crate::cli) struct Encode {
    /// The format.
    format: String,
    /// Its fields: `time` as an instant or `time_ticks`, the others by their names; 0 where they are not given.
    #[arg(value_name = "NAME=VALUE")]
    fields: Vec<String>,
    /// So many ids, each with a sequence that is greater by one; with --vectors, so many of random fields.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// One JSON object a line, as GET /encode/{format} answers; this is what anything but a terminal gets.
    #[arg(long, conflicts_with = "text")]
    json: bool,
    /// Drawings, as a terminal gets them.
    #[arg(long)]
    text: bool,
    /// Vectors: ids of each field's ends and of random fields, with every text of each, as JSON of the shape in docs/VECTORS.md.
    #[arg(long, conflicts_with_all = ["fields", "json", "text"])]
    vectors: bool,
    /// What the random fields of vectors are drawn from.
    #[arg(long, value_name = "N", requires = "vectors", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    settings: Settings,
}

impl Encode {
    /// Prints each id.
    ///
    /// # Errors
    /// 64 for a format that there is not and for fields that make no id, 74, 78.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let usage = |error: &dyn std::fmt::Display| Failure::new(Exit::Usage, error);
        let config = self.settings.load(toml::Table::new())?;
        let decoding = server::decoding(&config)?;
        let format = decoding
            .format(&self.format)
            .map_err(|error| usage(&error))?;
        if self.vectors {
            let decoding = decoding.at(Clock::system().now());
            let vectors = vectors(format, self.count, self.seed, |made| {
                decoding.encoded(format, made)
            });
            return print(format_args!("{vectors:#}\n"));
        }
        let given = self.given()?;
        let sequence = match self.count {
            1 => None,
            count => Some(sequence_of(format, &given, count)?),
        };
        let is_drawn = self.text || !self.json && io::stdout().is_terminal();
        let decoding = decoding.at(Clock::system().now());
        for later in 0..self.count {
            let number = sequence
                .as_ref()
                .map(|(name, first)| (*name, (first + u128::from(later)).to_string()));
            let others = given
                .iter()
                .copied()
                .filter(|(name, _)| number.as_ref().is_none_or(|(known, _)| known != name));
            let fields: Vec<_> = others
                .chain(
                    number
                        .as_ref()
                        .map(|(name, number)| (*name, number.as_str())),
                )
                .collect();
            let made = format
                .id_of_fields(&fields)
                .map_err(|error| usage(&error))?;
            let answer = decoding.encoded(format, &made);
            if is_drawn {
                let gap = if later == 0 { "" } else { "\n" };
                print(format_args!(
                    "{gap}{}",
                    ruler(&answer.decoded(), Style::Plain)
                ))?;
            } else {
                let mut json = Vec::new();
                answer.write_json(&mut json);
                print(format_args!("{}\n", String::from_utf8_lossy(&json)))?;
            }
        }
        Ok(())
    }

    fn given(&self) -> Result<Vec<(&str, &str)>, Failure> {
        let split =
            |field: &'_ str| format!("{field:?} is no field: write NAME=VALUE, such as worker=3");
        let pairs = self
            .fields
            .iter()
            .map(|field| field.split_once('=').ok_or_else(|| split(field)));
        pairs
            .collect::<Result<_, _>>()
            .map_err(|message| Failure::new(Exit::Usage, message))
    }
}

/// The field that counts the ids of a tick, and its value in the first of `count` ids.
fn sequence_of<'a>(
    format: &'a Format,
    given: &[(&str, &str)],
    count: u32,
) -> Result<(&'a str, u128), Failure> {
    let usage = |message: String| Failure::new(Exit::Usage, message);
    let first = format
        .id_of_fields(given)
        .map_err(|error| usage(error.to_string()))?
        .id;
    let parts = format.split(first).expect("fields make an id");
    let counted = parts
        .layout
        .fields()
        .iter()
        .zip(&parts.values)
        .find(|(field, _)| field.kind == FieldKind::Sequence);
    let Some((field, value)) = counted else {
        return Err(usage(format!(
            "--count is {count}: {} has no sequence to count, so there is one id",
            format.name
        )));
    };
    let room = field.max - value + 1;
    if u128::from(count) > room {
        let (name, most) = (&field.name, field.max);
        return Err(usage(format!(
            "--count is {count}: from {name}={value} to the last, {most}, there are {room}"
        )));
    }
    Ok((&field.name, *value))
}
