//! The limit of the operating system on the open files of this process. Each connection is an open
//! file.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::server::config::HttpConfig;

/// The number of open files that are kept for the store, the log, `http.admin_listen`, backups and
/// connections to etcd.
const KEPT_FILES: u64 = 100;

/// Raises the soft limit on open files to the hard limit. If `http.connections_max` is above the
/// number of connections that this limit permits, lowers it and returns a warning.
pub fn fit_connections(http: &mut HttpConfig) -> Option<String> {
    let limit = raise_limit()?;
    let (configured, most) = (http.connections_max(), connections_within(limit));
    if configured <= most {
        return None;
    }
    http.connections_max = Some(most);
    Some(format!(
        "http.connections_max is {most} instead of {configured}, because this process may have at most {limit} open \
         files; raise its hard limit (ulimit -Hn), or lower the setting"
    ))
}

/// Raises the soft limit of open files to the hard limit, which needs no privilege. Returns the new
/// limit, or `None` if it is unlimited.
fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => maximum,
        // A sandbox may forbid the system call. The limit of open files is then unchanged.
        Err(_) => current,
    }
}

/// Returns the maximum number of connections if the process may have `limit` open files.
fn connections_within(limit: u64) -> usize {
    let connections = limit - KEPT_FILES.min(limit / 2);
    usize::try_from(connections).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_files_are_kept_or_half_of_a_few() {
        let most = [u64::MAX, 1_024, 200, 64, 1].map(connections_within);
        assert_eq!(most, [usize::MAX - 100, 924, 100, 32, 1]);
    }
}
