//! Builders for vectors: a small cluster, and steps one after another.

use super::format::{
    Change, Cluster, DemandRecord, EntryRecord, FadeRecord, HopRecord, Ns, Op, OwnerRecord, SampleRecord,
    Settings, SignRecord, Step, SumRecord, Vector,
};

/// A megabit per second.
pub const MBPS: i64 = 1_000_000;
/// Two hosts of 1 Gb/s in one rack of 2 Gb/s.
pub const HOST_OUT: [u32; 2] = [0, 2];
pub const HOST_IN: [u32; 2] = [1, 3];
pub const UPLINK: u32 = 4;
pub const DOWNLINK: u32 = 5;

pub fn ms(milliseconds: u64) -> Ns {
    Ns(milliseconds * 1_000_000)
}

/// A vector that reads the downlink, with the default settings.
pub fn vector(name: &str, about: &str) -> Vector {
    Vector {
        name: name.into(),
        about: about.into(),
        tolerance_bps: 1.0,
        settings: Settings {
            interval_ns: ms(1000),
            alpha: 0.2,
            missing: "strict".into(),
            initial: "first".into(),
            grace_ns: ms(500),
            unknown_after: 3.0,
            hold_peak: false,
        },
        cluster: Cluster {
            capacities_bps: [vec![1000 * MBPS; 4], vec![2000 * MBPS; 2]].concat(),
            hosts: vec![[0, 1], [2, 3]],
            sums: vec![
                SumRecord { resource: UPLINK, of: HOST_OUT.into() },
                SumRecord { resource: DOWNLINK, of: HOST_IN.into() },
            ],
            promises: false,
        },
        read: vec![DOWNLINK],
        steps: Vec::new(),
    }
}

impl Vector {
    pub fn exact(mut self) -> Vector {
        self.tolerance_bps = 0.0;
        self
    }

    pub fn with(mut self, change: impl FnOnce(&mut Vector)) -> Vector {
        change(&mut self);
        self
    }

    fn step(mut self, at: u64, op: Op) -> Vector {
        self.steps.push(Step { at_ns: ms(at), op, expect: Vec::new() });
        self
    }

    pub fn report(self, at: u64, samples: &[SampleRecord]) -> Vector {
        self.step(at, Op::Report(samples.to_vec()))
    }

    /// Reports of the downlink over whole seconds from `first` to `last`, each at its end.
    pub fn seconds(self, first: u64, last: u64, load: impl Fn(u64) -> i64) -> Vector {
        (first..last).fold(self, |vector, second| {
            let (from, until) = (1000 * second, 1000 * (second + 1));
            vector.report(until, &[sample(DOWNLINK, from, until, load(second))])
        })
    }

    pub fn commit(self, at: u64, add: &[EntryRecord]) -> Vector {
        self.step(at, Op::Commit(Change { add: add.to_vec(), release: Vec::new() }))
    }

    pub fn release(self, at: u64, names: &[&str]) -> Vector {
        let release = names.iter().map(|&name| name.into()).collect();
        self.step(at, Op::Commit(Change { add: Vec::new(), release }))
    }

    pub fn mark_started(self, at: u64, entry: &str, start: u64) -> Vector {
        self.step(at, Op::Started { entry: entry.into(), start_ns: ms(start) })
    }

    pub fn set_capacity(self, at: u64, resource: u32, capacity_bps: i64) -> Vector {
        self.step(at, Op::Believe { resource, capacity_bps })
    }

    pub fn set_health(self, at: u64, host: u32, up: bool) -> Vector {
        self.step(at, Op::Health { host, up })
    }

    pub fn advance(self, at: u64) -> Vector {
        self.step(at, Op::Advance {})
    }

    pub fn view(self, at: u64, add: &[EntryRecord], without: &[OwnerRecord]) -> Vector {
        self.step(at, Op::View { add: add.to_vec(), without: without.to_vec() })
    }
}

pub fn sample(resource: u32, from: u64, until: u64, load_bps: i64) -> SampleRecord {
    SampleRecord { resource, from_ns: ms(from), until_ns: ms(until), load_bps, guaranteed_bps: None }
}

pub fn owner(kind: &str, id: u64) -> OwnerRecord {
    OwnerRecord { kind: kind.into(), id: id.to_string() }
}

/// Work on the downlink that fades with the estimator.
pub fn entry(name: &str, demand: DemandRecord) -> EntryRecord {
    EntryRecord {
        entry: name.into(),
        owner: owner("job", 1),
        hops: vec![HopRecord { resource: DOWNLINK, work: 8.0 }],
        demand,
        sign: SignRecord::Adds,
        fade: FadeRecord::WithEstimator,
        starts_ns: None,
    }
}

pub fn stream(name: &str, rate: i64) -> EntryRecord {
    entry(name, DemandRecord::Stream { mean_bps: rate as u64, peak_bps: rate as u64 })
}

pub fn block(name: &str, cap: Option<i64>) -> EntryRecord {
    let cap_bps = cap.map(|cap| cap as u64);
    entry(name, DemandRecord::Elastic { bytes: 256 << 20, flows: 1, cap_bps })
}

pub fn reservation(name: &str, mean: i64, rate: i64) -> EntryRecord {
    let (mean_bps, rate_bps) = (mean as u64, rate as u64);
    let demand = DemandRecord::Envelope { mean_bps, rate_bps, burst_bits: 1e6, priority: 0 };
    EntryRecord { owner: owner("volume", 1), ..entry(name, demand) }
}

impl EntryRecord {
    pub fn fade(self, fade: FadeRecord) -> EntryRecord {
        EntryRecord { fade, ..self }
    }

    pub fn relieves(self) -> EntryRecord {
        EntryRecord { sign: SignRecord::Relieves, ..self }
    }

    pub fn starts(self, at: u64) -> EntryRecord {
        EntryRecord { starts_ns: Some(ms(at)), ..self }
    }

    pub fn of(self, owner: OwnerRecord) -> EntryRecord {
        EntryRecord { owner, ..self }
    }

    pub fn on(self, resources: &[u32]) -> EntryRecord {
        let hops = resources.iter().map(|&resource| HopRecord { resource, work: 8.0 }).collect();
        EntryRecord { hops, ..self }
    }
}
