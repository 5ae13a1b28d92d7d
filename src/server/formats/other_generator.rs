//! The ids of another generator, which a start keeps clear of: `start_after` and `exclude` of a format.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tracing::info;

use crate::minting::{ExcludedTicks, ExclusionError, Minter};
use crate::service::Service;
use crate::time::{UnixNanos, UnixTime, format_duration};

/// A start that could not keep clear of the ids of another generator. Nothing was minted.
#[derive(Debug, thiserror::Error)]
pub enum OtherGeneratorError {
    /// What `start_after` names is further ahead of the clock than is waited for.
    #[error(
        "formats.{format}.start_after = `{id}`: nothing is minted before {starts}, and the clock shows {now}; a start waits for \
         clock.max_ahead = {} at most. Either this clock or the one which that id was minted by is wrong, or it is another id",
        format_duration(*.max_ahead)
    )]
    StartAfter {
        /// The format.
        format: String,
        /// As written.
        id: String,
        /// When the format would begin.
        starts: UnixTime,
        /// What the clock shows.
        now: UnixNanos,
        /// As configured.
        max_ahead: Duration,
    },
    /// A line of the file is no id, or not in its place.
    #[error("formats.{format}.exclude: {}, {cause}", .path.display())]
    Line {
        /// The format.
        format: String,
        /// The file.
        path: PathBuf,
        /// Which line, and why.
        cause: ExclusionError,
    },
    /// The file cannot be read.
    #[error("formats.{format}.exclude: {} cannot be read", .path.display())]
    NotReadable {
        /// The format.
        format: String,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: io::Error,
    },
}

/// That no format would have to wait for longer than a start may, for what its `start_after` names.
///
/// # Errors
/// [`OtherGeneratorError::StartAfter`] with the instant.
pub(in crate::server) fn check_start_after(
    service: &Service,
    max_ahead: Duration,
) -> Result<(), OtherGeneratorError> {
    let now = service.clock().now();
    let latest = UnixTime::from(now.after(max_ahead));
    for format in service.formats().iter().map(|served| served.format()) {
        let (Some(id), Some(starts)) = (&format.start_after, format.starts_at()) else {
            continue;
        };
        if starts > latest {
            let (format, id) = (format.name.clone(), id.id.clone());
            return Err(OtherGeneratorError::StartAfter {
                format,
                id,
                starts,
                now,
                max_ahead,
            });
        }
    }
    Ok(())
}

/// Reads the files of `exclude`: every session begins at `from` or later, and leaves their ticks out.
///
/// # Errors
/// [`OtherGeneratorError`] names the file and the line.
pub(in crate::server) async fn exclude_ids(
    service: &Service,
    from: UnixNanos,
) -> Result<(), OtherGeneratorError> {
    for minter in excluding(service) {
        let reader = Arc::clone(minter);
        // A file may be long, and meanwhile callers are told that nothing is minted yet.
        let read = tokio::task::spawn_blocking(move || read_excluded(&reader, from)).await;
        let ticks = read.expect("whoever reads a file does not panic")?;
        info!(
            format = minter.counted().format.name,
            ids = ticks.ids(),
            ticks = ticks.ticks(),
            "ids of another generator are left out"
        );
        minter.exclude(ticks);
    }
    Ok(())
}

/// What the ids of other generators mean for a start at this moment, a line each.
///
/// # Errors
/// [`OtherGeneratorError`], as the start would have it.
pub fn other_generators(
    service: &Service,
    max_ahead: Duration,
) -> Result<Vec<String>, OtherGeneratorError> {
    check_start_after(service, max_ahead)?;
    let formats = service.formats().iter().map(|served| served.format());
    let after = formats.filter_map(|format| {
        let (id, starts) = (&format.start_after.as_ref()?.id, format.starts_at()?);
        Some(format!(
            "{} mints nothing at or below {id}: its ids begin at {starts}",
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
            "{} leaves out the {} ids of {path}: {} ticks of its worker numbers from now on",
            format.name,
            ticks.ids(),
            ticks.ticks()
        ));
    }
    Ok(lines)
}

/// What mints the formats that have an `exclude`.
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
        let refused = |cause| OtherGeneratorError::Line {
            format: format.name.clone(),
            path: path.to_owned(),
            cause,
        };
        ids.read_line(text).map_err(refused)?;
        line.clear();
    }
    Ok(ids.ticks())
}
