//! An example id for each format, which is always the same.

use sha2::{Digest, Sha256};

use crate::id::format::Format;
use crate::id::layout::{Field, FieldKind};
use crate::time::UnixTime;

/// 2026-01-01T00:00:00Z. Example ids have this time unless their format cannot express it.
pub const EXAMPLE_TIME: UnixTime = UnixTime::from_nanos(1_767_225_600_000_000_000);

/// The sequence number in every example id. A value above zero makes the sequence visible in the
/// id.
const SEQUENCE: u128 = 7;

impl Format {
    /// Returns a valid example id. Every call returns the same id.
    ///
    /// The id has the time [`EXAMPLE_TIME`], the first worker number, and the first assigned type.
    /// If the format begins after that time, the id has the format's first tick instead. If the
    /// format has ended before that time, the id has the last tick.
    ///
    /// ```
    /// use idmint_core::id::Format;
    ///
    /// let format = Format::built_in("payment").expect("a built-in format");
    /// assert_eq!(format.canonical().to_text(format.example()), "11LPC0007");
    /// ```
    pub fn example(&self) -> u128 {
        let variant = self
            .variants
            .iter()
            .find(|variant| variant.assigned)
            .unwrap_or(&self.variants[0]);
        let values: Vec<u128> = variant
            .layout
            .fields()
            .iter()
            .map(|field| self.example_value(field))
            .collect();
        let values = match self.example_tick() {
            Some(ticks) => variant.layout.with_ticks(ticks, values),
            None => values,
        };
        variant
            .layout
            .pack(&values)
            .expect("each value is within its field")
    }

    fn example_tick(&self) -> Option<u128> {
        let ticks = self.tick?.count(self.epoch, EXAMPLE_TIME);
        let last = self.end_tick()?.saturating_sub(1);
        Some(u128::try_from(ticks).unwrap_or(0).min(last))
    }

    fn example_value(&self, field: &Field) -> u128 {
        let value = match field.kind {
            FieldKind::Worker => u128::from(self.first_worker),
            FieldKind::Sequence => SEQUENCE,
            FieldKind::Random | FieldKind::Object | FieldKind::Checksum | FieldKind::Ledger => {
                arbitrary(&self.name, field)
            }
            FieldKind::Time | FieldKind::Shard | FieldKind::Constant | FieldKind::Qualifier => 0,
        };
        field.constant.unwrap_or(value.min(field.max))
    }
}

/// Returns a value for `field` that looks random, but is the same in every call.
fn arbitrary(format: &str, field: &Field) -> u128 {
    let digest: [u8; 32] = Sha256::digest(format!("{format} {}", field.name)).into();
    let (number, _) = digest.split_first_chunk().expect("32 bytes begin with 16");
    u128::from_be_bytes(*number) % (field.max + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::format::{FormatDefinition, PRESETS};
    use crate::id::preset;

    #[test]
    fn the_example_of_every_built_in_format_reads_back_in_every_encoding() {
        for built_in in PRESETS {
            let format = preset(built_in.name);
            let id = format.example();
            let time = format.split(id).expect("a valid id").time;
            // The time of the example must be in the same tick as `EXAMPLE_TIME`. Ticks of minutes
            // do not all begin at a whole second.
            let tick = format.tick.map_or(0, |tick| {
                i128::try_from(tick.duration().as_nanos()).expect("minutes")
            });
            let is_there =
                |time: UnixTime| (0..tick).contains(&(EXAMPLE_TIME.nanos() - time.nanos()));
            assert!(time.is_none_or(is_there), "{}: {time:?}", format.name);
            assert!(
                !format.rule.is_minted() || id < format.mint_below,
                "{}",
                format.name
            );
            for encoding in &format.encodings {
                assert_eq!(
                    encoding.read(&encoding.to_text(id)),
                    Ok(id),
                    "{} {}",
                    format.name,
                    encoding.name()
                );
            }
        }
    }

    #[test]
    fn a_format_of_another_time_shows_its_first_or_its_last_tick() {
        let format = |epoch: &str| {
            let text = format!(
                r#"summary = ""
                rule = "random"
                tick = "1s"
                epoch = "{epoch}"
                fields = [{{ name = "time", kind = "time", bits = 8 }}, {{ name = "random", kind = "random", bits = 8 }}]
                encodings = ["hex_padded"]"#
            );
            FormatDefinition::from_toml("custom", &text)
                .expect("TOML")
                .compile("custom")
                .expect("sound")
        };
        let tick = |epoch| format(epoch).example() >> 8;
        assert_eq!(tick("2100-01-01T00:00:00Z"), 0);
        assert_eq!(tick("1990-01-01T00:00:00Z"), 255);
    }
}
