//! Checks that a response has the requested number of ids, and that all ids differ. The scenarios
//! only count responses, and do not read the ids in them.

use std::collections::HashSet;
use std::net::SocketAddr;

use serde_json::Value;

use crate::fetch::{batch, fetch};
use crate::scenarios::WIDE;

const COUNT: u32 = 10_000;

/// The width of a packed id of [`WIDE`], in bytes.
const BYTES: usize = 8;

/// Mints one batch as JSON and one as bytes, and checks that all ids differ.
///
/// # Errors
/// Returns an error if a response is invalid, if ids are missing, or if an id occurs twice.
pub(crate) fn check(address: SocketAddr) -> Result<(), String> {
    let json: Value = serde_json::from_slice(&fetch(address, &batch(WIDE, COUNT), "")?)
        .map_err(|error| error.to_string())?;
    let texts = json["ids"].as_array().ok_or("an answer without ids")?;
    let packed = fetch(
        address,
        &batch(WIDE, COUNT),
        "accept: application/octet-stream\r\n",
    )?;
    let of_texts = texts.iter().filter_map(|id| id.as_str()?.parse().ok());
    let of_bytes = packed
        .chunks(BYTES)
        .filter_map(|id| Some(u64::from_be_bytes(id.try_into().ok()?)));
    let ids: HashSet<u64> = of_texts.chain(of_bytes).collect();
    let wanted = 2 * COUNT as usize;
    if ids.len() == wanted {
        Ok(())
    } else {
        Err(format!(
            "{} different ids came, {wanted} were wanted",
            ids.len()
        ))
    }
}
