//! Parses reports of conjunctions from a request body, in any supported form. Converts parse errors
//! to problems.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::json::{ListReader, Object, check_form, strict_json};
use crate::answer::{MediaType, Problem, Slug};
use idmint_records::conjunction::{
    CdmForm, PlainKind, ReadRule, Reports, ReportsError, WrittenReport, without_bom,
};
use idmint_wire::{AnalysisRequest, ReportRequest};

/// Parses one report, or a list of 1 to `rule.count_max` reports. The form of a JSON body is
/// recognized by the names of its members. `keeps_foreign` is `true` if the service stores ids that
/// other organizations gave to the conjunctions.
///
/// # Errors
/// Returns 400 `malformed-request` if the body cannot be read at all, and 422 `invalid-report` if
/// the body is not a valid report or list of reports.
pub(crate) fn read_reports(
    body: Bytes,
    media: MediaType,
    rule: ReadRule<'_>,
    keeps_foreign: bool,
) -> Result<Reports<Bytes>, Problem> {
    if body.is_empty() {
        let detail = "the body is empty; send a report or a list of reports";
        return Err(Problem::new(Slug::InvalidReport, detail).reason("report_form"));
    }
    let json = without_bom(&body);
    let form = match media {
        MediaType::Text => CdmForm::Kvn,
        MediaType::Xml | MediaType::TextXml => CdmForm::Xml,
        MediaType::Csv => CdmForm::Csv,
        _ if is_analysis(json) => {
            let kind = PlainKind::Analysis { keeps_foreign };
            return read_plain::<AnalysisRequest<'_>>(kind, json, rule.count_max, rule.is_partial);
        }
        _ if CdmForm::is_space_track(&body) => {
            check_form(json)?;
            CdmForm::SpaceTrack
        }
        _ => {
            return read_plain::<ReportRequest<'_>>(
                PlainKind::Own,
                json,
                rule.count_max,
                rule.is_partial,
            );
        }
    };
    Ok(Reports::read_messages(form, body, rule)?)
}

/// Returns an upper bound for the number of reports of close approaches in an unparsed body.
pub(crate) fn report_count_max(body: &[u8], media: MediaType) -> u64 {
    // In UTF-16, every second byte of ASCII text is 0. These bytes are removed, so that the ASCII
    // marks counted below are found in UTF-16 as well.
    let body = match body {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            Cow::from_iter(body.iter().copied().filter(|byte| *byte != 0))
        }
        body => Cow::Borrowed(body),
    };
    let beginnings = |of: &[u8]| body.windows(of.len()).filter(|bytes| *bytes == of).count();
    let count = match media {
        MediaType::Csv => body
            .iter()
            .filter(|byte| matches!(byte, b'\r' | b'\n'))
            .count(),
        MediaType::Text => beginnings(b"CCSDS_CDM_VERS"),
        MediaType::Xml | MediaType::TextXml => beginnings(b"<cdm"),
        _ => values_of_list(without_bom(&body)),
    };
    u64::try_from(count.max(1)).expect("a body is shorter than 2^64")
}

/// Returns an upper bound for the number of reports in JSON: one, a list, or an object with a list.
/// For other JSON the number is meaningless, but the parser refuses such JSON later.
fn values_of_list(json: &[u8]) -> usize {
    let list_depth = match json.trim_ascii_start().first() {
        Some(b'{') => 2,
        _ => 1,
    };
    let (mut depth, mut values, mut is_quoted, mut is_escaped) = (0_usize, 1, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_quoted,
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth <= list_depth => values += 1,
            _ => {}
        }
    }
    values
}

/// A JSON object that reports a close approach, such as `{"tca": …, "primary": …, "secondary": …}`.
trait PlainForm<'a>: Deserialize<'a> {
    fn written(&self) -> WrittenReport<'_>;
}

impl<'a> PlainForm<'a> for ReportRequest<'a> {
    fn written(&self) -> WrittenReport<'_> {
        WrittenReport {
            tca: &self.tca,
            primary: self.primary,
            secondary: self.secondary,
            noted: self.noted.as_deref(),
        }
    }
}

impl<'a> PlainForm<'a> for AnalysisRequest<'a> {
    fn written(&self) -> WrittenReport<'_> {
        WrittenReport {
            tca: &self.tca,
            primary: self.primary_object.norad_id,
            secondary: self.secondary_object.norad_id,
            noted: self.event_id.as_deref(),
        }
    }
}

/// `true` if the JSON contains analyses of conjunctions. An analysis is recognized by a member
/// whose name begins with `primary_object` or `secondary_object`. In a list, only the first object
/// is examined.
fn is_analysis(json: &[u8]) -> bool {
    serde_json::from_slice::<HasAnalysedObjects>(json).is_ok_and(|found| found.0)
}

struct HasAnalysedObjects(bool);

impl<'de> Deserialize<'de> for HasAnalysedObjects {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HasAnalysedObjects, D::Error> {
        deserializer.deserialize_any(AnalysisVisitor)
    }
}

struct AnalysisVisitor;

impl<'de> Visitor<'de> for AnalysisVisitor {
    type Value = HasAnalysedObjects;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object, or a list of them")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<HasAnalysedObjects, A::Error> {
        let mut found = false;
        while let Some((name, IgnoredAny)) = members.next_entry::<Cow<'de, str>, IgnoredAny>()? {
            found |= name.starts_with("primary_object") || name.starts_with("secondary_object");
        }
        Ok(HasAnalysedObjects(found))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut objects: A) -> Result<HasAnalysedObjects, A::Error> {
        let first = objects.next_element()?;
        while objects.next_element::<IgnoredAny>()?.is_some() {}
        Ok(first.unwrap_or(HasAnalysedObjects(false)))
    }
}

fn read_plain<'a, F: PlainForm<'a>>(
    kind: PlainKind,
    json: &'a [u8],
    most: u32,
    is_partial: bool,
) -> Result<Reports<Bytes>, Problem> {
    let is_list = json.trim_ascii_start().first() == Some(&b'[');
    if is_partial {
        let given: Vec<Result<Object<F>, String>> = if is_list {
            let given: Vec<&RawValue> = read_json(json)?;
            // Check the count first, to refuse a list with too many reports before the reports are
            // parsed.
            ReportsError::check_count(given.len(), most)?;
            let mut list = ListReader::new(json);
            let read = |(index, value)| list.read(index, value);
            given.into_iter().enumerate().map(read).collect()
        } else {
            vec![match read_json(json) {
                Err(problem) if problem.slug() == Slug::InvalidReport => {
                    Err(problem.detail().to_owned())
                }
                report => Ok(report?),
            }]
        };
        let parts = given.iter().map(|read| {
            read.as_ref()
                .map(|Object(report)| report.written())
                .map_err(String::clone)
        });
        return Ok(Reports::read_plain(kind, parts, is_list, most, is_partial)?);
    }
    let given: Vec<Object<F>> = if is_list {
        read_json(json)?
    } else {
        vec![read_json(json)?]
    };
    Ok(Reports::read_plain(
        kind,
        given.iter().map(|Object(report)| Ok(report.written())),
        is_list,
        most,
        is_partial,
    )?)
}

fn read_json<'a, T: serde::Deserialize<'a>>(json: &'a [u8]) -> Result<T, Problem> {
    strict_json(json, Slug::InvalidReport).map_err(|problem| match problem.slug() {
        Slug::InvalidReport => problem.reason("report_form"),
        _ => problem,
    })
}

impl From<ReportsError> for Problem {
    fn from(error: ReportsError) -> Problem {
        let detail = error.to_string();
        let of = |slug, reason: &str| Problem::new(slug, detail).reason(reason);
        let (problem, limit) = match error {
            ReportsError::Message(error) => {
                let slug = if error.reason == "not_utf8" {
                    Slug::MalformedRequest
                } else {
                    Slug::InvalidReport
                };
                let problem = of(slug, error.reason).with("line", error.line);
                let problem = match error.keyword {
                    Some(keyword) => problem.with("keyword", keyword),
                    None => problem,
                };
                (problem, error.limit)
            }
            ReportsError::Report { error, .. } => {
                (of(Slug::InvalidReport, error.reason()), error.limit())
            }
            ReportsError::Form { .. } => (of(Slug::InvalidReport, "report_form"), None),
            ReportsError::Noted { fault, .. } => (of(Slug::InvalidReport, fault.reason()), None),
            ReportsError::Count { most, .. } => {
                (of(Slug::InvalidReport, "count"), Some(most.to_string()))
            }
        };
        match limit {
            Some(limit) => problem.limit(limit),
            None => problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use idmint_records::conjunction::ObjectRules;

    #[test]
    fn a_single_report_with_any_mistake_is_left_out_if_some_may_be() {
        let objects = ObjectRules::default();
        let read = |body: &'static str, is_partial| {
            let rule = ReadRule {
                objects: &objects,
                note: None,
                is_partial,
                count_max: 1,
            };
            read_reports(Bytes::from(body), MediaType::Json, rule, false)
        };
        for body in [
            r#"{"tca":"x","primary":1,"secondary":2}"#,
            r#"{"tca":"2024-02-01T00:00:00Z","primary":"x","secondary":2}"#,
            r#"{"tca":"2024-02-01T00:00:00Z"}"#,
            r#"{"tca":"x","primary_object":7}"#,
            "7",
        ] {
            let detail = read(body, false).expect_err(body).detail().to_owned();
            let Reports::Plain {
                reports, refused, ..
            } = read(body, true).expect(body)
            else {
                panic!("no messages");
            };
            let error = refused.into_iter().next().expect("one error").1;
            assert_eq!((reports.len(), error.to_string()), (0, detail), "{body}");
        }
        let malformed = read(r#"{"tca":1,"tca":1}"#, true).expect_err("a key given twice");
        assert_eq!(malformed.slug(), Slug::MalformedRequest);
    }

    #[test]
    fn reports_are_counted_without_being_read() {
        for (body, media, count) in [
            ("", MediaType::Json, 1),
            (
                r#"{"tca":"2030-01-01","primary":1,"secondary":2}"#,
                MediaType::Json,
                3,
            ),
            ("[]", MediaType::Json, 1),
            (
                r#" [ {"a":[1,2],"b":",],"} , {} ,7,"\\\",",[1,2]]"#,
                MediaType::Json,
                5,
            ),
            ("[{},{},{}", MediaType::Json, 3),
            (r#"{"data":[{"a":1,"b":2},{}]}"#, MediaType::Json, 2),
            ("\u{feff}{\"data\":[{},{}]}", MediaType::Json, 2),
            ("TCA,A\n1,2\n3,4\n", MediaType::Csv, 3),
            (
                "CCSDS_CDM_VERS = 1.0\nCCSDS_CDM_VERS = 1.0\n",
                MediaType::Text,
                2,
            ),
            ("<ndm><cdm/><cdm></cdm></ndm>", MediaType::Xml, 2),
        ] {
            assert_eq!(report_count_max(body.as_bytes(), media), count, "{body}");
        }
        let utf_16: Vec<u8> = "\u{feff}CCSDS_CDM_VERS = 1.0\nCCSDS_CDM_VERS = 1.0\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(report_count_max(&utf_16, MediaType::Text), 2);
    }
}
