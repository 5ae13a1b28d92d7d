//! The command `idmint encode`, which prints the id that consists of given field values.

use std::io::{self, IsTerminal};

use clap::Args;

use super::vectors::vectors;
use crate::cli::exit::Failure;
use crate::cli::print::print;
use crate::cli::settings::Settings;
use crate::server;
use idmint_core::id::{DomainHash, FieldKind, Format};
use idmint_core::time::Clock;
use idmint_wire::{Style, ruler};

/// The maximum number of test vectors with random fields. All vectors are in memory at once.
const VECTORS_MAX: u32 = 100_000;

/// Write the id of given fields in every encoding, offline; this mints nothing.
#[derive(Debug, Args)]
pub(in crate::cli) struct Encode {
    /// The format.
    format: String,
    /// The fields of the id. The time is `time` with an instant, or `time_ticks` with a number.
    /// Absent fields are 0. In `siq`, the `domain` is a domain name or its hash as a number.
    #[arg(value_name = "NAME=VALUE")]
    fields: Vec<String>,
    /// The number of ids with ascending sequence numbers or, with --vectors, with random fields (at
    /// most 100000).
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// One JSON object a line, as GET /encode/{format} returns; the default unless the output is a terminal.
    #[arg(long, conflicts_with = "text")]
    json: bool,
    /// Drawings, the default on a terminal.
    #[arg(long)]
    text: bool,
    /// Print JSON test vectors (docs/internals/VECTORS.md): the lowest and highest id, an id with
    /// the highest value of each field, and ids with random fields, in every encoding.
    #[arg(long, conflicts_with_all = ["fields", "json", "text"])]
    vectors: bool,
    /// The seed of the random fields of vectors.
    #[arg(long, value_name = "N", requires = "vectors", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    settings: Settings,
}

impl Encode {
    /// Prints each id.
    ///
    /// # Errors
    /// Returns exit code 64 if the format is unknown, `--count` is too high or the fields form no
    /// id, 74 if the output fails, and 78 if the configuration is invalid.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let config = self.settings.load_without_slot()?;
        let decoding = server::decoding(&config)?;
        let format = decoding.format(&self.format).map_err(Failure::usage)?;
        if self.vectors {
            if self.count > VECTORS_MAX {
                return Err(Failure::usage(format!(
                    "--count is {}, but must be at most {VECTORS_MAX} with --vectors",
                    self.count
                )));
            }
            let decoding = decoding.at(Clock::system().now());
            let vectors = vectors(format, self.count, self.seed, |made| {
                decoding.encoded(format, made)
            });
            return print(format_args!("{vectors:#}\n"));
        }
        let given = self.given()?;
        let hash = domain_hash(format, &given, config.siq.local_id)?;
        let given: Vec<(&str, &str)> = given
            .into_iter()
            .map(|(name, value)| match &hash {
                Some(hash) if name == DOMAIN => (name, hash.as_str()),
                _ => (name, value),
            })
            .collect();
        let sequence = match self.count {
            1 => None,
            count => Some(sequence_of(format, &given, count)?),
        };
        let is_drawn = self.text || !self.json && io::stdout().is_terminal();
        let decoding = decoding.at(Clock::system().now());
        for later in 0..self.count {
            let number = sequence.map(|(name, first)| (name, first + u128::from(later)));
            let number = number.map(|(name, number)| (name, number.to_string()));
            let mut fields = given.clone();
            if let Some((name, number)) = &number {
                fields.retain(|(known, _)| known != name);
                fields.push((name, number));
            }
            let made = format.id_of_fields(&fields);
            let made = made.map_err(Failure::usage)?;
            let answer = decoding.encoded(format, &made);
            if is_drawn {
                let gap = if later == 0 { "" } else { "\n" };
                let drawing = ruler(&answer.decoded(), Style::Plain);
                print(format_args!("{gap}{drawing}"))?;
            } else {
                let mut json = Vec::new();
                answer.write_json(&mut json);
                print(format_args!("{}\n", String::from_utf8_lossy(&json)))?;
            }
        }
        Ok(())
    }

    fn given(&self) -> Result<Vec<(&str, &str)>, Failure> {
        let split = |field: &'_ str| {
            format!("{field:?} is not a field and its value: write NAME=VALUE, such as worker=3")
        };
        let pairs = self
            .fields
            .iter()
            .map(|field| field.split_once('=').ok_or_else(|| split(field)));
        pairs.collect::<Result<_, _>>().map_err(Failure::usage)
    }
}

/// The name of the field that contains the hash of a domain.
const DOMAIN: &str = "domain";

/// Returns the value of the field `domain` as a decimal number. The value is the hash of the domain
/// name in `given`. Returns `None` if the format has no domains, or if `given` contains no domain
/// or already contains the hash. `local_id` is the configured `siq.local_id`.
fn domain_hash(
    format: &Format,
    given: &[(&str, &str)],
    local_id: Option<u16>,
) -> Result<Option<String>, Failure> {
    let has_domain = format.has_types() && format.field_names().contains(&DOMAIN);
    let named = given.iter().find(|(name, _)| *name == DOMAIN);
    let Some((_, domain)) = named.filter(|_| has_domain) else {
        return Ok(None);
    };
    if domain.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    let is_lower = domain
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase());
    let hash = DomainHash::of(domain, local_id).ok().filter(|_| is_lower);
    let refuse = || {
        let message = format!(
            "`domain` is {domain:?}, but must be in lower-case ASCII (international ones as xn--), or the number of a hash"
        );
        Failure::usage(message)
    };
    let hash = hash.ok_or_else(refuse)?;
    Ok(Some(hash.get().to_string()))
}

/// Returns the name of the format's sequence field, and the sequence of the first id. Each further
/// id has a sequence one higher than the id before it.
fn sequence_of<'a>(
    format: &'a Format,
    given: &[(&str, &str)],
    count: u32,
) -> Result<(&'a str, u128), Failure> {
    let first = format.id_of_fields(given);
    let first = first.map_err(Failure::usage)?;
    let parts = format.split(first.id).expect("fields make an id");
    let mut numbers = parts.numbers();
    let counted = numbers.find(|(field, ..)| field.kind == FieldKind::Sequence);
    let Some((field, value, _)) = counted else {
        return Err(Failure::usage(format!(
            "--count is {count}, but must be 1, because {} has no sequence",
            format.name
        )));
    };
    // A layout can split the sequence into several fields with the same name. The maximum is then
    // the sum over these fields.
    let fields = parts.layout.fields().iter();
    let shares = fields.filter(|share| share.name == field.name);
    let most: u128 = shares.map(|share| share.max * share.scale).sum();
    let room = most - value + 1;
    if u128::from(count) > room {
        let name = &field.name;
        return Err(Failure::usage(format!(
            "--count is {count}, but only {room} ids exist from {name}={value} to the maximum {most}"
        )));
    }
    Ok((&field.name, value))
}
