//! Generates Conjunction Data Messages from a seed. The messages cover every form (KVN, XML and
//! JSON), and all spacing that the standard allows.

use idmint_core::time::UnixTime;
use idmint_records::conjunction::{
    CONJUNCTION_ID_KEY, CdmForm, Document, EVENT_ID_KEY, Message, SentReport,
};
use rand::RngExt;
use rand::rngs::StdRng;

/// A generated document, together with the reports and ids that must be read from it.
pub(crate) struct Made {
    pub(crate) text: Vec<u8>,
    pub(crate) reports: Vec<(UnixTime, u64, u64)>,
    /// For each message, the conjunction id that idmint wrote into it earlier, or `None`.
    pub(crate) noted: Vec<Option<String>>,
}

/// The text with which every generated id of idmint begins.
const OURS: &str = "there-";

/// Returns the conjunction id that idmint wrote into a message, either in a comment or as the
/// keyword CONJUNCTION_ID. Ignores a keyword with an id of another originator.
pub(crate) fn noted(message: &Message) -> Option<&str> {
    let keyword = message
        .conjunction_id()
        .filter(|keyword| keyword.text.starts_with(OURS));
    message
        .existing_id()
        .or(keyword)
        .map(|noted| noted.text.as_str())
}

/// Annotates a document. Each message without an id of idmint gets one of `ids`.
pub(crate) fn annotate<B: AsRef<[u8]>>(document: &Document<B>, ids: &[impl AsRef<str>]) -> Vec<u8> {
    let is_noted = |(message, id): (&Message, &str)| {
        noted(message).is_some()
            || message
                .conjunction_id()
                .is_some_and(|keyword| keyword.text == id)
    };
    let sent_report = |(message, id): (&Message, _)| SentReport {
        report: *message.report(),
        noted: is_noted((message, AsRef::as_ref(&id))).then_some(0),
    };
    document.annotate(
        &document
            .messages()
            .iter()
            .zip(ids)
            .map(sent_report)
            .collect::<Vec<_>>(),
        ids,
    )
}

/// Generates a document with one to four messages.
pub(crate) fn random_document(form: CdmForm, random: &mut StdRng) -> Made {
    let mut made = Made {
        text: Vec::new(),
        reports: Vec::new(),
        noted: Vec::new(),
    };
    let count = random.random_range(1..=4);
    if form == CdmForm::Csv {
        made.text = csv(count, &mut made, random).into_bytes();
        return made;
    }
    let texts: Vec<_> = (0..count)
        .map(|_| message(form, &mut made, random))
        .collect();
    let bom = if one_of(random, 10) { "\u{feff}" } else { "" };
    let text = match form {
        CdmForm::Kvn => {
            let text = texts.concat();
            if one_of(random, 3) {
                text.trim_end_matches(['\r', '\n']).to_owned()
            } else {
                text
            }
        }
        CdmForm::Xml if count == 1 && one_of(random, 2) => {
            format!("<?xml version='1.0'?>{}", texts[0])
        }
        CdmForm::Xml => {
            let prefix = pick(random, &["", "ndm:", "n-1:"]);
            format!(
                "<{prefix}ndm a='<!-- -->'>{}</{prefix}ndm>",
                texts.join("<!-- <cdm> & --><opm><TCA/></opm>")
            )
        }
        CdmForm::SpaceTrack if count == 1 && one_of(random, 2) => texts[0].clone(),
        CdmForm::SpaceTrack => {
            let list = format!("[{}]", texts.join(pick(random, &[",", " ,\r\n\t"])));
            match random.random_range(0..4) {
                0 => format!("{{\"data\":{list},\"request_metadata\":{{\"Total\":1}}}}"),
                1 => format!("{{ \"request_metadata\" : null,\n\"data\" :{list}}}"),
                _ => list,
            }
        }
        CdmForm::Csv => unreachable!("made above"),
    };
    made.text = format!("{bom}{text}").into_bytes();
    made
}

fn one_of(random: &mut StdRng, many: u32) -> bool {
    random.random_range(0..many) == 0
}

fn pick<'a>(random: &mut StdRng, of: &[&'a str]) -> &'a str {
    of[random.random_range(0..of.len())]
}

/// Draws a time in whole microseconds, and writes it in one of the forms that the standard allows.
fn time(random: &mut StdRng) -> (UnixTime, String) {
    let micros = random.random_range(0..8_000_000_000_000_000_i128);
    let instant = UnixTime::from_nanos(micros * 1_000);
    let text = instant.to_text(6).unwrap();
    let text = text.trim_end_matches('Z');
    let date: jiff::civil::Date = text[..10].parse().unwrap();
    let day = if one_of(random, 2) {
        text[..10].to_owned()
    } else {
        format!("{}-{:03}", &text[..4], date.day_of_year())
    };
    (
        instant,
        format!(
            "{day}{}{}",
            &text[10..],
            pick(random, &["", "Z", "9", "000999", "9Z"])
        ),
    )
}

/// Draws the values of a message. Returns its time, the designators of its objects and its id.
fn values(made: &mut Made, random: &mut StdRng) -> (String, [String; 2], Option<String>) {
    let (tca, tca_text) = time(random);
    let primary = random.random_range(1..4_194_304_u64);
    let secondary = primary % 4_194_303 + 1;
    made.reports.push((tca, primary, secondary));
    made.noted
        .push(one_of(random, 4).then(|| format!("{OURS}{}", made.noted.len())));
    let noted = made.noted.last().unwrap().clone();
    let zeros = |random: &mut StdRng, number: u64| {
        format!(
            "{}{number}",
            pick(random, &["", "", "0", "0000000000000000000000"])
        )
    };
    let objects = [zeros(random, primary), zeros(random, secondary)];
    (tca_text, objects, noted)
}

fn message(form: CdmForm, made: &mut Made, random: &mut StdRng) -> String {
    let (tca, objects, noted) = values(made, random);
    match form {
        CdmForm::Kvn => kvn(&tca, &objects, noted.as_deref(), random),
        CdmForm::Xml => xml(&tca, &objects, noted.as_deref(), random),
        CdmForm::SpaceTrack if one_of(random, 4) => {
            nested(&tca, &objects, noted.as_deref(), random)
        }
        CdmForm::SpaceTrack => space_track(&tca, &objects, noted.as_deref(), random),
        CdmForm::Csv => unreachable!("its messages share the names of the columns"),
    }
}

/// The names of the objects in flat rows.
const FLAT: [[&str; 2]; 5] = [
    ["SAT_1_ID", "SAT_2_ID"],
    ["SAT1_OBJECT_DESIGNATOR", "SAT2_OBJECT_DESIGNATOR"],
    ["SAT1_ID", "SAT2_ID"],
    ["OBJECT1_OBJECT_DESIGNATOR", "OBJECT2_OBJECT_DESIGNATOR"],
    ["NORAD_CAT_ID_1", "NORAD_CAT_ID_2"],
];

/// Writes a time as databases do: with a blank instead of `T`.
fn with_blank(tca: &str, random: &mut StdRng) -> String {
    tca.replace('T', pick(random, &["T", " "]))
}

/// Generates a document whose messages are lines of CSV. If it has a column for the id, this column
/// is not the last one.
fn csv(count: usize, made: &mut Made, random: &mut StdRng) -> String {
    let rows: Vec<_> = (0..count).map(|_| values(made, random)).collect();
    let separator = pick(random, &[",", ";", "\t", "|"]);
    let end = pick(random, &["\n", "\r\n", "\r"]);
    let names = FLAT[random.random_range(0..FLAT.len())];
    let has_ids = made.noted.iter().any(Option::is_some) || one_of(random, 4);
    let mut columns = vec!["TCA", names[0], names[1], "NAME", "CONJUNCTION_ID"];
    columns.extend(has_ids.then_some(EVENT_ID_KEY));
    for at in (1..columns.len()).rev() {
        columns.swap(at, random.random_range(0..=at));
    }
    columns.push("PC");
    let is_quoting = one_of(random, 2);
    let line = |cells: Vec<String>, random: &mut StdRng| {
        let cell = |cell: String| {
            let is_special = cell.contains([',', ';', '\t', '|', '"', '\r', '\n']);
            match is_special || is_quoting && random.random_range(0..3) > 0 {
                true => format!("\"{}\"", cell.replace('"', "\"\"")),
                false => cell,
            }
        };
        cells
            .into_iter()
            .map(cell)
            .collect::<Vec<_>>()
            .join(separator)
    };
    let heading = columns.iter().map(|name| (*name).to_owned()).collect();
    let mut lines = vec![line(heading, random)];
    for (tca, objects, noted) in &rows {
        let value = |name: &&str| match *name {
            "TCA" => with_blank(tca, random),
            name if name == names[0] => format!("{}{}", pick(random, &["", " "]), objects[0]),
            name if name == names[1] => objects[1].clone(),
            "NAME" => pick(random, &["", "A", "B, \"C\"", "é;\r\nTCA", " | "]).to_owned(),
            "CONJUNCTION_ID" => pick(random, &["", "theirs", "7"]).to_owned(),
            EVENT_ID_KEY => noted.clone().unwrap_or_default(),
            _ => "4.8E-05".to_owned(),
        };
        let cells = columns.iter().map(value).collect();
        lines.push(line(cells, random));
    }
    let bom = if one_of(random, 10) { "\u{feff}" } else { "" };
    let last = if one_of(random, 2) { end } else { "" };
    let between = if one_of(random, 3) {
        format!("{end}{}{end}", pick(random, &["", "  "]))
    } else {
        end.to_owned()
    };
    format!("{bom}{}{last}", lines.join(&between))
}

/// Generates a message in the nested JSON of brahe.
fn nested(tca: &str, objects: &[String; 2], noted: Option<&str>, random: &mut StdRng) -> String {
    let is_upper = one_of(random, 2);
    let key = |name: &str| match is_upper {
        true => name.to_ascii_uppercase(),
        false => name.to_owned(),
    };
    let gap = pick(random, &["", "\n  "]);
    let member = |name: &str, value: &str| format!("{gap}\"{}\": {value}", key(name));
    let object = |at: usize| {
        let designator = member("object_designator", &format!("\"{}\"", objects[at]));
        let catalog = member("catalog_name", "\"SATCAT\"");
        format!(
            "\"object{}\":{{\"metadata\":{{{designator},{catalog}}},\"state_vector\":{{\"x\":1.5}}}}",
            at + 1
        )
    };
    let version = member("ccsds_cdm_vers", "1.0");
    let header = format!("\"header\":{{{version},\"TCA\":7}}");
    let time = member("tca", &format!("\"{tca}\""));
    let theirs = member("conjunction_id", pick(random, &["null", "7", "\"theirs\""]));
    let relative = format!("\"relative_metadata\":{{{time},{theirs}}}");
    let mut members = vec![header, object(0), object(1), relative];
    members.extend(noted.map(|id| format!("\"{EVENT_ID_KEY}\":\"{id}\"")));
    for at in (1..members.len()).rev() {
        members.swap(at, random.random_range(0..=at));
    }
    format!("{{{}{gap}}}", members.join(","))
}

const VERSIONS: [&str; 4] = ["1.0", "1.0", "2.0", "2.7"];

/// Values that other originators write into the keyword CONJUNCTION_ID. The value may be empty.
const THEIRS: [&str; 4] = ["", "7", "2024 A = B", "CONJUNCTION_ID"];

const COMMENTS: [&str; 5] = [
    "",
    " ",
    " TCA = 2000-01-01T00:00:00",
    " é = <OBJECT>",
    " CONJUNCTION_EVENT_ID_OLD = x",
];

fn kvn(tca: &str, objects: &[String; 2], noted: Option<&str>, random: &mut StdRng) -> String {
    let mut out = String::new();
    let end = pick(random, &["\n", "\r\n", "\r", "\n\r"]);
    let mut line = |text: &str, random: &mut StdRng| {
        out += &format!(
            "{}{text}{}{end}",
            pick(random, &["", "", " ", "\t"]),
            pick(random, &["", "", "  ", "\t"])
        );
        if one_of(random, 8) {
            out += end;
        }
    };
    let key = |random: &mut StdRng, key: &str, value: &str| {
        format!("{key}{}{value}", pick(random, &[" = ", "=", "   =\t"]))
    };
    let comment = |random: &mut StdRng| format!("COMMENT{}", pick(random, &COMMENTS));
    let version = pick(random, &VERSIONS);
    line(&key(random, "CCSDS_CDM_VERS", version), random);
    for _ in 0..random.random_range(0..3) {
        line(&comment(random), random);
    }
    let is_late = one_of(random, 4);
    let in_keyword = noted.filter(|_| one_of(random, 2));
    let noted = noted.filter(|_| in_keyword.is_none());
    if let Some(id) = noted.filter(|_| !is_late) {
        line(
            &format!(
                "COMMENT {EVENT_ID_KEY}{}{id}",
                pick(random, &["=", " = ", "  =  "])
            ),
            random,
        );
    }
    for name in [
        "CLASSIFICATION",
        "CREATION_DATE",
        "ORIGINATOR",
        "MESSAGE_FOR",
        "MESSAGE_ID",
    ] {
        if !one_of(random, 3) {
            line(&key(random, name, "a = b [m]"), random);
        }
    }
    if let Some(id) = noted.filter(|_| is_late) {
        line(&format!("COMMENT {EVENT_ID_KEY} = {id}"), random);
    }
    line(&comment(random), random);
    let is_before = one_of(random, 2);
    let keyword = in_keyword.or_else(|| one_of(random, 4).then(|| pick(random, &THEIRS)));
    if let Some(id) = keyword.filter(|_| is_before) {
        line(&key(random, CONJUNCTION_ID_KEY, id), random);
        line(&comment(random), random);
    }
    line(&key(random, "TCA", tca), random);
    if let Some(id) = keyword.filter(|_| !is_before) {
        line(&key(random, CONJUNCTION_ID_KEY, id), random);
    }
    line("MISS_DISTANCE = 715 [m]", random);
    let order = if one_of(random, 4) { [1, 0] } else { [0, 1] };
    for at in order {
        line(&comment(random), random);
        line(&key(random, "OBJECT", &format!("OBJECT{}", at + 1)), random);
        if one_of(random, 2) {
            line("CATALOG_NAME = SATCAT", random);
        }
        line(&key(random, "OBJECT_DESIGNATOR", &objects[at]), random);
        line("X = 2570.097065 [km]", random);
    }
    out
}

fn xml(tca: &str, objects: &[String; 2], noted: Option<&str>, random: &mut StdRng) -> String {
    let gap = pick(random, &["", "\n", "\r\n  ", "\n\t\t"]);
    let prefix = pick(random, &["", "", "cdm:"]);
    let in_keyword = noted.filter(|_| one_of(random, 2));
    let noted = noted.filter(|_| in_keyword.is_none());
    let keyword = in_keyword.or_else(|| one_of(random, 4).then(|| pick(random, &THEIRS)));
    let mut value = |text: &str| match random.random_range(0..4) {
        0 => format!(" {text}\n"),
        1 => format!("<![CDATA[{text}]]>"),
        2 => format!(
            "<!-- {text} -->&#{};{}",
            u32::from(text.as_bytes()[0]),
            &text[1..]
        ),
        _ => text.to_owned(),
    };
    let (tca, objects) = (value(tca), [value(&objects[0]), value(&objects[1])]);
    let noted = noted.map(|id| value(&format!("{EVENT_ID_KEY} = {id}")));
    let is_late = one_of(random, 4);
    let element = |name: &str, text: &str| format!("<{prefix}{name}>{text}</{prefix}{name}>{gap}");
    let comment = noted
        .map(|text| element("COMMENT", &text))
        .unwrap_or_default();
    let (in_header, later) = if is_late {
        (String::new(), comment)
    } else {
        (comment, String::new())
    };
    let header =
        element("COMMENT", "&lt;TCA/&gt; &amp; é") + &in_header + &element("CREATION_DATE", "x");
    let order = if one_of(random, 4) { [1, 0] } else { [0, 1] };
    let segments = order.map(|at| {
        let metadata = element("OBJECT", &format!("OBJECT{}", at + 1))
            + &element("OBJECT_DESIGNATOR", &objects[at]);
        element(
            "segment",
            &(element("metadata", &metadata) + "<data><x TCA=\"'>'\"/></data>"),
        )
    });
    let keyword = keyword
        .map(|id| element(CONJUNCTION_ID_KEY, id))
        .unwrap_or_default();
    let comments = pick(
        random,
        &[
            "",
            "<!-- <TCA/> -->",
            "<COMMENT/>",
            "<COMMENT>x</COMMENT>\n<COMMENT>y</COMMENT>",
        ],
    );
    let in_relative = match one_of(random, 2) {
        true => later + comments + &keyword + &element("TCA", &tca),
        false => later + comments + &element("TCA", &tca) + &keyword,
    };
    let relative = element(
        "relativeMetadataData",
        &(in_relative + "<MISS_DISTANCE units=\"m\">7</MISS_DISTANCE>"),
    );
    let body = element("body", &(relative + &segments.concat()));
    let attributes = pick(
        random,
        &[
            "version=\"1.0\"",
            "id = 'CCSDS_CDM_VERS'\n version='1.0'",
            "a='version' version=\"1.0\"",
        ],
    )
    .replace("1.0", pick(random, &VERSIONS));
    format!(
        "<{prefix}cdm {attributes}><{prefix}header{gap}>{gap}{header}</{prefix}header>{body}</{prefix}cdm>{gap}"
    )
}

fn space_track(
    tca: &str,
    objects: &[String; 2],
    noted: Option<&str>,
    random: &mut StdRng,
) -> String {
    let names = FLAT[random.random_range(0..FLAT.len())];
    let mut members = vec![
        ("TCA".to_owned(), format!("\"{}\"", with_blank(tca, random))),
        (names[0].to_owned(), format!("\"{}\"", objects[0])),
        (
            names[1].to_owned(),
            objects[1].trim_start_matches('0').to_owned(),
        ),
        (
            "MESSAGE \\\"FOR\\\"".to_owned(),
            "\"a\\\\,\\\":{}\"".to_owned(),
        ),
        (
            "PC".to_owned(),
            pick(random, &["null", "[1,{\"TCA\":[]}]", "1e-5", "{}", "\"é\""]).to_owned(),
        ),
    ];
    members.extend(noted.map(|id| (EVENT_ID_KEY.to_owned(), format!("\"{id}\""))));
    if one_of(random, 4) {
        let theirs = pick(random, &["null", "7", "{}", "\"theirs\"", "\"\""]);
        members.push((CONJUNCTION_ID_KEY.to_owned(), theirs.to_owned()));
    }
    for at in (1..members.len()).rev() {
        members.swap(at, random.random_range(0..=at));
    }
    let (gap, colon) = (
        pick(random, &["", " ", "\n  ", "\r\n\t"]),
        pick(random, &[":", ": ", " :\n"]),
    );
    let members: Vec<_> = members
        .iter()
        .map(|(name, value)| format!("{gap}\"{name}\"{colon}{value}"))
        .collect();
    format!(
        "{{{}{gap}}}",
        members.join(&format!("{},", pick(random, &["", " "])))
    )
}
