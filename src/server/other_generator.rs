//! Prevents this program from minting ids that another id generator has already minted. The
//! settings `start_after` and `exclude` of a format say which ids these are.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tracing::info;

use idmint_core::minting::{ExcludedTicks, ExclusionError, Minter};
use idmint_core::time::{UnixNanos, UnixTime, format_duration};
use idmint_service::Service;

/// The reason why a node did not start: it could not make sure that it repeats no id of another id
/// generator. No id was minted.
#[derive(Debug, thiserror::Error)]
pub enum OtherGeneratorError {
    /// The time in the setting `start_after` is too far ahead of the clock for the start to wait,
    /// or the file of excluded ids has an invalid line or lines out of order.
    #[error("{0}")]
    Refused(String),
    /// The file cannot be read.
    #[error("formats.{format}.exclude: {} cannot be read", .path.display())]
    NotReadable {
        /// The format.
        format: String,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: io::Error,
    },
}

/// Checks that every format can begin to mint at most `max_ahead` from now. A format begins to mint
/// only after the time in its `start_after`, which is the last id of another generator.
///
/// # Errors
/// Returns [`OtherGeneratorError::Refused`] with the time at which the format would begin to mint.
pub(super) fn check_start_after(
    service: &Service,
    max_ahead: Duration,
) -> Result<(), OtherGeneratorError> {
    let now = service.clock().now();
    let latest = UnixTime::from(now.after(max_ahead));
    let formats = service.formats().iter().map(|served| served.format());
    for format in formats.filter(|format| format.is_minted()) {
        let (Some(id), Some(starts)) = (&format.start_after, format.starts_at()) else {
            continue;
        };
        if starts > latest {
            return Err(OtherGeneratorError::Refused(format!(
                "formats.{}.start_after = `{}`: minting would begin at {starts}, but the clock shows {now}; a start \
                 waits at most clock.max_ahead = {}. Check this clock, the clock that minted that id, and the id \
                 itself",
                format.name,
                id.id,
                format_duration(max_ahead)
            )));
        }
    }
    Ok(())
}

/// Reads the files named by the setting `exclude`, which contain ids of other generators. From now
/// on, the minters skip the ticks of these ids. Ids before `from` are ignored, so minting must not
/// begin before `from`.
///
/// # Errors
/// Returns [`OtherGeneratorError`], which names the file and the line.
pub(super) async fn exclude_ids(
    service: &Service,
    from: UnixNanos,
) -> Result<(), OtherGeneratorError> {
    for minter in excluding(service) {
        let reader = Arc::clone(minter);
        // Reading a long file of excluded ids takes a while. Minting has not begun yet, so mint
        // requests are refused while the file is read.
        let read = tokio::task::spawn_blocking(move || read_excluded(&reader, from)).await;
        let ticks = read.expect("the reader of a file does not panic")?;
        info!(
            format = minter.counted().format.name,
            ids = ticks.ids(),
            ticks = ticks.ticks(),
            skipped = ticks.skipped(),
            "the ids of another generator (exclude) were read, and will not be minted"
        );
        minter.exclude(ticks);
    }
    Ok(())
}

/// Returns lines for an operator. They say which ids the formats would not mint if the service
/// started now, because of other generators (other programs that mint ids).
///
/// # Errors
/// Returns the [`OtherGeneratorError`] that the start would return.
pub fn other_generators(
    service: &Service,
    max_ahead: Duration,
) -> Result<Vec<String>, OtherGeneratorError> {
    check_start_after(service, max_ahead)?;
    let formats = service.formats().iter().map(|served| served.format());
    let after = formats
        .filter(|format| format.is_minted())
        .filter_map(|format| {
            let (id, starts) = (&format.start_after.as_ref()?.id, format.starts_at()?);
            Some(format!(
                "{} mints no id at or below {id}: its ids begin at {starts}",
                format.name
            ))
        });
    let mut lines: Vec<String> = after.collect();
    let now = service.clock().now();
    for minter in excluding(service) {
        let (ticks, format) = (read_excluded(minter, now)?, &minter.counted().format);
        let path = format
            .exclude
            .as_ref()
            .map_or_else(String::new, |path| path.display().to_string());
        lines.push(format!(
            "{} does not mint the {} ids of {path}, so its worker numbers skip {} ticks from now on",
            format.name,
            ticks.ids(),
            ticks.ticks()
        ));
        let skipped = ticks.skipped();
        lines.extend((skipped > 0).then(|| {
            format!(
                "{skipped} lines of {path} are ignored, because {} can never mint their ids",
                format.name
            )
        }));
    }
    Ok(lines)
}

/// Returns the minters of the formats with the setting `exclude`, which names a file of ids that
/// must not be minted.
fn excluding(service: &Service) -> impl Iterator<Item = &Arc<Minter>> {
    let minters = service
        .formats()
        .iter()
        .filter_map(|served| served.minter());
    minters.filter(|minter| minter.counted().format.exclude.is_some())
}

fn read_excluded(minter: &Minter, from: UnixNanos) -> Result<ExcludedTicks, OtherGeneratorError> {
    let format = &minter.counted().format;
    let path: &Path = format
        .exclude
        .as_deref()
        .expect("only formats with a file are read");
    let not_readable = |cause| OtherGeneratorError::NotReadable {
        format: format.name.clone(),
        path: path.to_owned(),
        cause,
    };
    let mut file = BufReader::new(File::open(path).map_err(not_readable)?);
    let mut ids = minter
        .excluded_ids(from)
        .expect("a format with `exclude` is sequenced, checked when it was made");
    let mut line = String::new();
    while file.read_line(&mut line).map_err(not_readable)? > 0 {
        let text = line.trim_end_matches(['\n', '\r']);
        let refused = |cause: ExclusionError| {
            let (format, path) = (&format.name, path.display());
            OtherGeneratorError::Refused(format!("formats.{format}.exclude: {path}, {cause}"))
        };
        ids.read_line(text).map_err(refused)?;
        line.clear();
    }
    Ok(ids.ticks())
}
