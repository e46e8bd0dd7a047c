//! Uplinks that lose half of their capacity without an announcement: the first incident of Hotspots section 3.4, on the
//! scenario of the examples.

use std::path::Path;

use leeward_scenarios::record::Record;
use leeward_scenarios::scenario::Scenario;

use crate::support::runs::runs;

const POLICIES: [&str; 3] = ["borg", "utp", "utp:learn_capacity=true"];
const DAY: f64 = 86_400.0;
/// Racks whose uplinks are halved for the second day.
const HALVED: u32 = 8;

fn scenario(seed: u64, is_whole: bool) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/incidents");
    let text = std::fs::read_to_string(folder.join("halved-uplinks.yaml")).expect("the example is there");
    let end = if is_whole { text.find("events:") } else { None };
    let text = format!("{}\nseed: {seed}\n", &text[..end.unwrap_or(text.len())]);
    Scenario::from_text("halved-uplinks.yaml", &text, &folder, None).expect("a valid scenario")
}

/// Time of the tolerant tasks that ran on the halved racks on the second day, relative to their undisturbed time.
fn stretch(scenario: &Scenario, record: &Record) -> f64 {
    let is_on = |task: &leeward_scenarios::record::Task| {
        task.host.is_some_and(|host| scenario.cluster.fabric.rack_of(host).0 < HALVED)
    };
    let tasks = record.tasks.iter().filter(|task| task.tolerant && is_on(task));
    let times: Vec<f64> = tasks
        .filter_map(|task| {
            let (placed, finished) = task.placed.zip(task.finished)?;
            (DAY..2.0 * DAY).contains(&placed).then_some((finished - placed) / task.duration)
        })
        .collect();
    times.iter().sum::<f64>() / times.len() as f64
}

#[test]
fn utp_that_learns_lost_capacity_is_no_worse_than_the_scheduler_without_loads() {
    let mut slower = [[0.0; 3]; 3];
    for (seed, slower) in (1..).zip(&mut slower) {
        let (halved, whole) = (scenario(seed, false), scenario(seed, true));
        let (with, without) = (runs(&halved, &POLICIES, 2), runs(&whole, &POLICIES, 2));
        for (at, (with, without)) in with.iter().zip(&without).enumerate() {
            slower[at] = stretch(&halved, &with.record) / stretch(&whole, &without.record);
        }
    }
    let mean = |at: usize| slower.iter().map(|seed| seed[at]).sum::<f64>() / slower.len() as f64;
    let [borg, utp, learns] = [0, 1, 2].map(mean);
    println!("borg {borg:.3}, utp {utp:.3}, utp that learns {learns:.3}: {slower:.3?}");
    assert!(utp > borg, "the incident harms utp: {slower:?}");
    assert!(learns <= borg, "{slower:?}");
}
