//! View of a running lab: its circuits, queues and counters.

use std::fs::File;
use std::io::Read;

use leeward_fabric::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::{Address, LabName};
use crate::state::{State, VIEW, folder_of};

/// Largest file of a view. A view of the largest lab, with the largest numbers, has less.
const LARGEST: u64 = 4 << 20;

/// State of a lab at a moment. Counts are of all its time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Live {
    /// Virtual time since the begin, in seconds.
    pub at_s: f64,
    /// Real seconds for each virtual one.
    #[schemars(range(min = 1))]
    pub dilation: u32,
    /// Number of racks.
    #[schemars(range(min = 1, max = Address::MOST))]
    pub racks: usize,
    /// Circuits that are up: source and destination rack.
    #[schemars(with = "Vec<[usize; 2]>")]
    pub circuits: Vec<(usize, usize)>,
    /// Packets in the queue of each pair of racks, by source and then destination.
    pub queued_packets: Vec<u32>,
    /// Capacity of these queues, in packets.
    pub capacity_packets: Vec<u32>,
    /// Bytes that each rack has sent to others by packets.
    pub packet_bytes: Vec<u64>,
    /// Bytes that each rack has sent to others by circuits.
    pub circuit_bytes: Vec<u64>,
    /// Packets that the switch has dropped.
    pub dropped_packets: u64,
    /// Packets that were lost outside the switch.
    pub lost_packets: u64,
    /// Bytes that programs have written and the switch has not seen, by source and then destination; empty if no
    /// schedule needs them.
    pub demand_bytes: Vec<u64>,
    /// Lateness of 99 % of the packets since the view before, in virtual seconds; `None` without packets.
    pub late_p99_s: Option<f64>,
}

/// A lab that stands, with its latest view.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct StandingLab {
    /// Name of the lab.
    pub name: String,
    /// Its latest view.
    #[serde(flatten)]
    pub view: Live,
}

impl StandingLab {
    /// All labs with circuits that stand on this machine, by name. A lab is left out before its first view, and if its
    /// files cannot be read or contradict themselves.
    pub fn all() -> Vec<StandingLab> {
        let lab = |name: LabName| {
            let state = State::read(&name).ok()??;
            let path = folder_of(&name).join(VIEW);
            let view = (state.stands() && state.is_up()).then(|| read(File::open(path).ok()?))??;
            Some(StandingLab { name: name.to_string(), view })
        };
        State::all().into_iter().filter_map(lab).collect()
    }
}

/// Reads a view; `None` for one that is too large, or is invalid.
fn read(file: impl Read) -> Option<Live> {
    let mut text = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut text).ok()?;
    let view: Live = (text.len() as u64 <= LARGEST).then(|| serde_json::from_slice(&text).ok())??;
    view.is_consistent().then_some(view)
}

impl Live {
    /// Returns true if times are not negative, and all lists fit the number of racks.
    fn is_consistent(&self) -> bool {
        let (racks, pairs) = (self.racks, self.racks.saturating_mul(self.racks));
        (1..=Address::MOST).contains(&racks)
            && self.dilation >= 1
            && self.at_s >= 0.0
            && self.late_p99_s.is_none_or(|late| late >= 0.0)
            && self.circuits.len() <= pairs
            && self.circuits.iter().all(|&(from, to)| from < racks && to < racks)
            && [self.queued_packets.len(), self.capacity_packets.len()] == [pairs; 2]
            && [self.packet_bytes.len(), self.circuit_bytes.len()] == [racks; 2]
            && (self.demand_bytes.is_empty() || self.demand_bytes.len() == pairs)
    }
}

/// Seconds of an optional time.
pub(crate) fn seconds(time: Option<Nanos>) -> Option<f64> {
    time.map(Nanos::as_secs_f64)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::*;
    use crate::part::Part;
    use crate::process::Process;

    fn view() -> Value {
        json!({
            "at_s": 1.5, "dilation": 240, "racks": 2, "circuits": [[0, 1]],
            "queued_packets": [0, 3, 0, 0], "capacity_packets": [0, 16, 16, 0],
            "packet_bytes": [1500, 0], "circuit_bytes": [9000, 0], "dropped_packets": 0,
            "lost_packets": 0, "demand_bytes": [], "late_p99_s": null,
        })
    }

    #[test]
    fn a_view_is_read_as_it_was_written() {
        let text = view().to_string();
        let live = read(text.as_bytes()).expect("a view");
        assert_eq!(serde_json::to_value(&live).expect("JSON"), view());
        let racks = Address::MOST;
        let largest = Live {
            at_s: f64::MAX,
            dilation: u32::MAX,
            racks,
            circuits: (0..racks * racks).map(|pair| (pair / racks, pair % racks)).collect(),
            queued_packets: vec![u32::MAX; racks * racks],
            capacity_packets: vec![u32::MAX; racks * racks],
            packet_bytes: vec![u64::MAX; racks],
            circuit_bytes: vec![u64::MAX; racks],
            dropped_packets: u64::MAX,
            lost_packets: u64::MAX,
            demand_bytes: vec![u64::MAX; racks * racks],
            late_p99_s: Some(f64::MAX),
        };
        assert_eq!(read(&serde_json::to_vec(&largest).expect("JSON")[..]), Some(largest));
    }

    #[test]
    fn a_view_that_contradicts_itself_is_left_out() {
        let rows = [
            ("racks", json!(0)),
            ("racks", json!(3)),
            ("racks", json!(u64::MAX)),
            ("racks", json!(-2)),
            ("dilation", json!(0)),
            ("at_s", json!(-1.0)),
            ("at_s", json!(null)),
            ("late_p99_s", json!(-1.0)),
            ("circuits", json!([[0, 2]])),
            ("circuits", json!([[0, 1], [0, 1], [0, 1], [0, 1], [0, 1]])),
            ("circuits", json!([[0]])),
            ("queued_packets", json!([0, 0, 0])),
            ("capacity_packets", json!([0, 0, 0, 0, 0])),
            ("packet_bytes", json!([1])),
            ("circuit_bytes", json!([])),
            ("demand_bytes", json!([1, 2, 3])),
        ];
        for (field, value) in rows {
            let mut view = view();
            view[field] = value;
            assert_eq!(read(view.to_string().as_bytes()), None, "{field}: {}", view[field]);
        }
        let mut text = view().to_string().into_bytes();
        assert_eq!(read(&text[..text.len() - 1]), None);
        text.resize(LARGEST as usize, b' ');
        assert!(read(&text[..]).is_some());
        text.push(b' ');
        assert_eq!(read(&text[..]), None, "the file is too large");
    }

    #[test]
    fn labs_are_listed_while_they_stand_and_have_a_view() {
        let root = if rustix::process::geteuid().is_root() { Ok(()) } else { Err("root is needed") };
        if leeward_testing::require("labs", root).is_none() {
            return;
        }
        let name: LabName = format!("test-view-{}", std::process::id()).parse().expect("a valid name");
        let listed = || StandingLab::all().into_iter().find(|lab| lab.name == name.as_str());
        let folder = folder_of(&name);
        let path = folder.join(VIEW);
        let parts = vec![Part::Folder(folder), Part::File(path.clone())];
        let mut state = State::begin(&name, parts, Vec::new()).expect("a new name");
        state.write_files("").expect("a folder");
        assert_eq!(listed(), None, "there is no view yet");
        // Remarks are for programs of this machine only.
        let mut with_remarks = view();
        with_remarks["remarks"] = json!(["mended"]);
        fs::write(&path, with_remarks.to_string()).expect("root may write");
        assert_eq!(listed().map(|lab| lab.view.dilation), Some(240));
        fs::write(&path, "{").expect("root may write");
        assert_eq!(listed(), None, "the view is broken");
        fs::write(&path, view().to_string()).expect("root may write");
        state.owner = Some(Process { started: 1, ..Process::this() });
        state.write().expect("root may write");
        assert_eq!(listed(), None, "its process has ended");
        state.remove().expect("it is ours");
        assert_eq!(listed(), None);
    }
}
