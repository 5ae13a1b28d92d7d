//! The results of a run.

use std::time::Duration;

use crate::cpu_pinning::CpuPinning;
use crate::goals::Verdict;
use crate::machine::Machine;
use crate::scaling::ScalingTable;
use crate::scenario::Scenario;
use crate::settings::Settings;

pub(crate) struct Results<'a> {
    pub(crate) machine: Machine,
    pub(crate) pinning: CpuPinning,
    pub(crate) settings: &'a Settings,
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) scaling: Vec<ScalingTable>,
    pub(crate) passed: Duration,
}
