//! The floor plan as data: folders, what stands above what, and the limits of a file and of a folder.

/// The files beside the folders of `src`: they put the floors together and stand on none.
pub(crate) const ENTRANCES: [&str; 3] = ["lib.rs", "main.rs", "in_process.rs"];

/// The folders of `src`, top to bottom: a folder imports only from folders above it.
pub(crate) const FOLDERS: &[Folder] = &[
    folder("time"),
    folder("id").with_floors(&[
        &["layout"],
        &["encoding"],
        &["format"],
        &["decoding"],
        &["inspection", "reference"],
    ]),
    folder("minting").with_floors(&[&["sequenced", "random"]]),
    folder("ledger").with_floors(&[
        &["canonical"],
        &["events"],
        &["append", "chain"],
        &["numbers"],
    ]),
    folder("conjunction")
        .with_floors(&[&["cdm"]])
        .denying(&["ledger"]),
    folder("storage").with_floors(&[
        &["failure", "files"],
        &["records", "coordinator"],
        &["embedded", "etcd"],
        &["fleet"],
        &["memory"],
        &["keepers"],
        &["conformance"],
    ]),
    folder("cluster").with_floors(&[
        &["stored"],
        &["high_water"],
        &["slot_lease"],
        &["operation"],
        &["simulation"],
    ]),
    // Clients read these shapes too, and have no storage.
    folder("wire")
        .with_floors(&[&["decode"]])
        .denying(&["storage", "cluster"]),
    folder("service").with_floors(&[&["load"], &["formats"], &["conjunctions", "numbers"]]),
    folder("http").with_floors(&[
        &["answer"],
        &["request", "host_policy"],
        &["access", "page"],
        &["routes"],
    ]),
    folder("net").with_floors(&[&["stream"], &["connection"]]),
    // Builds without the feature `server`.
    folder("client")
        .with_floors(&[&["prefetching"]])
        .denying(&["storage", "cluster", "service", "http", "net"]),
    folder("server").with_floors(&[
        &["config"],
        &["telemetry"],
        &["process", "formats", "access"],
    ]),
    folder("cli").with_floors(&[
        &["running_service"],
        &[
            "ledger",
            "numbers",
            "conjunction",
            "decode",
            "node",
            "fleet",
        ],
    ]),
];

/// Which crates stay out of which folders.
pub(crate) const CRATE_RULES: &[CrateRule] = &[
    CrateRule {
        crates: &["axum", "hyper", "hyper_util", "redb", "tokio", "tracing"],
        kept_out_of: &["time", "id", "minting", "ledger", "conjunction"],
        except: &[],
    },
    CrateRule {
        crates: &[
            "axum",
            "http",
            "http_body",
            "http_body_util",
            "hyper",
            "hyper_util",
            "tower",
        ],
        kept_out_of: &["service"],
        except: &[],
    },
    CrateRule {
        crates: &["redb"],
        kept_out_of: &[""],
        except: &["storage/embedded"],
    },
];

/// Lines of a file of `src` without its inline test modules.
pub(crate) const SOURCE_LINES_MAX: usize = 400;

/// Lines of a file that holds nothing but tests or benchmarks.
pub(crate) const TEST_LINES_MAX: usize = 500;

/// Files and folders that one folder of `src` lists; `mod.rs` and the entrances are not counted.
pub(crate) const LISTED_MAX: usize = 14;

/// Names that say nothing about what is inside.
pub(crate) const EMPTY_NAMES: [&str; 7] = [
    "utils", "util", "helpers", "helper", "common", "misc", "shared",
];

/// A folder of `src`.
#[derive(Clone, Copy)]
pub(crate) struct Folder {
    pub(crate) name: &'static str,
    /// Every subfolder it may have, floor by floor: one imports only from floors above its own. Files that lie in the
    /// folder itself may import from each subfolder and the other way round, as long as no circle comes of it.
    pub(crate) floors: &'static [&'static [&'static str]],
    /// Folders above that it must not import from all the same.
    pub(crate) denied: &'static [&'static str],
    /// It does not exist yet.
    pub(crate) is_planned: bool,
}

const fn folder(name: &'static str) -> Folder {
    Folder {
        name,
        floors: &[],
        denied: &[],
        is_planned: false,
    }
}

impl Folder {
    const fn with_floors(self, floors: &'static [&'static [&'static str]]) -> Self {
        Self { floors, ..self }
    }

    const fn denying(self, denied: &'static [&'static str]) -> Self {
        Self { denied, ..self }
    }

    /// The floor of a subfolder, counted from the top.
    pub(crate) fn floor_of(&self, subfolder: &str) -> Option<usize> {
        self.floors
            .iter()
            .position(|floor| floor.contains(&subfolder))
    }
}

/// Crates that the code of some folders does not name. Tests may.
pub(crate) struct CrateRule {
    pub(crate) crates: &'static [&'static str],
    /// Folders below `src`; the empty name is `src` itself.
    pub(crate) kept_out_of: &'static [&'static str],
    /// Folders within those that may.
    pub(crate) except: &'static [&'static str],
}
