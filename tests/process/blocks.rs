//! Blocks of numbers of a service that is killed again and again under callers: none doubled, and few lost.

use std::thread;

use crate::numbering::{BLOCK_RULES, BlockCallers};
use crate::service::{Home, Service, until};

const CALLERS: usize = 8;
const KILLS: u64 = 6;
const RESERVE: u64 = 1_000;

#[test]
fn no_number_of_a_block_is_doubled_and_a_kill_loses_no_more_than_what_is_reserved() {
    let home = Home::new();
    let mut service = Service::start(home.serve_with(BLOCK_RULES));
    service.wait_until_ready();
    let callers = BlockCallers::of([&service]);
    thread::scope(|scope| {
        let _stop = callers.stop_at_the_end();
        for caller in 0..CALLERS {
            let callers = &callers;
            scope.spawn(move || callers.ask(caller));
        }
        let get_more = || {
            let least = callers.told() + 200;
            until("callers get numbers", || {
                (callers.told() >= least).then_some(())
            });
        };
        for _ in 0..KILLS {
            get_more();
            service.kill();
            service = Service::start(home.serve_with(BLOCK_RULES));
            callers.move_place(0, service.address());
        }
        get_more();
    });
    let (numbers, lost) = callers.check();
    println!("{lost} lost by {KILLS} kills");
    // Of each caller an answer may have been on its way.
    let unheard = KILLS * (CALLERS * 300) as u64;
    assert!(
        numbers > 100_000 && lost <= KILLS * RESERVE + unheard,
        "{lost} of {numbers} lost"
    );
}
