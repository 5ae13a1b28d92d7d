//! Checks that every invalid setting prevents the start. The error must name the setting, its value
//! and the bound.

use std::sync::Arc;

use idmint::server::{RunOptions, open};
use idmint_core::time::ManualClock;
use idmint_storage::FailureKind;

use crate::service::{NEW_YEAR, Service, config};

/// Starts a service with these invalid settings, and returns the error.
async fn refusal(settings: &str) -> String {
    let config = match config(settings) {
        Ok(config) => config,
        Err(error) => return error.to_string(),
    };
    match open(
        &config,
        RunOptions::default(),
        None,
        Arc::new(ManualClock::at(NEW_YEAR).clock()),
    )
    .await
    {
        Ok(_) => panic!("it starts with {settings}"),
        Err(error) => error.to_string(),
    }
}

/// Starts a service that other machines can reach, and sets the flag that allows this. The start
/// must still fail until the operator confirms that no other node uses the slot.
#[tokio::test]
async fn a_second_node_could_have_the_slot_of_a_public_one_unless_the_operator_vouches_for_it() {
    let start = async |settings: &str| {
        let options = RunOptions {
            insecure_public: true,
            ..RunOptions::default()
        };
        let config = config(settings).unwrap();
        open(
            &config,
            options,
            None,
            Arc::new(ManualClock::at(NEW_YEAR).clock()),
        )
        .await
        .map(drop)
    };
    let error = start("http.listen = '0.0.0.0:0'")
        .await
        .expect_err("two such nodes would mint the same ids");
    assert_eq!(error.failure_kind(), FailureKind::Disagrees);
    for way_out in [
        "worker.exclusive = true",
        "worker.slot",
        "etcd",
        "127.0.0.1",
    ] {
        assert!(error.to_string().contains(way_out), "{error}");
    }
    start("http.listen = '0.0.0.0:0'\nworker.exclusive = true")
        .await
        .expect("the operator's word");
    start("http.listen = '127.0.0.1:0'")
        .await
        .expect("only this machine");
}

#[tokio::test]
async fn a_tick_or_a_window_that_would_hold_back_every_format_after_a_kill_is_refused() {
    let ticks = |tick: &str, more: &str| {
        format!(
            "{more}\n[formats.mine]\nlike = 'payment'\ntick = '{tick}'\nepoch = '2024-01-01T00:00:00Z'"
        )
    };
    assert_refusals(&[
        (
            ticks("6s", ""),
            &[
                "`mine`",
                "tick = 6s",
                "clock.max_ahead = 5s",
                "clock.max_ahead to at least \"6s\"",
            ] as &[_],
        ),
        (
            "storage.window = '6s'".to_owned(),
            &["storage.window = 6s", "clock.max_ahead = 5s"],
        ),
    ])
    .await;
    for sound in [
        ticks("5s", ""),
        ticks("3600s", "clock.max_ahead = '1h'"),
        "storage.window = '5s'".to_owned(),
    ] {
        Service::start_on(ManualClock::at(NEW_YEAR), &sound).await;
    }
}

async fn assert_refusals(cases: &[(String, &[&str])]) {
    for (settings, named) in cases {
        let refusal = refusal(settings).await;
        for named in *named {
            assert!(
                refusal.contains(named),
                "{settings}\n{named:?} is not in: {refusal}"
            );
        }
    }
}

#[tokio::test]
async fn a_start_with_numbers_that_do_not_fit_is_refused() {
    let case = |settings: &str, named| (settings.to_owned(), named);
    assert_refusals(&[
        case(
            "worker = { slot = 32, slots = 33, exclusive = true }",
            &["snowflake", "worker 32", "last is 31", "worker.slots"] as &[_],
        ),
        case("worker.lanes = 37", &["payment", "worker 36", "last is 35"]),
        case("worker.shard = 32", &["snowflake", "worker.shard = 32", "exceeds 31", "`shard`"]),
        case("[formats.payment]\nfirst_worker = 36", &["payment", "worker 36", "last is 35"]),
        case("[formats.payment]\nlanes = 37", &["payment", "lane 36", "last is 35"]),
        case("[formats.payment]\nworker_range = [10, 12]\nlanes = 4", &["payment", "worker 13", "last is 12"]),
        case("worker.slots = 2\n[formats.mine]\nlike = 'snowflake'\nfields = [{ name = 't', kind = 'time', bits = 40 }, { name = 's', kind = 'sequence', bits = 8 }]", &["mine", "worker.slots is 2"]),
        case("worker.slot = 1", &["worker.slot", "worker.exclusive = true"]),
        case("mint.batch_max = 0", &["mint.batch_max", "0", "10000000"]),
        case("mint.wait_max = '61s'", &["mint.wait_max", "61s"]),
        case("siq.type = 'nope'", &["siq.type = `nope`", "user, application", "content"]),
        case("siq.domains = ['Example.com']", &["siq.domains", "Example.com", "lower-case"]),
        case("siq.local_id = 257", &["siq.local_id", "257", "256"]),
        case("http.listen = '0.0.0.0:0'", &["http.listen = 0.0.0.0:0", "--insecure-public"]),
        case("formats.enabled = ['snowfluke']", &["formats.enabled", "snowfluke", "snowflake"]),
        case("decode.order = ['payment-wide']", &["decode.order", "payment-wide"]),
        case("nonesuch = 1", &["nonesuch"]),
    ])
    .await;
}

/// Returns the definition of a format with these fields, encodings and other keys. All other keys
/// are valid.
fn custom(fields: &str, encodings: &str, more: &str) -> String {
    format!(
        "[formats.mine]\nsummary = ''\nrule = 'sequenced'\ntick = '1ms'\nepoch = '2020-01-01T00:00:00Z'\nfields = [{fields}]\nencodings = [{encodings}]\n{more}"
    )
}

const SOUND: &str = "{ name = 'time', kind = 'time', bits = 41 }, { name = 'worker', kind = 'worker', bits = 10 }, { name = 'sequence', kind = 'sequence', bits = 12 }";

#[tokio::test]
async fn a_sound_format_starts() {
    let service = Service::start(&custom(SOUND, "'decimal'", "")).await;
    assert_eq!(service.mint("/ids/mine").await.len(), 1);
}

#[tokio::test]
async fn a_format_whose_fields_make_no_layout_is_refused() {
    let fields = |fields: &str| custom(fields, "'decimal'", "");
    let with = |field: &str| custom(&format!("{SOUND}, {field}"), "'decimal'", "");
    assert_refusals(&[
        (fields(""), &["mine", "1 to 16 fields", "got 0"] as &[_]),
        (with("{ name = 'more', kind = 'object', bits = 66 }"), &["mine", "`time`", "128 bits"]),
        (with("{ name = 'more', kind = 'object', bits = 128 }"), &["`more`", "128 bits", "127 bits"]),
        (with("{ name = 'more', kind = 'object', bits = 0 }"), &["`more`", "0 bits"]),
        (with("{ name = 'more', kind = 'object', digits = 3, radix = 65 }"), &["`more`", "base 65"]),
        (with("{ name = 'more', kind = 'object', cardinality = 0 }"), &["`more`", "0 values"]),
        (with("{ name = 'more', kind = 'object', cardinality = -1 }"), &["cardinality", "-1"]),
        (with("{ name = 'more', kind = 'object', bits = 8, cardinality = 2 }"), &["`more`", "`bits`", "`cardinality`"]),
        (with("{ name = 'more', kind = 'object' }"), &["`more`", "`bits`"]),
        (with("{ name = 'more', kind = 'object', bits = 4 }"), &["`more`", "32 bits"]),
        (with("{ name = 'more', kind = 'constant', bits = 2, value = 4 }"), &["`more`", "at most 3"]),
        (with("{ name = 'more', kind = 'constant', bits = 2 }"), &["`more`", "`value`"]),
        (with("{ name = 'time', kind = 'constant', bits = 2, value = 1 }"), &["two fields", "`time`"]),
        (with("{ name = 'more', kind = 'time', bits = 2 }"), &["sequenced", "at most one", "time"]),
        (with("{ name = 'more', kind = 'random', bits = 2 }"), &["sequenced", "random"]),
        (with("{ name = 'more', kind = 'nonsense', bits = 2 }"), &["nonsense", "time"]),
        (with("{ name = 'more', kind = 'object', bits = 32, bitz = 2 }"), &["bitz", "bits"]),
        (with("{ name = 'more', kind = 'object', bits = 32, codes = [] }"), &["`more`", "qualifier"]),
        (fields("{ name = 't', kind = 'time', bits = 41 }"), &["sequenced", "kind sequence"]),
        (
            fields("{ name = 't', kind = 'time', bits = 65 }, { name = 's', kind = 'sequence', bits = 12 }"),
            &["time field", "64 bits"],
        ),
        (
            fields("{ name = 't', kind = 'time', bits = 41 }, { name = 's', kind = 'sequence', bits = 33 }"),
            &["`s`", "2^32"],
        ),
        (
            fields(
                "{ name = 't', kind = 'time', bits = 41, stride = 4095 }, { name = 's', kind = 'sequence', bits = 12 }",
            ),
            &["`t`", "stride 4095", "4095"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_format_with_a_wrong_key_or_encoding_is_refused() {
    let encodings = |encodings: &str| custom(SOUND, encodings, "");
    let more = |more: &str| custom(SOUND, "'decimal'", more);
    let like = |more: &str| format!("[formats.mine]\nlike = 'snowflake'\n{more}");
    let fields_of_type = |codes: &str| {
        let field = format!(
            "{{ name = 'q', kind = 'qualifier', bits = 12, sequence = 'n', codes = [{codes}] }}"
        );
        custom(
            &format!("{{ name = 'time', kind = 'time', bits = 41 }}, {field}"),
            "'decimal'",
            "",
        )
    };
    assert_refusals(&[
        (encodings(""), &["mine", "at least one encoding"] as &[_]),
        (encodings("'base99'"), &["base99", "base36"]),
        (
            encodings("'decimal', 'decimal'"),
            &["two encodings", "`decimal`"],
        ),
        (
            encodings("{ kind = 'base36', length = 5 }"),
            &["base36", "length is 5", "13 to 255"],
        ),
        (
            encodings("{ kind = 'decimal', salt = 'x' }"),
            &["decimal", "salt"],
        ),
        (
            encodings("{ kind = 'hashids', sallt = 'x' }"),
            &["sallt", "salt"],
        ),
        (
            encodings("{ kind = 'hashids', alphabet = 'abc' }"),
            &["hashids", "alphabet"],
        ),
        (
            encodings("{ kind = 'base64', bytes = 7 }"),
            &["base64", "bytes is 7", "8 to 64"],
        ),
        (more("epok = 1"), &["epok", "epoch"]),
        (more("mint_below = -1"), &["mint_below", "-1"]),
        (more("worker_range = [3, 2]"), &["worker_range"]),
        (
            more("plausible_ahead = 'soon'"),
            &["plausible_ahead", "soon"],
        ),
        (
            more("plausible_ahead = 'PT24H'"),
            &["plausible_ahead", "PT24H"],
        ),
        (more("labels = { one = 'x' }"), &["labels", "one"]),
        (
            fields_of_type(
                "{ suffix = '0', name = 'a' }, { suffix = '1', name = 'b', aliases = ['a'] }",
            ),
            &["mine", "two types", "`a`"],
        ),
        (
            fields_of_type("{ suffix = '0', name = 'a' }, { suffix = '1', aliases = ['b'] }"),
            &["mine", "suffix `1`"],
        ),
        (
            more("start_after = 'never'"),
            &["mine", "start_after = `never`", "not an id of this format"],
        ),
        (
            "[formats.ulid]\nstart_after = '0'".to_owned(),
            &["ulid", "start_after", "sequenced"],
        ),
        (
            "[formats.ulid]\nexclude = 'issued'".to_owned(),
            &["ulid", "exclude", "sequenced"],
        ),
        (like("tick = '2h'"), &["mine", "2h", "3600s"]),
        (like("tick = '1ms/0'"), &["1ms/0"]),
        (like("epoch = '2020-01-01'"), &["epoch", "2020-01-01"]),
        (
            like("epoch = '2020-01-01T00:00:00+24:00'"),
            &["epoch", "+24:00"],
        ),
        (like("rule = 'sequential'"), &["sequential", "sequenced"]),
        (like("rule = 'random'"), &["random"]),
        (
            "[formats.mine]\nlike = 'yours'".to_owned(),
            &["mine", "like = `yours`", "snowflake"],
        ),
        (
            "[formats.mine]\nlike = 'mine'".to_owned(),
            &["mine", "refers back"],
        ),
        (
            "[formats.Mine]\nlike = 'snowflake'".to_owned(),
            &["Mine", "a-z"],
        ),
        (
            "[formats.mine]\nrule = 'sequenced'".to_owned(),
            &["mine", "summary: this key is missing"],
        ),
        (
            "[formats.siq]\nlike = 'siq'\nepoch = '1960-01-01T00:00:00Z'".to_owned(),
            &["siq", "refers back"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_grouped_format_of_ticks_above_a_second_is_refused_where_conjunctions_are_stored() {
    let of_tick = |tick: &str| format!("[formats.coarse]\nlike = 'conjunction'\ntick = '{tick}'\n");
    assert_refusals(&[
        (
            of_tick("2s"),
            &["`coarse`", "2s", "at most 1s", "conjunction.mode"] as &[_],
        ),
        (of_tick("1001ms"), &["`coarse`", "1001ms", "at most 1s"]),
    ])
    .await;
    Service::start(&of_tick("1s")).await;
    Service::start(&format!("conjunction.mode = 'pure'\n{}", of_tick("2s"))).await;
}

#[tokio::test]
async fn slots_of_which_the_last_has_no_worker_number_are_refused_before_anything_was_minted() {
    let few = |slots: u32, more: &str| {
        format!("worker = {{ slot = 5, slots = {slots}, exclusive = true }}\n{more}")
    };
    assert_refusals(&[
        (
            few(36, ""),
            &[
                "worker.slots = 36",
                "slot 35",
                "snowflake (room for 32)",
                "formats.enabled",
            ] as &[_],
        ),
        (
            few(37, "formats.enabled = ['payment', 'twitter']"),
            &["slot 36", "payment (room for 36)"],
        ),
        (
            few(1024, "formats.enabled = ['conjunction-v1', 'twitter']"),
            &["slot 1023", "conjunction-v1 (room for 1023)"],
        ),
    ])
    .await;
    for sound in [
        few(32, ""),
        few(36, "formats.enabled = ['payment', 'twitter']"),
        few(1023, "formats.enabled = ['conjunction-v1']"),
    ] {
        Service::start_on(ManualClock::at(NEW_YEAR), &sound).await;
    }
}
