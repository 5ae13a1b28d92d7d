//! Defines all attacks. Each attack has its traffic, a check that enough traffic was sent, and a
//! check that the service defended itself.

use std::fs::File;
use std::process::Command;

use tokio::task::JoinSet;

use super::aim::{Aim, Deeds, Protocol, Way};
use super::ask::Ask;
use super::door::Door;
use super::metrics::Shed;
use super::outcome::Bounds;
use super::{bodies, floods, greedy, handshakes, listed, logged, malformed, slow, unread, windows};
use crate::on_core_of_servers;
use idmint_testing::service::{Home, Service};

pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) node: Node,
    pub(crate) come: Come,
    /// Returns the request to which the control (the process that is attacked for comparison)
    /// responds, and the length of the response in bytes. `None` if the attackers do not wait for
    /// responses.
    pub(crate) control: Option<fn() -> (Ask, usize)>,
    /// Starts the attackers. The attack lasts until the returned set is dropped.
    pub(crate) begin: fn(&Aim) -> JoinSet<()>,
    /// `true` if the attack consists of HTTP/2 frames, with or without TLS.
    pub(crate) has_frames: bool,
    /// Returns `true` if the attackers sent enough for a valid test.
    pub(crate) is_made: fn(&Deeds) -> bool,
    /// Returns `true` if the counters show that the service detected the attack and limited it.
    pub(crate) is_met: fn(&Deeds, &Shed) -> bool,
    pub(crate) bounds: Bounds,
}

impl Attack {
    /// Returns the lengths in bytes of a request to the control and of its response. The control is
    /// the process that is attacked for comparison.
    pub(crate) fn control_lengths(&self) -> (usize, usize) {
        self.control.map_or((0, 0), |control| {
            let (ask, answer_len) = control();
            (ask.http1().len(), answer_len)
        })
    }

    /// Returns the ways to carry out the attack: each combination of a protocol and a number of
    /// source addresses. An attack that uses a single protocol has only one way.
    pub(crate) fn ways(&self, addresses: &[usize]) -> Vec<Way> {
        /// The number of source addresses of an attack that uses a single protocol.
        const ADDRESSES: usize = 8;
        match self.come {
            Come::By(protocol) => vec![Way {
                protocol,
                addresses: ADDRESSES,
            }],
            Come::ByEach(protocols) => protocols
                .iter()
                .flat_map(|protocol| {
                    addresses.iter().map(|addresses| Way {
                        protocol: *protocol,
                        addresses: *addresses,
                    })
                })
                .collect(),
        }
    }

    /// Returns the ALPN name of the protocol inside TLS: `h2` for attacks that consist of HTTP/2
    /// frames, and `http/1.1` otherwise.
    pub(crate) fn alpn(&self) -> &'static str {
        if self.has_frames { "h2" } else { "http/1.1" }
    }
}

/// The protocols over which an attack is carried out.
#[derive(Clone, Copy)]
pub(crate) enum Come {
    By(Protocol),
    /// Each of these protocols is combined with each number of source addresses.
    ByEach(&'static [Protocol]),
}

const ANY_PROTOCOL: Come = Come::ByEach(&[Protocol::Http1, Protocol::Http2, Protocol::Tls]);
const FRAMES: Come = Come::ByEach(&[Protocol::Http2, Protocol::Tls]);

/// The setup of the service that is attacked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    Default,
    /// A service with so few file descriptors that its callers can use all of them.
    FewDescriptors,
    /// A service with ledgers whose appends have the maximum length.
    LongLedgers,
    /// A service with a ledger that has one page of events.
    Page,
    /// A service that logs at the level `trace` into a pipe that nobody reads.
    UnreadLog,
}

const FEW_DESCRIPTORS: u64 = 256;

const LOG_PIPE: &str = "log.pipe";

impl Node {
    /// Starts the service on the CPU core for servers. With TLS, the service uses the certificate
    /// in the folder `home`.
    pub(crate) fn start(self, home: &Home, protocol: Protocol) -> Service {
        let mut command = on_core_of_servers(&home.serve());
        if protocol == Protocol::Tls {
            let (certificate, key) = handshakes::write_certificate(home);
            command
                .env("IDMINT_HTTP__TLS__CERTIFICATE", certificate)
                .env("IDMINT_HTTP__TLS__KEY", key);
        }
        match self {
            Node::Default | Node::LongLedgers | Node::Page => Service::start(command),
            Node::FewDescriptors => {
                let service = Service::start(command);
                service.limit_open_files(FEW_DESCRIPTORS);
                service
            }
            Node::UnreadLog => {
                command.env("IDMINT_LOG__LEVEL", "trace");
                Service::start_with_log_lost(command, home.path(LOG_PIPE).to_str().unwrap())
            }
        }
    }

    /// Stores the data that the service must have before the attack.
    pub(crate) fn prepare(self, door: &Door) {
        match self {
            Node::LongLedgers => listed::prepare(door),
            Node::Page => greedy::prepare_page(door),
            _ => {}
        }
    }

    /// Creates the pipe for the log of the service, if this setup needs one. The caller must keep
    /// the returned file open, and must never read it.
    pub(crate) fn log_pipe(self, home: &Home) -> Option<File> {
        (self == Node::UnreadLog).then(|| {
            let pipe = home.path(LOG_PIPE);
            assert!(
                Command::new("mkfifo")
                    .arg(&pipe)
                    .status()
                    .unwrap()
                    .success()
            );
            // Open the pipe for reading and writing, because opening it only for reading would wait
            // for the service.
            File::options().read(true).write(true).open(pipe).unwrap()
        })
    }
}

/// Returns a `Door`, through which honest callers connect to a service.
pub(crate) fn door(home: &Home, service: &Service, protocol: Protocol) -> Door {
    match protocol {
        Protocol::Tls => Door::by_tls(service.address(), handshakes::certificate(home)),
        Protocol::Http1 | Protocol::Http2 => Door::in_the_clear(service.address()),
    }
}

const DEFAULT: Attack = Attack {
    name: "",
    node: Node::Default,
    come: Come::By(Protocol::Http1),
    control: None,
    has_frames: false,
    begin: |_| JoinSet::new(),
    is_made: |deeds| deeds.requests.get() > 0,
    is_met: |_, _| true,
    bounds: Bounds::USUAL,
};

/// Creates an attack with a flood of frames. The service stops the flood by its own limit of frames
/// for each connection.
const fn flood(name: &'static str, begin: fn(&Aim) -> JoinSet<()>) -> Attack {
    Attack {
        name,
        come: Come::By(Protocol::Http2),
        has_frames: true,
        begin,
        is_made: |deeds| deeds.frames.get() >= floods::FRAMES as u64,
        is_met: |deeds, shed| shed.frames > 0 && deeds.cut.get() > 0,
        ..DEFAULT
    }
}

/// Creates an attack with a flood of frames that the libraries hyper or h2 stop.
const fn flood_known(name: &'static str, begin: fn(&Aim) -> JoinSet<()>) -> Attack {
    Attack {
        is_met: |deeds, _| deeds.cut.get() > 0,
        ..flood(name, begin)
    }
}

/// All attacks, sorted from the most to the least dangerous.
pub(crate) const ATTACKS: &[Attack] = &[
    Attack {
        name: "HTTP/2, a window of zero: 60 connections of 100 long answers",
        come: Come::By(Protocol::Http2),
        has_frames: true,
        begin: windows::none,
        is_made: |deeds| {
            deeds.requests.get() >= windows::CONNECTIONS as u64 * u64::from(windows::STREAMS)
        },
        is_met: |_, shed| shed.memory + shed.bulk + shed.in_flight > 0,
        ..DEFAULT
    },
    Attack {
        name: "HTTP/2, a window of one byte, a byte more now and then",
        come: Come::By(Protocol::Http2),
        has_frames: true,
        begin: windows::of_one_byte,
        is_made: |deeds| {
            deeds.requests.get() >= windows::CONNECTIONS as u64 * u64::from(windows::STREAMS)
        },
        is_met: |_, shed| shed.memory + shed.bulk + shed.in_flight > 0,
        ..DEFAULT
    },
    Attack {
        name: "60 connections of 100 requests whose bodies do not come",
        come: FRAMES,
        has_frames: true,
        begin: windows::without_bodies,
        is_made: |deeds| {
            deeds.requests.get() >= windows::CONNECTIONS as u64 * u64::from(windows::STREAMS)
        },
        is_met: |_, shed| shed.bodies + shed.memory > 0,
        bounds: Bounds::STRICT,
        ..DEFAULT
    },
    Attack {
        name: "4 500 requests whose bodies come a byte a second",
        // Use only HTTP/1.1, because so many TLS connections would be a flood of handshakes, which
        // another attack covers.
        come: Come::ByEach(&[Protocol::Http1]),
        begin: slow::bodies_by_the_second,
        is_made: |deeds| deeds.requests.get() + deeds.cut.get() >= slow::WITHOUT_BODIES as u64,
        is_met: |_, shed| shed.bodies + shed.memory > 0,
        bounds: Bounds::STRICT,
        ..DEFAULT
    },
    Attack {
        name: "3 000 callers who do not read their long answers",
        begin: unread::long_answers,
        is_made: |deeds| deeds.requests.get() >= unread::READERS as u64,
        is_met: |_, shed| shed.memory + shed.bulk > 0,
        ..DEFAULT
    },
    Attack {
        name: "10 000 callers who ask for 400 ids 60 times at once and read nothing",
        come: ANY_PROTOCOL,
        begin: unread::pipelined_batches,
        is_made: |deeds| deeds.requests.get() >= unread::PIPELINERS as u64,
        is_met: |_, shed| shed.memory > 0,
        ..DEFAULT
    },
    Attack {
        name: "32 reports of a million unknown keys",
        begin: bodies::unknown_keys,
        is_made: |deeds| deeds.connections.get() >= 32 && deeds.bytes.get() > 1 << 20,
        is_met: |deeds, _| deeds.of_status(400) + deeds.of_status(503) > 0,
        ..DEFAULT
    },
    Attack {
        name: "64 bulk decodes of 8 MiB",
        begin: bodies::decodes,
        is_made: |deeds| {
            deeds.connections.get() >= 64 && deeds.bytes.get() > bodies::DECODE_LEN as u64
        },
        is_met: |deeds, _| deeds.of_status(503) > 0,
        ..DEFAULT
    },
    Attack {
        name: "64 bulk decodes of 8 MiB, in chunks",
        begin: bodies::chunked_decodes,
        is_made: |deeds| {
            deeds.connections.get() >= 64 && deeds.bytes.get() > bodies::DECODE_LEN as u64
        },
        is_met: |deeds, _| deeds.of_status(503) > 0,
        ..DEFAULT
    },
    Attack {
        name: "32 reports of 16 MiB",
        begin: bodies::reports,
        is_made: |deeds| {
            deeds.connections.get() >= 32 && deeds.bytes.get() > bodies::REPORTS_LEN as u64
        },
        is_met: |deeds, _| deeds.of_status(503) > 0,
        ..DEFAULT
    },
    Attack {
        name: "8 callers who list 150 ledgers, each with an append of half a megabyte",
        node: Node::LongLedgers,
        control: Some(|| (listed::list(), listed::ANSWER_LEN_MIN)),
        begin: listed::lists,
        is_made: |deeds| deeds.requests.get() >= listed::LISTERS as u64,
        is_met: |deeds, _| listed::are_whole(deeds),
        bounds: Bounds::STRICT,
        ..DEFAULT
    },
    Attack {
        name: "32 callers who report nothing 20 000 times in 60 KiB, again and again",
        control: Some(|| (greedy::empty_reports(), greedy::REFUSAL_LEN)),
        come: ANY_PROTOCOL,
        begin: greedy::reports,
        is_made: |deeds| deeds.requests.get() >= greedy::REPORTERS as u64,
        is_met: |deeds, _| deeds.of_status(422) > 0,
        bounds: Bounds::STRICT,
        ..DEFAULT
    },
    Attack {
        name: "32 callers who have 10 000 reports told apart that are none, again and again",
        begin: greedy::told_reports,
        is_made: |deeds| deeds.requests.get() >= greedy::REPORTERS as u64,
        is_met: |deeds, shed| deeds.of_status(200) > 0 && shed.bulk > 0,
        ..DEFAULT
    },
    Attack {
        name: "48 callers who list 1 000 events, again and again",
        node: Node::Page,
        control: Some(|| (greedy::page("aa77f99c"), greedy::PAGE_LEN)),
        come: ANY_PROTOCOL,
        begin: greedy::pages,
        is_made: |deeds| deeds.requests.get() >= greedy::PAGERS as u64,
        is_met: |deeds, _| deeds.of_status(200) > 0,
        bounds: Bounds::STRICT,
        ..DEFAULT
    },
    Attack {
        name: "32 callers who list all formats 16 times at once, again and again",
        control: Some(|| (greedy::formats(), greedy::FORMATS_LEN)),
        come: ANY_PROTOCOL,
        begin: greedy::lists_of_formats,
        is_made: |deeds| deeds.requests.get() >= greedy::LISTERS as u64,
        is_met: |deeds, _| deeds.of_status(200) > 0,
        bounds: Bounds::STRICT,
        ..DEFAULT
    },
    Attack {
        name: "32 callers who have 30 000 texts decoded in full, 260 MB for 60 KiB",
        come: ANY_PROTOCOL,
        begin: greedy::decodes_in_full,
        is_made: |deeds| deeds.requests.get() >= greedy::DECODERS as u64,
        is_met: |deeds, shed| deeds.received.get() > 1 << 20 && shed.bulk > 0,
        bounds: Bounds::STRICT,
        ..DEFAULT
    },
    Attack {
        name: "32 callers who have 39 texts of 31 hex digits decoded in full 16 times at once",
        come: ANY_PROTOCOL,
        begin: greedy::decodes_of_no_ids,
        is_made: |deeds| deeds.requests.get() >= greedy::DECODERS as u64,
        is_met: |deeds, _| deeds.of_status(200) > 0,
        ..DEFAULT
    },
    Attack {
        name: "3 callers with the dearest body of each POST route in turn",
        node: Node::Page,
        come: Come::ByEach(&[Protocol::Http1]),
        begin: greedy::dearest_bodies,
        is_made: |deeds| deeds.requests.get() >= greedy::SPENDERS as u64,
        is_met: |deeds, _| deeds.of_status(200) > 0 && deeds.of_status(201) > 0,
        bounds: Bounds::CLOSE,
        ..DEFAULT
    },
    Attack {
        name: "300 callers who ask for the interface 60 times at once and read nothing",
        come: ANY_PROTOCOL,
        begin: greedy::interfaces,
        is_made: |deeds| deeds.requests.get() >= greedy::UNREAD as u64,
        bounds: Bounds::STRICT,
        ..DEFAULT
    },
    Attack {
        name: "1 000 callers who want one id after the other",
        come: ANY_PROTOCOL,
        control: Some(|| (greedy::single(), greedy::SINGLE_LEN)),
        begin: greedy::singles,
        is_made: |deeds| deeds.requests.get() >= greedy::MINTERS as u64,
        is_met: |deeds, _| deeds.of_status(200) > 0,
        bounds: Bounds::STRICT,
        ..DEFAULT
    },
    Attack {
        name: "8 000 connections that send one byte",
        come: ANY_PROTOCOL,
        begin: slow::one_byte,
        is_made: |deeds| deeds.connections.get() >= slow::ONE_BYTE as u64,
        ..DEFAULT
    },
    Attack {
        name: "10 000 idle connections",
        begin: slow::idle,
        is_made: |deeds| deeds.connections.get() >= slow::IDLE as u64,
        is_met: |deeds, _| deeds.cut.get() > 0,
        bounds: Bounds::STRICT,
        ..DEFAULT
    },
    Attack {
        name: "10 000 connections with an id and half of the next head",
        begin: slow::half_heads,
        is_made: |deeds| deeds.connections.get() >= slow::IDLE as u64,
        is_met: |_, shed| shed.memory > 0,
        ..DEFAULT
    },
    flood("HTTP/2 PING flood", floods::pings),
    flood("HTTP/2 SETTINGS flood", floods::settings),
    flood("HTTP/2 WINDOW_UPDATE flood", floods::window_updates),
    flood("HTTP/2 PRIORITY flood", floods::priorities),
    Attack {
        come: FRAMES,
        bounds: Bounds::STRICT,
        ..flood("HTTP/2 RST_STREAM flood", floods::resets)
    },
    Attack {
        come: FRAMES,
        bounds: Bounds::STRICT,
        ..flood("HTTP/2 flood of unknown frames", floods::unknown)
    },
    flood_known("HTTP/2 flood of empty DATA", floods::empty_data),
    flood_known("HTTP/2 rapid reset", floods::rapid_resets),
    flood_known(
        "HTTP/2 resets that the server is made to send",
        floods::resets_made_by_the_server,
    ),
    flood_known("HTTP/2 CONTINUATION flood", floods::continuations),
    Attack {
        name: "2 000 slow heads",
        begin: slow::heads,
        is_made: |deeds| deeds.connections.get() >= slow::SLOW as u64,
        ..DEFAULT
    },
    Attack {
        name: "2 000 slow bodies",
        begin: slow::bodies,
        is_made: |deeds| deeds.connections.get() >= slow::SLOW as u64,
        ..DEFAULT
    },
    Attack {
        name: "1 000 callers who begin a handshake of TLS every second",
        come: Come::By(Protocol::Tls),
        begin: handshakes::begun,
        is_made: |deeds| deeds.requests.get() >= handshakes::CALLERS as u64,
        is_met: |deeds, shed| deeds.received.get() > 0 && shed.handshakes > 0,
        ..DEFAULT
    },
    Attack {
        name: "2 000 handshakes of TLS that stall",
        come: Come::By(Protocol::Tls),
        begin: handshakes::stalled,
        is_made: |deeds| deeds.connections.get() >= slow::SLOW as u64,
        is_met: |deeds, shed| deeds.cut.get() > 0 && shed.handshakes > 0,
        ..DEFAULT
    },
    Attack {
        name: "bodies of a GiB",
        begin: bodies::too_long,
        is_met: |deeds, _| deeds.of_status(413) > 0,
        ..DEFAULT
    },
    Attack {
        name: "chunks without end",
        begin: bodies::chunks_without_end,
        is_met: |deeds, _| deeds.of_status(413) + deeds.of_status(503) > 0,
        ..DEFAULT
    },
    Attack {
        name: "malformed JSON",
        begin: malformed::json,
        is_met: |deeds, _| deeds.of_status(400) > 0 && deeds.of_status(422) > 0,
        ..DEFAULT
    },
    Attack {
        name: "10 000 headers, 1 MiB of a header, two lengths",
        begin: malformed::headers,
        is_met: |deeds, _| deeds.of_status(431) > 0 && deeds.of_status(400) > 0,
        ..DEFAULT
    },
    Attack {
        name: "file descriptors used up (256)",
        node: Node::FewDescriptors,
        begin: slow::more_than_descriptors,
        is_made: |deeds| deeds.connections.get() >= slow::MORE_THAN_DESCRIPTORS as u64,
        is_met: |deeds, _| deeds.cut.get() > 0,
        ..DEFAULT
    },
    Attack {
        name: "a log pipe that nobody reads, at level `trace`",
        node: Node::UnreadLog,
        come: Come::By(Protocol::Http2),
        has_frames: true,
        begin: logged::requests,
        is_met: |_, shed| shed.lines > 0,
        ..DEFAULT
    },
    Attack {
        name: "300 callers who close their sending half",
        begin: unread::half_closed,
        is_made: |deeds| deeds.requests.get() >= unread::HALF_CLOSED as u64,
        is_met: |deeds, _| {
            deeds.of_status(200) + unread::HALF_CLOSED as u64 >= deeds.requests.get()
        },
        ..DEFAULT
    },
];
