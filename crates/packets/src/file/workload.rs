//! Workload of hosts in a scenario file.

use leeward_fabric::{Bandwidth, Bytes, Nanos};
use leeward_registry::PolicySpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::workload::collective::Collective;
use crate::workload::lists::{Transfer, listed, long};
use crate::workload::pipeline::Pipeline;
use crate::workload::rings::Rings;
use crate::workload::{Flow, Place, Workload, WorkloadError};

/// Largest number of pieces of a generated workload, so that a file cannot exhaust memory.
const MAX_PIECES: u64 = 20_000_000;

/// Workload of hosts: exactly one of these fields.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", try_from = "Listed")]
#[schemars(!try_from)]
pub enum WorkloadFile {
    /// Endless flows from one rack to another (Etalon, section 4).
    Long(LongFile),
    /// A list of flows.
    Flows(Vec<FlowFile>),
    /// Big flows along rings of racks and small ones between the others (Etalon, section 5.3).
    Rings(RingsFile),
    /// Files written as HDFS does, from mappers on all racks (Etalon, section 6).
    Dfsio(DfsioFile),
    /// Collective communication of model training.
    Collective(CollectiveFile),
}

/// All fields as a file may list them, so that an error can name two fields, or none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    long: Option<LongFile>,
    flows: Option<Vec<FlowFile>>,
    rings: Option<RingsFile>,
    dfsio: Option<DfsioFile>,
    collective: Option<CollectiveFile>,
}

impl TryFrom<Listed> for WorkloadFile {
    type Error = String;

    fn try_from(fields: Listed) -> Result<WorkloadFile, String> {
        let listed = [
            fields.long.map(WorkloadFile::Long),
            fields.flows.map(WorkloadFile::Flows),
            fields.rings.map(WorkloadFile::Rings),
            fields.dfsio.map(WorkloadFile::Dfsio),
            fields.collective.map(WorkloadFile::Collective),
        ];
        let mut listed = listed.into_iter().flatten();
        match (listed.next(), listed.next()) {
            (Some(first), None) => Ok(first),
            (Some(first), Some(second)) => {
                Err(format!("`{}` and `{}`: expected one of them", first.name(), second.name()))
            }
            (None, _) => Err("none: expected one of long, flows, rings, dfsio, collective".to_owned()),
        }
    }
}

/// Flows from one rack to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LongFile {
    /// Source rack, from 0.
    pub from: u32,
    /// Destination rack.
    pub to: u32,
    /// Number of flows, between hosts of the same number. Default 16.
    #[serde(default = "sixteen")]
    pub flows: u32,
    /// Bytes of each flow. Default 1TiB, which no run completes.
    #[serde(default = "endless")]
    pub bytes: Bytes,
}

fn sixteen() -> u32 {
    16
}

fn endless() -> Bytes {
    Bytes(1 << 40)
}

/// One flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowFile {
    /// Source host as `[rack, host]`, both from 0.
    pub from: [u32; 2],
    /// Destination host as `[rack, host]`.
    pub to: [u32; 2],
    /// Start time. Default 0s.
    #[serde(default)]
    pub start: Nanos,
    /// Size in bytes.
    pub bytes: Bytes,
    /// Class number that separates kinds of flows in results. Default 0.
    #[serde(default)]
    pub class: u32,
}

/// Big flows along rings and small ones between the others; defaults are the paper's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RingsFile {
    /// Number of rings: the first leads from each rack i to rack i + 1, the second to rack i + 2, and so on. Default 1.
    pub rings: u32,
    /// Total rate of big flows that a rack offers. Default a third of 80Gbps.
    pub big_rate: Bandwidth,
    /// Total rate of small flows that a rack offers. Default a third of 10Gbps.
    pub small_rate: Bandwidth,
    /// Smallest and largest size of a big flow in bytes; sizes are uniform between them. Default 9MB to 90MB.
    pub big_bytes: [Bytes; 2],
    /// Smallest and largest size of a small flow in bytes. Default 90kB to 900kB.
    pub small_bytes: [Bytes; 2],
    /// If true, small flows also go inside racks, as in the authors' generator. Default true.
    pub own_rack: bool,
    /// Bytes of the answer to each flow, sent as a flow of class 2 (for small ones) or 3. Default 0B: no
    /// answers.
    pub answer: Bytes,
    /// Time after which no flow starts. Default: the horizon.
    pub until: Option<Nanos>,
}

impl Default for RingsFile {
    fn default() -> RingsFile {
        let paper = Rings::paper(1, 0);
        let ends = |range: &std::ops::RangeInclusive<u64>| [Bytes(*range.start()), Bytes(*range.end())];
        RingsFile {
            rings: paper.rings,
            big_rate: paper.big_rate,
            small_rate: paper.small_rate,
            big_bytes: ends(&paper.big_bytes),
            small_bytes: ends(&paper.small_bytes),
            own_rack: paper.own_rack,
            answer: Bytes(paper.answer),
            until: None,
        }
    }
}

/// Files written as HDFS does; defaults are the paper's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DfsioFile {
    /// Number of mappers. Each writes a file. Mappers are on racks in turn, and on the hosts of a rack in turn. Default
    /// 64.
    pub mappers: u32,
    /// Bytes of each file. Default 400MiB.
    pub bytes: Bytes,
    /// Copies of each block, the first on the writer. Default 2.
    pub replication: u8,
    /// Replica policy that places the other copies; the simulator calls it when a block begins. Default uniform, which
    /// is HDFS's own.
    pub copies: PolicySpec,
    /// Interval between reports of racks' link loads to the policy. Default 100ms.
    pub report: Nanos,
    /// Bytes of a block. Default 128MiB.
    pub block: Bytes,
    /// Bytes of a packet. Default 64KiB.
    pub packet: Bytes,
    /// Largest number of packets without an answer. Default 80.
    pub window: u32,
}

impl Default for DfsioFile {
    fn default() -> DfsioFile {
        let pipeline = Pipeline::default();
        DfsioFile {
            mappers: 64,
            bytes: Bytes(400 << 20),
            replication: 2,
            copies: PolicySpec::named("uniform"),
            report: Nanos(100_000_000),
            block: Bytes(pipeline.block),
            packet: Bytes(pipeline.packet),
            window: pipeline.window,
        }
    }
}

/// Collective communication of model training.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectiveFile {
    /// Kind of the collective.
    pub kind: CollectiveKind,
    /// Bytes that each rank reduces or exchanges.
    pub bytes: Bytes,
    /// Ranks per rack, on its first hosts. Default 1.
    #[serde(default = "single")]
    pub ranks_per_rack: u32,
    /// Number of rounds. Default 1.
    #[serde(default = "single")]
    pub rounds: u32,
    /// Computing time of a rank before each round. Default 0s.
    #[serde(default)]
    pub compute: Nanos,
    /// For `tree`: number of parts sent one after another. Default 8.
    #[serde(default = "eight")]
    pub parts: usize,
}

fn single() -> u32 {
    1
}

fn eight() -> usize {
    8
}

/// Kinds of collectives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CollectiveKind {
    /// All-reduce along a ring, rack after rack.
    Ring,
    /// All-reduce up and down a binary tree.
    Tree,
    /// All-to-all exchange.
    AllToAll,
}

impl WorkloadFile {
    /// Name of the workload in the file.
    pub fn name(&self) -> &'static str {
        match self {
            WorkloadFile::Long(_) => "long",
            WorkloadFile::Flows(_) => "flows",
            WorkloadFile::Rings(_) => "rings",
            WorkloadFile::Dfsio(_) => "dfsio",
            WorkloadFile::Collective(_) => "collective",
        }
    }

    /// Generates the workload between `hosts` hosts in each of `racks` racks until `end`.
    ///
    /// # Errors
    /// Returns the first field that is out of its range.
    pub fn workload(&self, racks: u32, hosts: u32, end: Nanos, seed: u64) -> Result<Workload, WorkloadError> {
        match self {
            WorkloadFile::Long(file) => {
                check_pieces("flows", file.flows.into())?;
                require_positive("flows", file.flows)?;
                long(racks, hosts, [file.from, file.to], file.flows, file.bytes.0)
            }
            WorkloadFile::Flows(file) => {
                require_positive("flows", file.len())?;
                let transfers: Vec<Transfer> = file.iter().map(FlowFile::transfer).collect();
                listed(racks, hosts, &transfers)
            }
            WorkloadFile::Rings(file) => file.workload(racks, hosts, end, seed),
            WorkloadFile::Dfsio(file) => file.workload(racks, hosts),
            WorkloadFile::Collective(file) => file.workload(racks, hosts),
        }
    }
}

/// Rejects 0.
fn require_positive<T: PartialEq + From<u8> + ToString>(
    name: &'static str,
    value: T,
) -> Result<(), WorkloadError> {
    if value == T::from(0) { Err(WorkloadError::setting(name, value, "above 0")) } else { Ok(()) }
}

/// Rejects workloads that may not fit in memory.
fn check_pieces(name: &'static str, pieces: u64) -> Result<(), WorkloadError> {
    if pieces <= MAX_PIECES {
        return Ok(());
    }
    let value = format!("{pieces} pieces in all");
    Err(WorkloadError::setting(name, value, "at most 20 million"))
}

impl FlowFile {
    fn transfer(&self) -> Transfer {
        let place = |[rack, host]: [u32; 2]| Place { rack, host };
        let flow = Flow { source: place(self.from), destination: place(self.to), class: self.class };
        Transfer { flow, start: self.start, bytes: self.bytes.0 }
    }
}

impl RingsFile {
    fn workload(&self, racks: u32, hosts: u32, end: Nanos, seed: u64) -> Result<Workload, WorkloadError> {
        let range = |[least, most]: [Bytes; 2]| least.0..=most.0;
        let end = self.until.unwrap_or(end);
        require_positive("until", end.0)?;
        for (name, rate, least) in [
            ("big_rate", self.big_rate, self.big_bytes[0]),
            ("small_rate", self.small_rate, self.small_bytes[0]),
        ] {
            let offered = rate.bytes_per_second() * end.as_secs_f64() * f64::from(racks);
            check_pieces(name, (offered / least.0.max(1) as f64) as u64)?;
        }
        let rings = Rings {
            racks,
            hosts,
            rings: self.rings,
            big_rate: self.big_rate,
            small_rate: self.small_rate,
            big_bytes: range(self.big_bytes),
            small_bytes: range(self.small_bytes),
            own_rack: self.own_rack,
            answer: self.answer.0,
            end,
            seed,
        };
        rings.workload()
    }
}

impl DfsioFile {
    /// The initial chain is the hosts after the writer; when a block begins, the policy replaces them.
    fn workload(&self, racks: u32, hosts: u32) -> Result<Workload, WorkloadError> {
        require_positive("mappers", self.mappers)?;
        require_positive("bytes", self.bytes.0)?;
        require_positive("packet", self.packet.0)?;
        require_positive("report", self.report.0)?;
        let all = u64::from(racks) * u64::from(hosts);
        if self.replication < 2 || u64::from(self.replication) > all {
            return Err(WorkloadError::setting(
                "replication",
                self.replication,
                "from 2 to the number of hosts",
            ));
        }
        if racks < 2 {
            return Err(WorkloadError::setting("mappers", self.mappers, "on at least two racks"));
        }
        let packets = self.bytes.0.div_ceil(self.packet.0);
        let hops = 2 * u64::from(self.replication - 1);
        check_pieces("bytes", packets.saturating_mul(hops).saturating_mul(self.mappers.into()))?;
        let pipeline = Pipeline {
            block: self.block.0,
            packet: self.packet.0,
            window: self.window,
            ..Pipeline::default()
        };
        let mut workload = Workload::new(racks, hosts);
        for mapper in 0..self.mappers {
            let writer = Place { rack: mapper % racks, host: mapper / racks % hosts };
            let after = |copy: u8| {
                let at = u64::from(writer.rack) * u64::from(hosts) + u64::from(writer.host) + u64::from(copy);
                Place { rack: (at / u64::from(hosts)) as u32 % racks, host: (at % u64::from(hosts)) as u32 }
            };
            let copies = |_block| (0..self.replication).map(after).collect();
            pipeline.write(&mut workload, writer, Nanos(0), self.bytes.0, copies)?;
        }
        Ok(workload)
    }
}

impl CollectiveFile {
    fn workload(&self, racks: u32, hosts: u32) -> Result<Workload, WorkloadError> {
        require_positive("rounds", self.rounds)?;
        if self.ranks_per_rack == 0 || self.ranks_per_rack > hosts {
            let expected = "above 0, and at most the number of hosts in a rack";
            return Err(WorkloadError::setting("ranks_per_rack", self.ranks_per_rack, expected));
        }
        let all = u64::from(racks) * u64::from(self.ranks_per_rack);
        let each = match self.kind {
            CollectiveKind::Tree => (2 * all).saturating_mul(self.parts as u64),
            // Each message waits for one message of every rank, so the limit counts pieces times ranks.
            CollectiveKind::AllToAll => all * all * all,
            CollectiveKind::Ring => 2 * all * all,
        };
        check_pieces("rounds", each.saturating_mul(self.rounds.into()))?;
        let ranks =
            (0..racks).flat_map(|rack| (0..self.ranks_per_rack).map(move |host| Place { rack, host }));
        let collective = Collective {
            racks,
            hosts,
            ranks: ranks.collect(),
            bytes: self.bytes.0,
            rounds: self.rounds,
            compute: self.compute,
        };
        match self.kind {
            CollectiveKind::Ring => collective.ring_all_reduce(),
            CollectiveKind::Tree => collective.tree_all_reduce(self.parts),
            CollectiveKind::AllToAll => collective.all_to_all(),
        }
    }
}
