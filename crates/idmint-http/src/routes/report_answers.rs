//! Responses to reports of conjunctions. A response contains a warning for each report that was not
//! read exactly as written. If the response is estimated to be too long, the request is refused
//! before anything is minted.

use std::collections::BTreeMap;

use axum::http::{HeaderValue, Response};

use crate::answer::{
    ANSWER_LEN_MAX, AnswerBody, IDMINT_WARNING, Problem, Slug, json_bytes, too_long,
};
use idmint_core::id::Format;
use idmint_core::time::UnixTime;
use idmint_records::conjunction::{Grouped, ReportsError};
use idmint_service::{GroupedReports, NEAR_MAX};
use idmint_wire::{MintAnswer, MintDetails, PartialDetail, PartialReports, ReportDetail};

/// The estimated length, in bytes, of the JSON details of an accepted report, without ids.
const DETAIL_LEN: usize = 128;
/// The estimated length of the details of a refused report, without the reason, in bytes.
const REFUSED_LEN: usize = 400;

/// The length of the quotes and the comma around an id in a list, in bytes.
const LISTED_LEN: usize = 3;

/// The length of the JSON around a warning, in bytes.
const WARNING_LEN: usize = 16;

/// The number of decimals in the seconds of a time of closest approach.
const TCA_DIGITS: u8 = 6;

/// Refuses a response of `len` bytes if it is too long, before anything is minted for it.
pub(super) fn check_len(len: usize) -> Result<(), Problem> {
    if len <= ANSWER_LEN_MAX {
        return Ok(());
    }
    Err(too_long(
        Slug::InvalidReport,
        "send fewer reports, or accept text/plain or application/x-ndjson for ids alone",
    ))
}

/// Returns the estimated length of the JSON details of an accepted report. It counts three ids: up
/// to two in the details, and one in the list of all ids. If the service stores conjunctions,
/// `are_stored` is `true`. The details can then also list [`NEAR_MAX`] other conjunctions that are
/// near in time.
pub(super) fn detail_len(format: &Format, encoding: usize, are_stored: bool) -> usize {
    let id_len = format.encodings[encoding].len_max();
    let near_max = if are_stored { NEAR_MAX } else { 0 };
    DETAIL_LEN + 3 * id_len + near_max * (LISTED_LEN + id_len)
}

/// Returns the estimated length of the details of a refused report, which contain the reason twice.
pub(super) fn refused_len(error: &ReportsError) -> usize {
    REFUSED_LEN + 2 * error.to_string().len()
}

/// Returns the total length of the warnings, such as one about a message of an unknown version.
pub(super) fn warnings_len(warnings: &BTreeMap<usize, String>) -> usize {
    warnings
        .values()
        .map(|warning| WARNING_LEN + warning.len())
        .sum()
}

/// Adds the first warning about a report as a header, for a response without details of reports.
pub(super) fn warned(
    mut answer: Response<AnswerBody>,
    warnings: &BTreeMap<usize, String>,
) -> Response<AnswerBody> {
    if let Some(first) = warnings.values().next() {
        let of_several = if warnings.len() > 1 {
            format!(" (the first of {} warnings)", warnings.len())
        } else {
            String::new()
        };
        let value = HeaderValue::try_from(format!("{first}{of_several}"))
            .expect("a warning is visible ASCII and spaces");
        answer.headers_mut().insert(IDMINT_WARNING, value);
    }
    answer
}

/// Adds each warning to the details of its report. Both have the same position in the request.
pub(super) fn with_warnings(
    details: impl Iterator<Item = (usize, ReportDetail)>,
    mut warnings: BTreeMap<usize, String>,
) -> impl Iterator<Item = (usize, ReportDetail)> {
    details.map(move |(position, detail)| {
        let warning = warnings.remove(&position);
        (position, ReportDetail { warning, ..detail })
    })
}

pub(super) fn count_of(grouped: &[Grouped]) -> u64 {
    u64::try_from(grouped.len()).expect("a list is shorter than 2^64")
}

/// Returns the JSON response to accepted reports. Only JSON has the details of each report. The
/// response is built as a whole, because it is only a few times as long as the body, which was also
/// read as a whole.
pub(super) fn detailed(
    format: &Format,
    details: impl Iterator<Item = (usize, ReportDetail)>,
) -> Vec<u8> {
    let details: Vec<ReportDetail> = details.map(|(_, detail)| detail).collect();
    let answer = MintAnswer {
        format: format.name.clone(),
        count: u64::try_from(details.len()).expect("a list is shorter than 2^64"),
        label: None,
        ids: details.iter().map(|detail| detail.id.clone()).collect(),
        details: Some(MintDetails::Reports(details)),
    };
    json_bytes(&answer)
}

/// Returns the response to a request in which some reports were accepted and others refused. It has
/// an id or a problem for each report, in the order of the reports.
pub(super) fn partial(
    format: &Format,
    details: impl Iterator<Item = (usize, ReportDetail)>,
    refused: Vec<(usize, ReportsError)>,
) -> Vec<u8> {
    let of_ids = details.map(|(position, detail)| (position, PartialDetail::Id(detail)));
    let of_refused = refused.into_iter().map(|(position, error)| {
        (
            position,
            PartialDetail::Refused {
                problem: Problem::from(error),
            },
        )
    });
    let mut details: Vec<(usize, PartialDetail<Problem>)> = of_ids.chain(of_refused).collect();
    details.sort_by_key(|(position, _)| *position);
    let details: Vec<PartialDetail<Problem>> =
        details.into_iter().map(|(_, detail)| detail).collect();
    let id_of = |detail: &PartialDetail<Problem>| match detail {
        PartialDetail::Id(detail) => Some(detail.id.clone()),
        PartialDetail::Refused { .. } => None,
    };
    let ids: Vec<Option<String>> = details.iter().map(id_of).collect();
    let count = u64::try_from(ids.iter().flatten().count()).expect("a list is shorter than 2^64");
    let answer = PartialReports {
        format: format.name.clone(),
        count,
        ids,
        details,
    };
    json_bytes(&answer)
}

pub(super) fn details(
    format: &Format,
    encoding: usize,
    reports: &GroupedReports,
) -> impl Iterator<Item = ReportDetail> {
    let encoding = &format.encodings[encoding];
    reports
        .grouped
        .iter()
        .enumerate()
        .map(move |(at, one)| ReportDetail {
            id: encoding.to_text(one.id),
            created: one.created,
            anchor_tca: UnixTime::from(one.anchor)
                .to_text(TCA_DIGITS)
                .expect("a time that was read can be written"),
            tca_delta_us: one.delta_us,
            noted_differs: one.noted_differs == Some(true),
            nearer_id: reports.nearer.get(&at).map(|id| encoding.to_text(*id)),
            near: reports
                .near
                .get(&at)
                .into_iter()
                .flatten()
                .map(|id| encoding.to_text(*id))
                .collect(),
            warning: None,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use idmint_core::id::{FormatDefinition, PRESETS};

    #[test]
    fn a_report_with_all_its_near_conjunctions_is_no_longer_than_estimated() {
        let preset = PRESETS.iter().find(|preset| preset.name == "conjunction");
        let preset = preset.expect("a built-in format");
        let format = FormatDefinition::from_toml(preset.name, preset.toml)
            .expect("parses")
            .compile(preset.name)
            .expect("is sound");
        for (encoding, known) in format.encodings.iter().enumerate() {
            let id = "9".repeat(known.len_max());
            let detail = ReportDetail {
                id: id.clone(),
                created: Some(true),
                anchor_tca: "2024-02-01T00:00:00.000000Z".to_owned(),
                tca_delta_us: 0,
                noted_differs: true,
                nearer_id: None,
                near: vec![id; NEAR_MAX],
                warning: None,
            };
            let len_of = |count| {
                let details = std::iter::repeat_n((0, detail.clone()), count);
                detailed(&format, details).len()
            };
            let of_one = len_of(2) - len_of(1);
            let estimate = detail_len(&format, encoding, true);
            assert!(of_one <= estimate, "{of_one} > {estimate}");
        }
    }

    #[test]
    fn an_answer_that_would_be_longer_than_64_mib_is_refused() {
        assert!(check_len(ANSWER_LEN_MAX).is_ok());
        let problem = check_len(ANSWER_LEN_MAX + 1).expect_err("a byte more");
        assert_eq!(
            (problem.status().as_u16(), problem.slug()),
            (422, Slug::InvalidReport)
        );
        assert!(
            problem.detail().contains("67108864 bytes"),
            "{}",
            problem.detail()
        );
    }
}
