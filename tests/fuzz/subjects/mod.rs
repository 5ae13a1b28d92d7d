//! Defines the fuzzed functions. Each checks invariants that must hold for every input.

mod formats;
mod ids;
mod ledgers;
mod reports;
mod service;

/// A fuzzed function, which takes untrusted bytes.
pub(crate) struct Subject {
    /// The name of the function, and of the folder with its inputs.
    pub(crate) name: &'static str,
    /// Runs the function with arbitrary bytes. Panics if an invariant does not hold.
    pub(crate) take: fn(&[u8]),
}

pub(crate) const SUBJECTS: &[Subject] = &[
    Subject {
        name: "decoding",
        take: ids::decode,
    },
    Subject {
        name: "encodings",
        take: ids::read_and_write,
    },
    Subject {
        name: "formats",
        take: formats::compile,
    },
    Subject {
        name: "events",
        take: ledgers::read_event,
    },
    Subject {
        name: "chains",
        take: ledgers::check_chain,
    },
    Subject {
        name: "kvn",
        take: reports::read_kvn,
    },
    Subject {
        name: "xml",
        take: reports::read_xml,
    },
    Subject {
        name: "space-track",
        take: reports::read_space_track,
    },
    Subject {
        name: "csv",
        take: reports::read_csv,
    },
    Subject {
        name: "bodies",
        take: service::answer_body,
    },
    Subject {
        name: "http",
        take: service::answer_bytes,
    },
];
