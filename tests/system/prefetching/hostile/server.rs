//! A server that misbehaves in many ways. Each case below is one way.

use std::collections::HashMap;
use std::io::{self, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use idmint_testing::http1::read_request;

/// The description of a format. The server returns it in every case, so that clients go on to
/// request ids.
const FORMAT: &str = r#"{"name":"snowflake","rule":"sequenced","minted":true,"bits":63,"encodings":[{"name":"decimal","length":null,"pattern":"^(?:0|[1-9][0-9]{0,18})$"}],"example":{"value":"5","encodings":{"decimal":"5"}}}"#;

/// The reaction of the server to a request.
#[derive(Clone)]
pub(crate) enum Act {
    /// Sends these bytes, and keeps the connection open.
    Send(Vec<u8>),
    /// Sends these bytes and closes the connection.
    Close(Vec<u8>),
    /// Sends the first bytes once, and then the second bytes over and over. Pauses before each
    /// repetition.
    Repeat(Vec<u8>, Vec<u8>, Duration),
    /// Sends the beginning of a good response, and resets the connection. Each request gets a
    /// beginning of another length.
    Reset,
    /// Sends a response that depends on the number of ids and the number of the request.
    Answer(fn(count: u64, request: u64) -> Vec<u8>),
}

/// The result that a client must report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    Refused,
    Unavailable,
    BadResponse,
    /// The client reports that the service is unavailable or that the response is invalid. Both are
    /// accepted, because libraries differ in the responses that they can parse.
    Broken,
    /// The client gets ids, and no id occurs twice. Some calls may fail.
    Ids,
}

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) expected: Expected,
    /// `true` if the client must report that an append may have been applied.
    pub(crate) outcome_unknown: bool,
    act: Act,
}

fn http(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}

fn rows(first: &str, step: &str, count: &str) -> Vec<u8> {
    let rows = format!(r#"[{{"first":{first},"step":{step},"count":{count}}}]"#);
    http(
        "200 OK",
        "",
        &format!(r#"{{"format":"snowflake","count":100,"rows":{rows}}}"#),
    )
}

/// Returns a correct response. Its ids occur in no other response.
fn good(count: u64, request: u64) -> Vec<u8> {
    let first = format!("\"{}\"", (request + 1) * 1_000_000);
    rows(&first, "\"1\"", &count.to_string())
}

/// The cases of [`Act::Reset`]. Together, their clients send more requests than a response has
/// bytes.
const RESETS: [&str; 24] = [
    "reset_a", "reset_b", "reset_c", "reset_d", "reset_e", "reset_f", "reset_g", "reset_h",
    "reset_i", "reset_j", "reset_k", "reset_l", "reset_m", "reset_n", "reset_o", "reset_p",
    "reset_q", "reset_r", "reset_s", "reset_t", "reset_u", "reset_v", "reset_w", "reset_x",
];

const TRICKLE: Duration = Duration::from_millis(100);

/// Returns all cases. A case without its own reaction sends a single response.
pub(crate) fn cases(token: &str) -> Vec<Case> {
    use Expected::{BadResponse, Broken, Ids, Refused, Unavailable};
    let mut cases = Vec::new();
    let mut add = |name, expected, outcome_unknown, act| {
        cases.push(Case {
            name,
            expected,
            outcome_unknown,
            act,
        });
    };

    // Responses with a status of success and a wrong body.
    for (name, body) in [
        ("no_rows", r#"{"format":"snowflake","count":0,"rows":[]}"#),
        ("null", "null"),
        ("other", r#"{"status":"ok"}"#),
        ("array", "[]"),
        ("text", r#""ok""#),
        ("number", "1e999"),
        ("no_body", ""),
        ("html", "<html>login</html>"),
        (
            "rows_null",
            r#"{"format":"snowflake","count":0,"rows":null}"#,
        ),
        ("rows_object", r#"{"format":"f","count":0,"rows":{"a":1}}"#),
        ("row_null", r#"{"format":"f","count":100,"rows":[null]}"#),
        ("row_array", r#"{"format":"f","count":100,"rows":[[]]}"#),
        ("ids_null", r#"{"format":"f","count":1,"ids":[null]}"#),
        ("ids_empty", r#"{"format":"f","count":1,"ids":[""]}"#),
        (
            "ids_number",
            r#"{"format":"f","count":1,"ids":[9007199254740993]}"#,
        ),
        ("ids_many", r#"{"format":"f","count":2,"ids":["1","2"]}"#),
        ("half", r#"{"format":"snowflake","count":100,"rows":[{"#),
    ] {
        add(name, BadResponse, true, Act::Send(http("200 OK", "", body)));
    }
    let quoted = format!("\"{token}\"");
    let spelled = quoted.replace('S', r"\u0053");
    for (name, body) in [
        ("token", token.to_owned()),
        ("token_as_text", quoted.clone()),
        (
            "token_as_rows",
            format!(r#"{{"rows":{quoted},"ids":{quoted}}}"#),
        ),
        (
            "token_as_row",
            format!(r#"{{"rows":[{spelled}],"ids":[{token}]}}"#),
        ),
        (
            "token_as_count",
            format!(r#"{{"rows":[{{"first":"7","step":"1","count":{spelled}}}]}}"#),
        ),
        (
            "token_as_first",
            format!(r#"{{"rows":[{{"first":{spelled},"step":"1","count":100}}]}}"#),
        ),
    ] {
        add(
            name,
            BadResponse,
            true,
            Act::Send(http("200 OK", "", &body)),
        );
    }
    for (name, first, step, count) in [
        ("count_zero", r#""7""#, r#""1""#, "0"),
        ("count_negative", r#""7""#, r#""1""#, "-100"),
        ("count_fraction", r#""7""#, r#""1""#, "99.5"),
        ("count_text", r#""7""#, r#""1""#, r#""100""#),
        ("count_infinite", r#""7""#, r#""1""#, "1e999"),
        ("count_large", r#""7""#, r#""1""#, "1000000000000000000"),
        ("count_one_more", r#""7""#, r#""1""#, "101"),
        ("count_one_less", r#""7""#, r#""1""#, "99"),
        ("step_zero", r#""7""#, r#""0""#, "100"),
        ("step_negative", r#""700""#, r#""-1""#, "100"),
        (
            "first_beyond",
            r#""9999999999999999999999999999999999999999""#,
            r#""1""#,
            "100",
        ),
        ("first_signed", r#""+7""#, r#""1""#, "100"),
        ("first_empty", r#""""#, r#""1""#, "100"),
        ("first_number", "7", r#""1""#, "100"),
        ("first_arabic", r#""٧""#, r#""1""#, "100"),
    ] {
        add(name, BadResponse, true, Act::Send(rows(first, step, count)));
    }
    let deep = format!(r#"{{"rows":{}"#, "[".repeat(200_000));
    add(
        "deep",
        BadResponse,
        true,
        Act::Send(http("200 OK", "", &deep)),
    );
    let mut not_utf8 = http("200 OK", "", &format!(r#"{{"rows":{quoted},"x":"????"}}"#));
    let end = not_utf8.len() - 6;
    not_utf8[end] = 0xff;
    add("not_utf8", BadResponse, true, Act::Send(not_utf8));
    add(
        "no_content",
        BadResponse,
        true,
        Act::Send(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()),
    );

    // Redirects to a trap, which counts the requests that follow the redirect.
    for (name, status) in [
        ("moved", "301 Moved Permanently"),
        ("found", "302 Found"),
        ("see_other", "303 See Other"),
        ("temporary", "307 Temporary Redirect"),
        ("permanent", "308 Permanent Redirect"),
    ] {
        add(
            name,
            Refused,
            false,
            Act::Send(http(status, "location: /trap\r\n", "{}")),
        );
    }

    // Responses with other statuses.
    for (name, expected, outcome_unknown, status) in [
        ("bad_request", Refused, false, "400 Bad Request"),
        ("unauthorized", Refused, false, "401 Unauthorized"),
        ("forbidden", Refused, false, "403 Forbidden"),
        ("not_found", Refused, false, "404 Not Found"),
        ("teapot", Refused, false, "418 I'm a teapot"),
        ("too_many", Unavailable, false, "429 Too Many Requests"),
        ("internal", Refused, true, "500 Internal Server Error"),
        ("bad_gateway", Unavailable, true, "502 Bad Gateway"),
        ("busy", Unavailable, false, "503 Service Unavailable"),
        ("gateway_timeout", Unavailable, true, "504 Gateway Timeout"),
    ] {
        add(
            name,
            expected,
            outcome_unknown,
            Act::Send(http(status, "", "no JSON")),
        );
    }
    let closed = ["[".repeat(100_000), "]".repeat(100_000)].concat();
    let deep_members = format!(r#"{{"detail":{closed},"example":{closed},"limit":{closed}}}"#);
    for (name, headers, body) in [
        ("retry_after_years", "retry-after: 99999999\r\n", "{}"),
        (
            "retry_after_u64",
            "retry-after: 18446744073709551615\r\n",
            "{}",
        ),
        ("retry_after_negative", "retry-after: -5\r\n", "{}"),
        (
            "retry_after_date",
            "retry-after: Wed, 21 Oct 2099 07:28:00 GMT\r\n",
            "{}",
        ),
        (
            "retry_ms_years",
            "",
            r#"{"retry_after_ms":18446744073709551615}"#,
        ),
        ("retry_ms_infinite", "", r#"{"retry_after_ms":1e308}"#),
        ("retry_ms_negative", "", r#"{"retry_after_ms":-1e308}"#),
        ("retry_ms_text", "", r#"{"retry_after_ms":"soon"}"#),
        ("retry_ms_object", "", r#"{"retry_after_ms":{"a":[]}}"#),
        (
            "problem_of_objects",
            "",
            r#"{"type":{},"detail":{"toString":1,"valueOf":1},"reason":{},"example":{"toString":1,"valueOf":1},"limit":{}}"#,
        ),
        ("problem_of_deep_members", "", &deep_members),
        ("problem_null", "", "null"),
        ("problem_array", "", "[[]]"),
        (
            "problem_of_numbers",
            "",
            r#"{"type":1,"detail":2,"reason":3,"example":4,"limit":5}"#,
        ),
    ] {
        add(
            name,
            Unavailable,
            false,
            Act::Send(http("503 Service Unavailable", headers, body)),
        );
    }
    add(
        "problem_deep",
        Unavailable,
        false,
        Act::Send(http("503 Service Unavailable", "", &deep)),
    );
    let echo = format!(r#"{{"type":"/problems/{token}","detail":"{token}","example":"{token}"}}"#);
    let location = format!("location: /trap?{token}\r\n");
    add(
        "token_in_problem",
        Refused,
        false,
        Act::Send(http("403 Forbidden", "", &echo)),
    );
    let spelled_out = echo
        .replace('S', r"\u0053")
        .replace('}', &format!(",{spelled}:[{spelled}]}}"));
    add(
        "token_in_escapes",
        Unavailable,
        false,
        Act::Send(http("503 Service Unavailable", "", &spelled_out)),
    );
    add(
        "token_in_location",
        Refused,
        false,
        Act::Send(http("307 Temporary Redirect", &location, &echo)),
    );
    add(
        "less_each_time",
        Refused,
        false,
        Act::Answer(|count, _| {
            let limit = count.saturating_sub(1);
            let body = format!(
                r#"{{"type":"/problems/invalid-request","reason":"count","limit":"{limit}"}}"#
            );
            http("422 Unprocessable Content", "", &body)
        }),
    );

    // Responses that are slow or never end.
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n".to_vec();
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let status = b"HTTP/1.1 200 OK\r\n".to_vec();
    let repeated: [(_, Vec<u8>, &[u8], _); 12] = [
        ("silent", Vec::new(), b"", TRICKLE),
        ("trickled_status", b"H".to_vec(), b"T", TRICKLE),
        ("trickled_head", status.clone(), b"x: y\r\n", TRICKLE),
        ("trickled_body", head, b" ", TRICKLE),
        ("trickled_chunks", chunked.clone(), b"1\r\n \r\n", TRICKLE),
        (
            "continues",
            Vec::new(),
            b"HTTP/1.1 100 Continue\r\n\r\n",
            TRICKLE,
        ),
        (
            "early_hints",
            Vec::new(),
            b"HTTP/1.1 103 Early Hints\r\n\r\n",
            TRICKLE,
        ),
        (
            "processing",
            Vec::new(),
            b"HTTP/1.1 102 Processing\r\n\r\n",
            Duration::from_millis(1),
        ),
        (
            "endless_head",
            status.clone(),
            &[b'x'; 4096],
            Duration::from_millis(1),
        ),
        (
            "endless_headers",
            status,
            b"x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n",
            Duration::from_millis(1),
        ),
        (
            "endless_body",
            b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n".to_vec(),
            &[b' '; 4096],
            Duration::from_millis(1),
        ),
        (
            "endless_trailer",
            [chunked.as_slice(), b"0\r\n"].concat(),
            b"x: y\r\n",
            Duration::from_millis(1),
        ),
    ];
    for (name, first, then, pause) in repeated {
        add(name, Broken, true, Act::Repeat(first, then.to_vec(), pause));
    }

    // Responses that are not HTTP.
    for (name, bytes) in [
        ("ssh", &b"SSH-2.0-OpenSSH_9.2\r\n"[..]),
        ("tls_alert", b"\x15\x03\x01\x00\x02\x02\x28"),
        ("zeros", &[0; 1000]),
        ("status_of_letters", b"HTTP/1.1 abc OK\r\ncontent-length: 2\r\n\r\n{}"),
        ("status_too_long", b"HTTP/1.1 2000 OK\r\ncontent-length: 2\r\n\r\n{}"),
        ("version_9", b"HTTP/9.9 200 OK\r\ncontent-length: 2\r\n\r\n{}"),
        ("header_without_colon", b"HTTP/1.1 200 OK\r\nnonsense\r\ncontent-length: 2\r\n\r\n{}"),
        ("length_negative", b"HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\n{}"),
        ("length_of_letters", b"HTTP/1.1 200 OK\r\ncontent-length: two\r\n\r\n{}"),
        ("two_lengths", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 1\r\n\r\n{}"),
        ("length_too_long", b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{}"),
        ("no_length", b"HTTP/1.1 200 OK\r\n\r\n{}"),
        ("chunk_of_letters", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}"),
        ("chunk_too_large", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n{}"),
        ("no_last_chunk", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n"),
        ("gzip", b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}"),
        ("switching", b"HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n"),
        ("two_responses", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"),
    ] {
        add(name, Broken, true, Act::Close(bytes.to_vec()));
    }

    // Invalid HTTP that contains the token. Libraries quote such bytes in their errors.
    for (name, response) in [
        ("token_as_version", "TOKEN 200 OK\r\n\r\n"),
        ("token_as_status", "HTTP/1.1 TOKEN OK\r\n\r\n"),
        (
            "token_as_reason",
            "HTTP/1.1 999 TOKEN\r\ncontent-length: two\r\n\r\n",
        ),
        ("token_as_header", "HTTP/1.1 200 OK\r\nTOKEN\r\n\r\n"),
        (
            "token_as_name",
            "HTTP/1.1 200 OK\r\n TOKEN : TOKEN\r\ncontent-length: 2\r\n\r\n{}",
        ),
        (
            "token_as_length",
            "HTTP/1.1 200 OK\r\ncontent-length: TOKEN\r\n\r\n{}",
        ),
        (
            "token_as_encoding",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: TOKEN\r\n\r\n{}",
        ),
        (
            "token_as_chunk",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nTOKEN\r\n",
        ),
        (
            "token_as_trailer",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nTOKEN\r\n\r\n",
        ),
        (
            "token_as_coding",
            "HTTP/1.1 200 OK\r\ncontent-encoding: TOKEN\r\ncontent-length: 2\r\n\r\n{}",
        ),
        (
            "token_after_all",
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}TOKEN\r\n\r\n",
        ),
    ] {
        let bytes = response.replace("TOKEN", token).into_bytes();
        add(name, Broken, true, Act::Close(bytes));
    }

    // A good response that ends after some of its bytes.
    let whole = good(100, 0);
    let names = [
        "cut_0", "cut_1", "cut_9", "cut_12", "cut_16", "cut_17", "cut_25", "cut_50", "cut_73",
        "cut_74", "cut_75", "cut_90", "cut_100", "cut_120",
    ];
    for name in names {
        let kept: usize = name[4..].parse().expect("a length");
        assert!(kept < whole.len(), "{name} cuts something");
        add(name, Broken, true, Act::Close(whole[..kept].to_vec()));
    }

    for name in RESETS {
        add(name, Broken, true, Act::Reset);
    }

    // Some requests get a good response.
    add(
        "bulk",
        Ids,
        false,
        Act::Answer(|count, request| match count {
            1025.. => http(
                "503 Service Unavailable",
                "",
                r#"{"type":"/problems/overloaded","retry_after_ms":20}"#,
            ),
            _ => good(count, request),
        }),
    );
    add(
        "every_other",
        Ids,
        true,
        Act::Answer(|count, request| match request % 2 {
            0 => http("200 OK", "", "{}"),
            _ => good(count, request),
        }),
    );
    cases
}

/// The running server. The path of each request begins with the name of its case.
pub(crate) struct Hostile {
    /// The URL for each case. Each case has its own address, because Node.js shares connections to
    /// the same origin.
    pub(crate) urls: HashMap<&'static str, String>,
    /// The number of requests for ids in each case. The requests of the case `trap` have followed a
    /// redirect.
    pub(crate) asked: Arc<Mutex<HashMap<String, u64>>>,
    /// The number of connections that were reset.
    pub(crate) resets: Arc<AtomicUsize>,
}

impl Hostile {
    pub(crate) fn start(cases: &[Case]) -> Hostile {
        let acts: HashMap<String, Act> = cases
            .iter()
            .map(|case| (case.name.to_owned(), case.act.clone()))
            .collect();
        let (acts, asked) = (Arc::new(acts), Arc::<Mutex<HashMap<_, _>>>::default());
        let resets = Arc::<AtomicUsize>::default();
        let listen = |case: &Case| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}/{}", listener.local_addr().unwrap(), case.name);
            let (acts, asked) = (Arc::clone(&acts), Arc::clone(&asked));
            let (resets, is_reset) = (Arc::clone(&resets), matches!(case.act, Act::Reset));
            thread::spawn(move || {
                for stream in listener.incoming() {
                    if is_reset {
                        reset(&stream.unwrap(), resets.fetch_add(1, Ordering::Relaxed));
                        continue;
                    }
                    let (stream, acts, asked) =
                        (stream.unwrap(), Arc::clone(&acts), Arc::clone(&asked));
                    // Ignore an error, because a client that gives up resets the connection.
                    thread::spawn(move || serve(&stream, &acts, &asked).is_ok());
                }
            });
            (case.name, url)
        };
        let urls = cases.iter().map(listen).collect();
        Hostile {
            urls,
            asked,
            resets,
        }
    }
}

/// Sends the first bytes of a response. The request is not read, so closing resets the connection.
fn reset(mut stream: &TcpStream, number: usize) {
    let whole = good(100, 0);
    // Ignore an error, because a client that gives up resets the connection.
    let _ = stream.peek(&mut [0]);
    // The step of 89 bytes spreads a few resets over the whole response. Many resets together reach
    // every length.
    let _ = stream.write_all(&whole[..number * 89 % whole.len()]);
}

fn serve(
    mut stream: &TcpStream,
    acts: &HashMap<String, Act>,
    asked: &Mutex<HashMap<String, u64>>,
) -> io::Result<()> {
    let mut input = BufReader::new(stream);
    while let Some(request) = read_request(&mut input) {
        let request = String::from_utf8_lossy(&request).into_owned();
        let target = request.split(' ').nth(1).unwrap_or_default();
        let (case, rest) = target[1..].split_once('/').unwrap_or((&target[1..], ""));
        if rest.starts_with("formats/") {
            stream.write_all(&http("200 OK", "", FORMAT))?;
            continue;
        }
        let number = {
            let mut asked = asked.lock().unwrap();
            let key = match acts.contains_key(case) {
                // A client of another test may send requests to a port that its service used
                // before.
                false => case.split('?').next().unwrap_or_default().to_owned(),
                true if rest.starts_with("ids/") => case.to_owned(),
                true => format!("{case} append"),
            };
            let number = asked.entry(key).or_default();
            *number += 1;
            *number - 1
        };
        let count = target.split_once("count=").map_or("1", |(_, count)| count);
        let count = count.split('&').next().and_then(|count| count.parse().ok());
        match acts.get(case) {
            None => stream.write_all(&good(1, number))?,
            Some(Act::Reset) => unreachable!("its connections are not served"),
            Some(Act::Send(bytes)) => stream.write_all(bytes)?,
            Some(Act::Answer(answer)) => {
                stream.write_all(&answer(count.unwrap_or(1), number))?;
            }
            Some(Act::Close(bytes)) => {
                stream.write_all(bytes)?;
                return stream.shutdown(Shutdown::Both);
            }
            Some(Act::Repeat(first, then, pause)) => {
                stream.write_all(first)?;
                loop {
                    thread::sleep(*pause);
                    stream.write_all(then)?;
                }
            }
        }
    }
    Ok(())
}
