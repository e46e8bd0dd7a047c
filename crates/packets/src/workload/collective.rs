//! Collective communication of a training job: all-reduce along a ring or a tree, and all-to-all.
//!
//! A rank sends the data that it has just received, so each piece waits for the previous one. Rounds are consecutive: a
//! rank starts the next round when it has received all data of this one and has computed for some time.

use leeward_fabric::Nanos;

use super::{Flow, Piece, Place, Workload, WorkloadError};

/// Ranks, sizes and rounds of a collective.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Collective {
    /// Number of racks.
    pub racks: u32,
    /// Hosts per rack.
    pub hosts: u32,
    /// The ranks, in the order of the ring, or breadth first in the tree.
    pub ranks: Vec<Place>,
    /// Bytes that each rank reduces or exchanges.
    pub bytes: u64,
    /// Number of rounds.
    pub rounds: u32,
    /// Computing time of a rank before each round.
    pub compute: Nanos,
}

impl Collective {
    fn start(&self) -> Result<Workload, WorkloadError> {
        let ranks = self.ranks.len();
        if ranks < 2 {
            return Err(WorkloadError::setting("ranks", ranks, "at least 2"));
        }
        if self.bytes < ranks as u64 {
            return Err(WorkloadError::setting("bytes", self.bytes, "at least one for each rank"));
        }
        Ok(Workload::new(self.racks, self.hosts))
    }

    fn flow(&self, workload: &mut Workload, from: usize, to: usize) -> Result<u32, WorkloadError> {
        let [source, destination] = [from, to].map(|rank| self.ranks[rank]);
        workload.add_flow(Flow { source, destination, class: 0 })
    }

    /// Returns the bytes of a part. Sizes of parts differ by at most one and add up to all bytes.
    fn part(&self, part: usize, parts: usize) -> u64 {
        let end = |part: usize| (u128::from(self.bytes) * part as u128 / parts as u128) as u64;
        end(part + 1) - end(part)
    }

    /// Generates an all-reduce along a ring (Patarasuk and Yuan, 2009). Each rank sends 2 (n - 1) / n of the
    /// bytes, one part in each of 2 (n - 1) steps.
    ///
    /// # Errors
    /// Returns an error for fewer than two ranks, an unknown host, two consecutive ranks on one host, or fewer bytes
    /// than ranks.
    pub fn ring_all_reduce(&self) -> Result<Workload, WorkloadError> {
        let mut workload = self.start()?;
        let ranks = self.ranks.len();
        let flows: Vec<u32> = (0..ranks)
            .map(|rank| self.flow(&mut workload, rank, (rank + 1) % ranks))
            .collect::<Result<_, _>>()?;
        // By rank: the piece that it received in the previous step.
        let mut received: Vec<Option<u32>> = vec![None; ranks];
        for _ in 0..self.rounds {
            for step in 0..2 * (ranks - 1) {
                let mut now = vec![None; ranks];
                for (rank, &flow) in flows.iter().enumerate() {
                    // Parts travel around the ring: a rank sends the part that it received before. After n - 1 steps,
                    // rank r has all of part r + 1, which then travels around once more.
                    let part = (rank + 2 * ranks - step) % ranks;
                    let wait = if step == 0 { self.compute } else { Nanos(0) };
                    let piece = Piece { flow, bytes: self.part(part, ranks), wait };
                    now[(rank + 1) % ranks] = Some(workload.add_piece(piece, received[rank].as_slice())?);
                }
                received = now;
            }
        }
        Ok(workload)
    }

    /// Generates an all-reduce up and down a binary tree, in `parts` consecutive parts: (n - 1) times the
    /// bytes each way.
    ///
    /// # Errors
    /// Returns the errors of [`Collective::ring_all_reduce`], or an error for parts of less than a byte.
    pub fn tree_all_reduce(&self, parts: usize) -> Result<Workload, WorkloadError> {
        let mut workload = self.start()?;
        let ranks = self.ranks.len();
        if parts == 0 || self.bytes < parts as u64 {
            return Err(WorkloadError::setting("parts", parts, "above 0, and at most the number of bytes"));
        }
        let mut flows = vec![(0, 0)];
        for rank in 1..ranks {
            let parent = (rank - 1) / 2;
            flows.push((self.flow(&mut workload, rank, parent)?, self.flow(&mut workload, parent, rank)?));
        }
        // By rank: the last part of the previous round that reached the rank from above. A leaf waits for this part and
        // computes; the other ranks wait for parts from below.
        let mut begins: Vec<Option<u32>> = vec![None; ranks];
        for _ in 0..self.rounds {
            let mut ends = vec![None; ranks];
            for part in 0..parts {
                let bytes = self.part(part, parts);
                let mut up: Vec<Vec<u32>> = vec![Vec::new(); ranks];
                for rank in (1..ranks).rev() {
                    let piece = |wait| Piece { flow: flows[rank].0, bytes, wait };
                    let sent = match 2 * rank + 1 < ranks {
                        true => workload.add_piece(piece(Nanos(0)), &up[rank])?,
                        false => workload.add_piece(piece(self.compute), begins[rank].as_slice())?,
                    };
                    up[(rank - 1) / 2].push(sent);
                }
                let root = &up[0];
                for rank in 1..ranks {
                    let parent = (rank - 1) / 2;
                    let after = if parent == 0 { &root[..] } else { ends[parent].as_slice() };
                    let piece = Piece { flow: flows[rank].1, bytes, wait: Nanos(0) };
                    ends[rank] = Some(workload.add_piece(piece, after)?);
                }
            }
            begins = ends;
        }
        Ok(workload)
    }

    /// Generates an all-to-all exchange: each rank has a part for each rank, including itself, and sends the other n -
    /// 1 parts at once.
    ///
    /// # Errors
    /// Returns the errors of [`Collective::ring_all_reduce`].
    pub fn all_to_all(&self) -> Result<Workload, WorkloadError> {
        let mut workload = self.start()?;
        let ranks = self.ranks.len();
        let mut flows = vec![0; ranks * ranks];
        // The send order of a rank begins with the next rank, so that not all ranks send to the same one
        // first.
        let pairs =
            || (1..ranks).flat_map(move |ahead| (0..ranks).map(move |from| (from, (from + ahead) % ranks)));
        for (from, to) in pairs() {
            flows[from * ranks + to] = self.flow(&mut workload, from, to)?;
        }
        let mut received: Vec<Vec<u32>> = vec![Vec::new(); ranks];
        for _ in 0..self.rounds {
            let mut now = vec![Vec::with_capacity(ranks - 1); ranks];
            for (from, to) in pairs() {
                let piece =
                    Piece { flow: flows[from * ranks + to], bytes: self.part(to, ranks), wait: self.compute };
                now[to].push(workload.add_piece(piece, &received[from])?);
            }
            received = now;
        }
        Ok(workload)
    }
}
