//! Numbers of cells, pods, racks and hosts, and the links that a write crosses.
//!
//! All cells are alike, and so are all pods of a cell and all racks of a pod. So the pod of a rack and the links of a
//! path are found by arithmetic, and the whole network needs no fabric in memory.

use leeward_fabric::HostId;

/// Direction of a link of a rack or pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Towards the core.
    Up,
    /// From the core.
    Down,
}

/// Shape of a network of cells. Hosts, racks and pods have numbers in the whole network, cell by cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Number of cells.
    pub cells: u32,
    /// Number of pods of a cell.
    pub pods: u32,
    /// Number of racks of a pod.
    pub racks: u32,
    /// Number of hosts of a rack.
    pub hosts: u32,
}

impl Geometry {
    /// Number of racks of a cell.
    pub fn racks_of_cell(&self) -> u32 {
        self.pods * self.racks
    }

    /// Number of hosts of a cell.
    pub fn hosts_of_cell(&self) -> u32 {
        self.racks_of_cell() * self.hosts
    }

    /// Number of racks of all cells.
    pub fn all_racks(&self) -> u32 {
        self.cells * self.racks_of_cell()
    }

    /// Number of pods of all cells.
    pub fn all_pods(&self) -> u32 {
        self.cells * self.pods
    }

    /// Number of hosts of all cells.
    pub fn all_hosts(&self) -> u32 {
        self.cells * self.hosts_of_cell()
    }

    /// The cell of a host.
    pub fn cell_of(&self, host: HostId) -> u32 {
        host.0 / self.hosts_of_cell()
    }

    /// The rack of a host.
    pub fn rack_of(&self, host: HostId) -> u32 {
        host.0 / self.hosts
    }

    /// The pod of a rack.
    pub fn pod_of(&self, rack: u32) -> u32 {
        rack / self.racks
    }

    /// The cell of a pod.
    pub fn cell_of_pod(&self, pod: u32) -> u32 {
        pod / self.pods
    }

    /// Number of links of racks and pods. Those of racks come first.
    pub fn links(&self) -> usize {
        2 * (self.all_racks() as usize + self.all_pods() as usize)
    }

    /// Number of links of racks.
    pub fn rack_links(&self) -> usize {
        2 * self.all_racks() as usize
    }

    /// The link of a rack.
    pub fn rack_link(&self, rack: u32, direction: Direction) -> usize {
        2 * rack as usize + direction as usize
    }

    /// The link of a pod.
    pub fn pod_link(&self, pod: u32, direction: Direction) -> usize {
        self.rack_links() + 2 * pod as usize + direction as usize
    }

    /// Appends the links of racks and pods that a chain of copies crosses: from the first host to the second, from
    /// there to the third, and so on. A link that the chain crosses twice appears twice.
    pub fn path(&self, chain: &[HostId], out: &mut Vec<usize>) {
        for leg in chain.windows(2) {
            let [from, to] = [leg[0], leg[1]].map(|host| self.rack_of(host));
            if from == to {
                continue;
            }
            out.push(self.rack_link(from, Direction::Up));
            let pods = [from, to].map(|rack| self.pod_of(rack));
            if pods[0] != pods[1] {
                out.push(self.pod_link(pods[0], Direction::Up));
                out.push(self.pod_link(pods[1], Direction::Down));
            }
            out.push(self.rack_link(to, Direction::Down));
        }
    }
}
