//! The subjects whose instructions are counted. They mint and decode through the library, with a
//! clock that stands still and the same random bits in every run.
//!
//! Each subject runs once before it is counted, so that one-time work is not counted.

use std::convert::Infallible;
use std::hint::{black_box, spin_loop};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, header};
use http_body_util::BodyExt;
use idmint_core::id::{DecodeFilter, Format, PRESETS};
use idmint_core::minting::{
    Batch, BatchRequest, Durable, LaneCount, Mint, MintSettings, Minter, SessionStart, SlotLanes,
};
use idmint_core::time::UnixTime;
use idmint_http::{Api, HostPolicy, HttpMetrics};
use idmint_service::Service;
use prometheus::Registry;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::runtime::Builder;
use tower::ServiceExt;

use crate::harness::service::{YEARS, frozen_service};

/// The number of units of work that each subject does.
const UNITS: u32 = 1_000;

/// The number of ids that are computed together, as in a response.
const ROW: usize = 512;

/// The formats whose ids are decoded as a column of a CSV file.
const COLUMNS: [&str; 4] = ["payment", "snowflake", "ulid", "uuid7"];

/// A text that can be read as an id of many formats. Most of these ids contain a time.
const DECODED: &str = "175928847299117063";

/// The host header of a request.
const HOST: HeaderValue = HeaderValue::from_static("127.0.0.1:8080");

/// The name of the function whose instructions callgrind counts. callgrind finds the function by
/// this part of its name.
pub(crate) const COUNTED: &str = "counted_by_callgrind";

/// The name of the function after which callgrind writes its counts. It must be another function
/// than the counted one.
pub(crate) const WRITTEN: &str = "written_by_callgrind";

// The calls of `spin_loop` prevent tail calls, in which a jump replaces the call. callgrind does
// not see the end of a function that was entered by a jump.
#[inline(never)]
fn written_by_callgrind(work: &mut dyn FnMut()) {
    counted_by_callgrind(work);
    spin_loop();
}

#[inline(never)]
fn counted_by_callgrind(work: &mut dyn FnMut()) {
    work();
    spin_loop();
}

/// Runs every subject. Passes the name of each subject and its number of units of work to `told`.
pub(crate) fn run_all(mut told: impl FnMut(&str, u32)) {
    let mut count = |name: String, work: &mut dyn FnMut()| {
        work();
        written_by_callgrind(work);
        told(&name, UNITS);
    };
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let service = frozen_service(&runtime);
    let decoder = service.decoding().decoder().at(service.clock().now());
    let decoding = service.decoding().at(service.clock().now());
    for preset in PRESETS {
        let served = service
            .formats()
            .named(preset.name)
            .expect("every built-in format is on");
        let format = served.format();
        if let Some(minter) = served.minter() {
            let one = request(minter, 1);
            count(format!("reserve {}", format.name), &mut || {
                for _ in 0..UNITS {
                    let granted = minter.reserve(black_box(&one));
                    assert!(black_box(&granted).is_ok(), "there is room for years");
                }
            });
        }
        let past = past_ids(&service, format);
        let batch = || match served.minter() {
            Some(minter) => {
                minter
                    .reserve(&request(minter, UNITS))
                    .expect("there is room for years")
                    .batch
            }
            None => Batch::of_ids(past.clone()),
        };
        let (mut room, mut spelled) = ([0; ROW], Vec::new());
        count(format!("spell {}", format.name), &mut || {
            spelled.clear();
            let mut ids = black_box(batch());
            while ids.count() > 0 {
                format
                    .canonical()
                    .write_block(ids.next_block(&mut room), *b"\",\"", &mut spelled);
            }
            black_box(&spelled);
        });
        let mut ids = [0; UNITS as usize];
        assert_eq!(batch().fill(&mut ids), ids.len());
        let texts: Vec<_> = ids
            .iter()
            .map(|id| format.canonical().to_text(*id))
            .collect();
        count(format!("decode {}", format.name), &mut || {
            for text in &texts {
                assert!(
                    black_box(decoder.best(black_box(text), DecodeFilter::default())).is_some()
                );
            }
        });
        // Count the cost of one line of `idmint decode --csv`, without reading and writing the CSV.
        if COLUMNS.contains(&preset.name) {
            count(format!("columns {}", format.name), &mut || {
                for text in &texts {
                    let reading = decoding.best(black_box(text), DecodeFilter::default());
                    let own = reading.own().expect("the text is an id");
                    assert!(black_box(own.time()).is_some());
                }
            });
        }
    }
    let leased = leased_minter(&service);
    let one = request(&leased, 1);
    count("reserve snowflake (leased)".to_owned(), &mut || {
        for _ in 0..UNITS {
            let granted = leased.reserve(black_box(&one));
            assert!(black_box(&granted).is_ok(), "there is room for years");
        }
    });
    let metrics =
        HttpMetrics::register(&Registry::new(), &idmint_http::paths()).expect("an empty registry");
    let api = Api::new(
        Arc::clone(&service),
        Arc::new(metrics),
        HostPolicy::default(),
    );
    for path in ["/ids/snowflake", "/ids/snowflake?count=1000"] {
        count(format!("POST {path}"), &mut || {
            runtime.block_on(exchange(&api, Method::POST, path))
        });
    }
    let path = format!("/decode/{DECODED}");
    count(format!("GET {path}"), &mut || {
        runtime.block_on(exchange(&api, Method::GET, &path))
    });
}

/// Returns a minter of `snowflake` ids whose worker numbers are leased, as on a node of a fleet.
/// The minter uses the clock of `service`.
fn leased_minter(service: &Service) -> Arc<Minter> {
    let clock = Arc::clone(service.clock());
    let settings = MintSettings {
        wait_max: YEARS,
        lead_max: YEARS,
        window: Duration::from_secs(60),
        shard: 0,
    };
    let format = Arc::new(Format::built_in("snowflake").expect("a built-in format"));
    let slots = NonZeroU32::new(4).expect("not zero");
    let lanes = SlotLanes::of(&format, slots, LaneCount::UpTo(8), 0).expect("four slots fit");
    let mut mint = Mint::new(Arc::clone(&clock), settings);
    let minter = mint.add_leased(format, lanes);
    let session = mint.prepare_in_slot(SessionStart::at(clock.now()), 1);
    let plan = session.plan_extension(clock.now(), clock.now().after(2 * YEARS));
    let durable = Durable::write(plan, |_plan| Ok::<(), Infallible>(()))
        .unwrap_or_else(|never| match never {});
    session.raise(&durable, clock.now());
    mint.begin(session);
    minter
}

fn request(minter: &Minter, count: u32) -> BatchRequest {
    let of_type = minter.counted().format.has_types().then_some("message");
    minter
        .request(NonZeroU32::new(count).expect("at least one id"), of_type)
        .expect("a sound request")
}

/// Returns [`UNITS`] random ids with times in the past. Used for formats that a mint request with a
/// count cannot mint.
fn past_ids(service: &Service, format: &Format) -> Vec<u128> {
    let mut random = StdRng::seed_from_u64(1);
    let now = UnixTime::from(service.clock().now());
    let layout = &format.variants[0].layout;
    let any_id = || {
        let values = layout.fields().iter().map(|field| {
            field
                .constant
                .unwrap_or_else(|| random.random_range(0..=field.max))
        });
        layout
            .pack(&values.collect::<Vec<_>>())
            .expect("no value is above its field's greatest")
    };
    let is_past = |id: &u128| {
        format
            .split(*id)
            .is_ok_and(|parts| parts.time.is_none_or(|time| time <= now))
    };
    std::iter::repeat_with(any_id)
        .filter(is_past)
        .take(UNITS as usize)
        .collect()
}

/// Sends [`UNITS`] requests, and reads each response as a connection does.
async fn exchange(api: &Api, method: Method, path: &str) {
    for _ in 0..UNITS {
        let request = Request::builder()
            .method(&method)
            .uri(path)
            .header(header::HOST, HOST);
        let request = request.body(Body::empty()).expect("a request");
        let response = api
            .clone()
            .oneshot(request)
            .await
            .expect("the API answers everything");
        assert!(
            response.status().is_success(),
            "{path}: {}",
            response.status()
        );
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            black_box(frame).expect("bodies do not fail");
        }
    }
}
