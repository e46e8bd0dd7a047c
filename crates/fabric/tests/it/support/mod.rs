//! Random clusters: plans, and their cluster files.

use std::fmt::Write;

use leeward_fabric::Cluster;
use proptest::prelude::*;

/// A cluster as a test describes it: names and rates, no ids.
#[derive(Clone, Debug)]
pub struct Plan {
    pub shape: &'static str,
    /// Mb/s out of and into each host.
    pub nic: (u32, u32),
    pub racks: Vec<RackPlan>,
    /// Racks in each pod; empty without pods. Only on a tree.
    pub pods: Vec<usize>,
    pub pod_ratio: u32,
}

#[derive(Clone, Debug)]
pub struct RackPlan {
    pub name: String,
    pub ratio: u32,
    pub hosts: Vec<HostPlan>,
}

#[derive(Clone, Debug)]
pub struct HostPlan {
    pub name: String,
    pub nic: Option<(u32, u32)>,
    pub devices: usize,
}

impl Plan {
    /// All hosts, each with its rack and pod.
    pub fn hosts(&self) -> Vec<(&HostPlan, &RackPlan, Option<usize>)> {
        let racks = self.racks.iter().enumerate();
        racks.flat_map(|(r, rack)| rack.hosts.iter().map(move |h| (h, rack, self.pod_of(r)))).collect()
    }

    /// Number of a rack's pod.
    pub fn pod_of(&self, rack: usize) -> Option<usize> {
        let ends = self.pods.iter().scan(0, |end, racks| {
            *end += racks;
            Some(*end)
        });
        (!self.pods.is_empty()).then(|| ends.take_while(|&end| end <= rack).count())
    }

    pub fn pod_name(pod: usize) -> String {
        format!("pod-{pod}")
    }

    pub fn host_nic(&self, host: &HostPlan) -> (u32, u32) {
        host.nic.unwrap_or(self.nic)
    }

    /// The cluster file of this plan.
    pub fn file(&self) -> String {
        let mut text = format!("name: random\nshape: {}\n", self.shape);
        let has_nics = self.shape != "pipe";
        if has_nics {
            let _ = writeln!(text, "nic: {{up: {}Mbps, down: {}Mbps}}", self.nic.0, self.nic.1);
        } else {
            text += "pair: 1Gbps\n";
        }
        if !self.pods.is_empty() {
            let _ = writeln!(text, "pod_oversubscription: {}\npods:", self.pod_ratio);
            for pod in 0..self.pods.len() {
                let _ = writeln!(text, "  - name: {}", Plan::pod_name(pod));
            }
        }
        text += "racks:\n";
        for (r, rack) in self.file_order() {
            let _ = writeln!(text, "  - name: {}", rack.name);
            if self.shape == "tree" {
                let _ = writeln!(text, "    oversubscription: {}", rack.ratio);
            }
            if let Some(pod) = self.pod_of(r) {
                let _ = writeln!(text, "    pod: {}", Plan::pod_name(pod));
            }
            text += "    hosts:\n";
            for host in &rack.hosts {
                let _ = write!(text, "      - {{name: {}, devices: [", host.name);
                text += &vec!["{read: 50MB/s, write: 25MB/s}"; host.devices].join(", ");
                text += "]";
                if let (Some((up, down)), true) = (host.nic, has_nics) {
                    let _ = write!(text, ", nic: {{up: {up}Mbps, down: {down}Mbps}}");
                }
                text += "}\n";
            }
        }
        text
    }

    /// Racks in the order of the file. Pods take turns, so that this order differs from the order of ids.
    fn file_order(&self) -> Vec<(usize, &RackPlan)> {
        let mut order: Vec<_> = self.racks.iter().enumerate().collect();
        let turn = |rack| (0..rack).filter(|&before| self.pod_of(before) == self.pod_of(rack)).count();
        order.sort_by_key(|&(rack, _)| turn(rack));
        order
    }

    pub fn load(&self) -> Cluster {
        Cluster::from_text("random.yaml", &self.file())
            .unwrap_or_else(|error| panic!("{error}\n{}", self.file()))
    }
}

fn nic() -> impl Strategy<Value = (u32, u32)> {
    (1u32..100_000, 1u32..100_000)
}

/// Trees with and without pods, and meshes of both kinds. Each has up to 30 hosts with up to 3 devices per host.
pub fn plans() -> impl Strategy<Value = Plan> {
    let host = (proptest::option::of(nic()), 0usize..4);
    let rack = (1u32..9, proptest::collection::vec(host, 1..6));
    (
        prop_oneof![3 => Just("tree"), 1 => Just("pipe"), 1 => Just("hose")],
        nic(),
        proptest::collection::vec(rack, 1..7),
        proptest::option::of(1usize..4),
        1u32..5,
    )
        .prop_map(|(shape, nic, racks, racks_per_pod, pod_ratio)| {
            let racks: Vec<RackPlan> = (racks.into_iter().enumerate())
                .map(|(r, (ratio, hosts))| RackPlan {
                    // Names in another order than the ids.
                    name: format!("rack-{}", 90 - r),
                    ratio,
                    hosts: (hosts.into_iter().enumerate())
                        .map(|(h, (nic, devices))| HostPlan { name: format!("{}.{r}", 9 - h), nic, devices })
                        .collect(),
                })
                .collect();
            let pods = match racks_per_pod {
                Some(size) if shape == "tree" => racks.chunks(size).map(<[RackPlan]>::len).collect(),
                _ => Vec::new(),
            };
            Plan { shape, nic, racks, pods, pod_ratio }
        })
}
