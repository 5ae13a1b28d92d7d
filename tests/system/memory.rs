//! Checks a process that gets no more memory in the middle of its work.
//!
//! The test limits the memory of the process. It does not limit a control group, because only some
//! machines allow a test to do so. If an allocation fails, the process ends immediately, as if the
//! kernel had killed it. This can happen at any moment.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use idmint_testing::http1::{Client, request};
use idmint_testing::ids::assert_no_id_twice;
use idmint_testing::load::{End, Load, fresh_callers, into_received};
use idmint_testing::service::{Home, Service, until};

const MORE_BYTES: u64 = 1 << 20;
const ROUNDS: usize = 5;

/// Limits the memory of the process to slightly more than it uses now.
fn limit_memory(service: &Service) {
    let status = fs::read_to_string(format!("/proc/{}/status", service.pid())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmData:"))
        .expect("Linux says so");
    let has_kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    let most = Some(has_kib * 1024 + MORE_BYTES);
    let pid = Pid::from_raw(service.pid().try_into().unwrap());
    prlimit(
        pid,
        Resource::Data,
        Rlimit {
            current: most,
            maximum: most,
        },
    )
    .unwrap();
}

/// Requests long responses and does not read them, until the process of the service has ended.
fn exhaust(service: &mut Service) {
    let mut greedy = Vec::new();
    until("the service is out of memory", || {
        if let Ok(mut client) = Client::try_connect(service.address()) {
            client.send(request("POST /ids/snowflake?count=100000", "", ""));
            greedy.push(client);
        }
        (!service.is_running()).then_some(())
    });
}

#[test]
fn a_service_that_runs_out_of_memory_repeats_no_id_afterwards() {
    let home = Home::new();
    let mut callers = fresh_callers();
    for _ in 0..ROUNDS {
        let mut service = home.start();
        service.wait_until_ready();
        let load = Load::start(service.address(), callers);
        std::thread::sleep(Duration::from_millis(300));
        limit_memory(&service);
        exhaust(&mut service);
        let log = service.log();
        assert!(
            log.contains("memory allocation of"),
            "it ended for want of memory: {log}"
        );
        let minted = load.join();
        // Before it ended, the service may have closed the connection of a caller.
        let has_ended = |end| [End::Cut, End::Closed].contains(&end);
        assert!(minted.iter().all(|caller| has_ended(caller.end)));
        callers = into_received(minted);
    }
    println!("{:?} ids, none twice", assert_no_id_twice(callers));
}
