//! Comparison shown by a demo. It is not part of the service's state, so it is not stored.

use arc_swap::ArcSwapOption;
use leeward_records::Clock;
use leeward_records::schema::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use leeward_problems::Problem;

/// Last published comparison; empty before the first.
pub type Board = ArcSwapOption<Demo>;

/// Largest number of compared policies.
const MOST_ARMS: usize = 8;
/// Largest number of racks per policy.
const MOST_RACKS: usize = 10_000;
/// Largest number of history steps.
const MOST_STEPS: usize = 10_000;
/// Largest number of characters of a name.
const LONGEST_NAME: usize = 200;

/// The same work under several placement policies.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Demo {
    /// Current time of the demo.
    #[schemars(with = "Time")]
    time: String,
    /// Seconds of the demo per second of real time.
    #[schemars(extend("exclusiveMinimum" = 0))]
    speed: f64,
    /// Compared policies.
    #[schemars(length(max = MOST_ARMS))]
    arms: Vec<Arm>,
    /// History of the comparison.
    history: Course,
}

/// One compared policy, with the loads of racks under it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Name of the policy's arm.
    #[schemars(length(min = 1, max = LONGEST_NAME))]
    name: String,
    /// Policy with its settings.
    #[schemars(length(min = 1, max = LONGEST_NAME))]
    policy: String,
    /// Number of hot racks.
    hot_racks: u32,
    /// Hot racks as a share of all racks.
    #[schemars(range(min = 0, max = 1))]
    hot_share: f64,
    /// Loads of all racks.
    #[schemars(length(max = MOST_RACKS))]
    racks: Vec<ArmRack>,
}

/// Loads of a rack's links, as shares of their capacities; null if unknown.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArmRack {
    /// Name of the rack.
    #[schemars(length(min = 1, max = LONGEST_NAME))]
    rack: String,
    /// Load of the uplink.
    #[schemars(range(min = 0))]
    up: Option<f64>,
    /// Load of the downlink.
    #[schemars(range(min = 0))]
    down: Option<f64>,
}

/// Shares of hot racks over time, up to now.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Course {
    /// Length of a step, in seconds.
    #[schemars(extend("exclusiveMinimum" = 0))]
    step_s: f64,
    /// Compared policies.
    #[schemars(length(max = MOST_ARMS))]
    arms: Vec<ArmCourse>,
}

/// Shares of hot racks under one policy.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArmCourse {
    /// Name of the policy's arm.
    #[schemars(length(min = 1, max = LONGEST_NAME))]
    name: String,
    /// Share for each step, in order of time; null without a measurement.
    #[schemars(length(max = MOST_STEPS), inner(range(min = 0, max = 1)))]
    hot_share: Vec<Option<f64>>,
}

/// Summary of the demo.
#[derive(Serialize, JsonSchema)]
pub struct About {
    /// Seconds of the demo per second of real time.
    speed: f64,
    /// Names of the compared arms.
    arms: Vec<String>,
}

impl About {
    /// Summary of a published comparison; `None` without a demo or a comparison.
    pub fn of(board: Option<&Board>) -> Option<About> {
        let demo = board?.load_full()?;
        Some(About { speed: demo.speed, arms: demo.arms.iter().map(|arm| arm.name.clone()).collect() })
    }
}

impl Demo {
    /// Validates the comparison.
    ///
    /// # Errors
    /// [`Problem`] with the first invalid field.
    pub fn check(&self, clock: &Clock) -> Result<(), Problem> {
        clock.parse(&self.time).map_err(|detail| Problem::field("time", detail))?;
        check_positive("speed", self.speed)?;
        check_positive("history.step_s", self.history.step_s)?;
        check_count("arms", self.arms.len(), MOST_ARMS)?;
        check_count("history.arms", self.history.arms.len(), MOST_ARMS)?;
        for (at, arm) in self.arms.iter().enumerate() {
            let field = |name: &str| format!("arms[{at}].{name}");
            check_name(&field("name"), &arm.name)?;
            check_name(&field("policy"), &arm.policy)?;
            check_count(&field("racks"), arm.racks.len(), MOST_RACKS)?;
            check_share(&field("hot_share"), arm.hot_share)?;
            if arm.hot_racks as usize > arm.racks.len() {
                let detail = format!("{}: there are {} racks", arm.hot_racks, arm.racks.len());
                return Err(Problem::field(field("hot_racks"), detail));
            }
            for (index, rack) in arm.racks.iter().enumerate() {
                let field = |name: &str| field(&format!("racks[{index}].{name}"));
                check_name(&field("rack"), &rack.rack)?;
                rack.up.map_or(Ok(()), |up| check_not_negative(&field("up"), up))?;
                rack.down.map_or(Ok(()), |down| check_not_negative(&field("down"), down))?;
            }
        }
        for (at, arm) in self.history.arms.iter().enumerate() {
            let field = |name: &str| format!("history.arms[{at}].{name}");
            check_name(&field("name"), &arm.name)?;
            check_count(&field("hot_share"), arm.hot_share.len(), MOST_STEPS)?;
            for (step, hot) in arm.hot_share.iter().enumerate() {
                hot.map_or(Ok(()), |hot| check_share(&field(&format!("hot_share[{step}]")), hot))?;
            }
        }
        Ok(())
    }
}

fn check_count(field: &str, count: usize, most: usize) -> Result<(), Problem> {
    let detail = || format!("{count} given: expected at most {most}");
    if count <= most { Ok(()) } else { Err(Problem::field(field, detail())) }
}

fn check_name(field: &str, name: &str) -> Result<(), Problem> {
    let fits = (1..=LONGEST_NAME).contains(&name.chars().count());
    if fits { Ok(()) } else { Err(Problem::field(field, format!("expected 1 to {LONGEST_NAME} characters"))) }
}

fn check_positive(field: &str, value: f64) -> Result<(), Problem> {
    let detail = || format!("{value}: expected a number above 0");
    if value.is_finite() && value > 0.0 { Ok(()) } else { Err(Problem::field(field, detail())) }
}

fn check_not_negative(field: &str, value: f64) -> Result<(), Problem> {
    let detail = || format!("{value}: expected a number from 0");
    if value.is_finite() && value >= 0.0 { Ok(()) } else { Err(Problem::field(field, detail())) }
}

fn check_share(field: &str, value: f64) -> Result<(), Problem> {
    let detail = || format!("{value}: expected a share from 0 to 1");
    if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(Problem::field(field, detail())) }
}
