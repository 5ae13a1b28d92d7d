//! The command `idmint fleet status`, which prints the state of a fleet.

use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Status;
use super::shared_etcd::etcd_of;
use crate::cli::exit::{Exit, Failure};
use crate::cli::print::print;
use idmint_core::time::Clock;
use idmint_fleet::{
    AgreedFleet, ClockBounds, FleetKeys, FleetProblem, FleetStatus, FleetWatch, HighWater,
    KeptHighWater, Slot, SlotState, Unseen, problem_of_members, problem_of_shares,
};
use idmint_fleet::{Coordinator, CoordinatorError, Member, Space};
use idmint_storage::{EtcdEndpoint, EtcdSettings};

/// The interval at which the slots (places of nodes in the fleet) are read from etcd. The command
/// notices that a node has renewed its slot at most this long afterwards.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Status {
    /// Watches the fleet for a few seconds, until every node has renewed its slot. Then prints the
    /// status of the fleet.
    ///
    /// # Errors
    /// Returns exit code 1 if the fleet has problems, 75 if etcd does not respond, and 78 if the
    /// configuration is invalid.
    pub(super) fn run(self) -> Result<(), Failure> {
        let config = self.settings.load_without_slot()?;
        let etcd = etcd_of(&config)?;
        let kept = KeptHighWater::of(&config.storage.data_dir, &etcd.namespace);
        let known = kept.read()?;
        let (mut status, members) = look(&etcd, &known)?;
        status.problems.extend(
            members
                .iter()
                .filter_map(|member| problem_of(member, &etcd)),
        );
        status.problems.extend(problem_of_members(&members));
        for peer in &self.peer {
            status
                .problems
                .extend(problem_with(peer, &etcd, status.fleet.as_ref()));
        }
        let problems = status.problems.len();
        if self.json {
            print(format_args!("{:#}\n", as_json(&status, &members, &etcd)))?;
        } else {
            print(format_args!("{}", as_text(&status, &members, &etcd)))?;
        }
        match problems {
            0 => Ok(()),
            1 => Err(Failure::no("this fleet has 1 problem")),
            count => Err(Failure::no(format!("this fleet has {count} problems"))),
        }
    }
}

/// Returns the status of the fleet and of its etcd members.
fn look(etcd: &EtcdSettings, known: &HighWater) -> Result<(FleetStatus, Vec<Member>), Failure> {
    let coordinator = connect(etcd)?;
    let keys = FleetKeys::below(etcd.namespace.key_prefix());
    let status = watch(&*coordinator, &keys, known, watched_max)?;
    Ok((status, coordinator.members()))
}

/// Reads the slots of the fleet repeatedly until every node with a slot has renewed it. Then
/// returns the status of the fleet. If a renewal arrived very late, also waits for the node's next
/// renewal, which shows whether the node's clock is behind. `watched_max` returns the time limit of
/// the watch, which depends on the missing renewals.
pub(super) fn watch(
    coordinator: &dyn Coordinator,
    keys: &FleetKeys,
    known: &HighWater,
    watched_max: impl Fn(Unseen) -> Duration,
) -> Result<FleetStatus, Failure> {
    let clock = Clock::system();
    let (mut watch, begun) = (FleetWatch::default(), Instant::now());
    while let Some(unseen) = watch.unseen(keys) {
        let is_over = begun.elapsed() >= watched_max(unseen);
        let asked_at = clock.now();
        match coordinator.read(&keys.all_slots()) {
            Ok(snapshot) => watch.see(keys, snapshot, (asked_at, clock.now())),
            // Try again, because etcd may be electing a new leader at the moment.
            Err(CoordinatorError::NoAnswer(_) | CoordinatorError::NotSent(_)) if !is_over => {}
            Err(error) => return Err(error.into()),
        }
        if is_over {
            break;
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(watch.status(keys, known, clock.now()))
}

/// Returns the time limit for a watch in which the renewals `unseen` are still missing. Nodes renew
/// their slots every 5 s. A limit of 7 s is enough for one renewal with a retry, and 13 s are
/// enough for the node's next renewal, too.
pub(super) fn watched_max(unseen: Unseen) -> Duration {
    Duration::from_secs(match unseen {
        Unseen::Renewals => 7,
        Unseen::NextRenewals => 13,
    })
}

pub(super) fn connect(etcd: &EtcdSettings) -> Result<std::sync::Arc<dyn Coordinator>, Failure> {
    idmint_fleet::connect(etcd).map_err(|error| Failure::of(Exit::Config, &error))
}

fn problem_of(member: &Member, etcd: &EtcdSettings) -> Option<FleetProblem> {
    let at = &member.endpoint;
    let state = match &member.state {
        Ok(state) => state,
        Err(error) => {
            let advice = "restore this member; etcd works while more than half of its members do";
            return Some(FleetProblem::new(
                format!("the member of etcd at {at} does not answer: {error}"),
                advice,
            ));
        }
    };
    if !state.problems.is_empty() {
        let what = format!(
            "the etcd member at {at} reports an error: {}",
            state.problems.join("; ")
        );
        return Some(FleetProblem::new(
            what,
            "run etcdctl alarm list; if it reports NOSPACE, compact and defragment etcd, then run etcdctl \
             alarm disarm",
        ));
    }
    let space = Space::of(state, etcd.quota);
    space.is_scarce().then(|| {
        let what =
            format!("the database of the member of etcd at {at} is {space}: appends are refused");
        FleetProblem::new(
            what,
            "compact and defragment (docs/FLEET.md), or raise the quota of etcd and etcd.quota",
        )
    })
}

/// Compares the slots (places of nodes) of this region with the slots of another region, whose etcd
/// is `peer`. Returns a problem if both assign the same slots, or if this cannot be checked.
fn problem_with(
    peer: &EtcdEndpoint,
    etcd: &EtcdSettings,
    here: Option<&AgreedFleet>,
) -> Option<FleetProblem> {
    let there = EtcdSettings {
        endpoints: vec![peer.clone()],
        ..etcd.clone()
    };
    let unknown = |why: String, advice: &str| {
        let what = format!("cannot check whether two regions have the same slots, because {why}");
        Some(FleetProblem::new(what, advice))
    };
    let no_fleet = "check etcd.namespace, and retry when the first node of each region has started";
    match look_once(&there) {
        Err(failure) => unknown(
            format!("{peer} is unreachable: {failure}"),
            "retry when it responds; until then start no node there with other slots",
        ),
        Ok(status) => match (here, &status.fleet) {
            (Some(here), Some(there)) => problem_of_shares(here, peer.as_str(), there),
            (None, _) => unknown("this etcd has no fleet".to_owned(), no_fleet),
            (_, None) => unknown(
                format!("{peer} has no fleet in the namespace {}", etcd.namespace),
                no_fleet,
            ),
        },
    }
}

fn look_once(etcd: &EtcdSettings) -> Result<FleetStatus, Failure> {
    let keys = FleetKeys::below(etcd.namespace.key_prefix());
    let snapshot = connect(etcd)?.read(&keys.all_slots())?;
    let (mut watch, now) = (FleetWatch::default(), Clock::system().now());
    watch.see(&keys, snapshot, (now, now));
    Ok(watch.status(&keys, &HighWater::default(), now))
}

fn as_text(status: &FleetStatus, members: &[Member], etcd: &EtcdSettings) -> String {
    let mut text = String::new();
    let mut line = |line: String| writeln!(text, "{line}").expect("text can be written");
    match &status.fleet {
        None => line(format!("fleet   none in namespace {}", etcd.namespace)),
        Some(AgreedFleet {
            fleet,
            floor,
            share,
            formats,
        }) => {
            line(format!(
                "fleet   {fleet}, namespace {}, from {floor} on",
                etcd.namespace
            ));
            line(format!("slots   {share}, for {} formats", formats.len()));
        }
    }
    for slot in &status.slots {
        let horizon = slot.horizon.map_or("never used".to_owned(), |horizon| {
            format!("up to {horizon}")
        });
        match &slot.state {
            SlotState::Free => continue,
            SlotState::Resting => line(format!("slot {:<5} unused, {horizon}", slot.slot)),
            SlotState::Unreadable => line(format!("slot {:<5} cannot be read", slot.slot)),
            SlotState::Held(holder) => {
                let clock = holder
                    .clock
                    .map_or("not renewed during this check".to_owned(), as_words);
                let (node, addr, since) = (&holder.node, &holder.addr, holder.since);
                line(format!(
                    "slot {:<5} {node} {addr} since {since}, {horizon}, {clock}",
                    slot.slot
                ));
            }
        }
    }
    let free = status
        .slots
        .iter()
        .filter(|slot| slot.state == SlotState::Free)
        .count();
    line(format!("free    {free} slots"));
    for member in members {
        let endpoint = &member.endpoint;
        match &member.state {
            Err(error) => line(format!("etcd    {endpoint} does not answer: {error}")),
            Ok(state) => {
                let leads = if state.is_leader { ", leads" } else { "" };
                let space = Space::of(state, etcd.quota);
                line(format!(
                    "etcd    {endpoint} version {}{leads}, {space}",
                    state.version
                ));
            }
        }
    }
    for FleetProblem { what, advice } in &status.problems {
        line(format!("\nwrong   {what}\n   do   {advice}"));
    }
    if status.problems.is_empty() {
        line("no problem found".to_owned());
    }
    text
}

/// Describes how far a clock is wrong, such as `clock at least 250 ms ahead`. Fractions of a
/// millisecond are dropped, because nodes record their clocks in whole milliseconds.
fn as_words(clock: ClockBounds) -> String {
    let ClockBounds {
        least_nanos,
        most_nanos,
    } = clock;
    match (millis(least_nanos), most_nanos.map(millis)) {
        (1.., _) => format!("clock at least {} ms ahead", millis(least_nanos)),
        (_, Some(most @ ..=-1)) => format!("clock at least {} ms behind", most.unsigned_abs()),
        (least, _) => format!("clock at most {} ms behind", least.unsigned_abs()),
    }
}

fn millis(nanos: i64) -> i64 {
    nanos / 1_000_000
}

fn as_json(status: &FleetStatus, members: &[Member], etcd: &EtcdSettings) -> Value {
    let slots: Vec<Value> = status.slots.iter().map(slot_as_json).collect();
    let members: Vec<Value> = members
        .iter()
        .map(|member| member_as_json(member, etcd))
        .collect();
    let problems = status
        .problems
        .iter()
        .map(|problem| json!({ "what": problem.what, "advice": problem.advice }));
    json!({
        "well": status.problems.is_empty(),
        "namespace": etcd.namespace.to_string(),
        "fleet": status.fleet.as_ref().map(|agreed| agreed.fleet.to_string()),
        "floor": status.fleet.as_ref().map(|agreed| agreed.floor.to_string()),
        "share": status.fleet.as_ref().map(|agreed| agreed.share.to_string()),
        "formats": status.fleet.as_ref().map(|agreed| agreed.formats.clone()),
        "slots": slots,
        "members": members,
        "problems": problems.collect::<Vec<Value>>(),
    })
}

fn slot_as_json(slot: &Slot) -> Value {
    let (state, holder) = match &slot.state {
        SlotState::Held(holder) => ("held", Some(holder)),
        SlotState::Resting => ("resting", None),
        SlotState::Free => ("free", None),
        SlotState::Unreadable => ("unreadable", None),
    };
    let clock = holder.and_then(|holder| holder.clock);
    json!({
        "slot": slot.slot,
        "state": state,
        "horizon": slot.horizon.map(|horizon| horizon.to_string()),
        "node": holder.map(|holder| holder.node.clone()),
        "addr": holder.map(|holder| holder.addr.clone()),
        "since": holder.map(|holder| holder.since.to_string()),
        "clock_ahead_ms_min": clock.map(|clock| millis(clock.least_nanos)),
        "clock_ahead_ms_max": clock.and_then(|clock| clock.most_nanos).map(millis),
    })
}

fn member_as_json(member: &Member, etcd: &EtcdSettings) -> Value {
    match &member.state {
        Err(error) => json!({ "endpoint": member.endpoint, "answers": false, "error": error }),
        Ok(state) => json!({
            "endpoint": member.endpoint,
            "answers": true,
            "version": state.version,
            "leads": state.is_leader,
            "size": state.size,
            "size_in_use": state.size_in_use,
            "quota": Space::of(state, etcd.quota).quota,
            "problems": state.problems,
        }),
    }
}
