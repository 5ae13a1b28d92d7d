//! `make fleet`, as far as it needs no release build.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use idmint::storage::{CoordinatorError, Range};
use rustix::process::{Pid, Signal, kill_process};

use super::client::settings;

#[test]
fn the_script_of_a_fleet_starts_three_members_and_ends_them_when_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/fleet/run");
    let mut run = Command::new(script);
    run.env("FLEET_DIR", folder.path()).env("NODES", "0").stdin(Stdio::null()).stdout(Stdio::piped());
    let mut run = run.spawn().expect("bash is there");
    let mut said = BufReader::new(run.stdout.take().unwrap()).lines().map_while(Result::ok);
    let ready = said.next().expect("it says when etcd is ready");
    let endpoints = ready.strip_prefix("etcd is ready: ").unwrap_or_else(|| panic!("{ready}"));
    let endpoints: Vec<String> = endpoints.split(',').map(str::to_owned).collect();
    assert_eq!(endpoints.len(), 3);
    for endpoint in &endpoints {
        settings(std::slice::from_ref(endpoint)).connect().unwrap().read(&[Range::one("/a")]).expect("each answers");
    }
    assert_eq!(said.next().as_deref(), Some("Ctrl-C ends all of it"));
    // Not the signal of Ctrl-C: whoever runs tests in the background has that ignored, and a shell cannot trap it then.
    kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
    let rest: Vec<String> = said.collect();
    assert!(run.wait().unwrap().success(), "{rest:?}");
    let refused = settings(&endpoints).connect().unwrap().read(&[Range::one("/a")]).unwrap_err();
    assert!(matches!(refused, CoordinatorError::NotSent(_)), "nobody is left: {refused}");
}
