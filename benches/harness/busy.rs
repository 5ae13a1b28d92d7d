//! Reads the running time of threads from Linux. Other work on the same cores does not change this
//! figure.

use std::fs;
use std::path::Path;

/// Returns the running time of all threads with the name `name`, in nanoseconds.
pub(crate) fn busy_nanos(name: &str) -> f64 {
    let tasks = fs::read_dir("/proc/self/task")
        .expect("Linux lists threads")
        .map(|task| task.expect("a thread").path());
    let named = tasks.filter(|task| {
        fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
    });
    let running = |task: &Path| -> Option<f64> {
        fs::read_to_string(task.join("schedstat"))
            .ok()?
            .split(' ')
            .next()?
            .parse()
            .ok()
    };
    named.filter_map(|task| running(&task)).sum()
}
