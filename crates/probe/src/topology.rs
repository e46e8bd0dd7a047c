//! Topology of hosts, inferred from hop counts (Choreo, section 3.3.1).
//!
//! In a multi-rooted tree, paths have one hop (same machine), two (same rack), four (same aggregation switch), six or
//! eight (across the core). Any other count means that the network hides hops or is not such a tree.

use serde::{Deserialize, Serialize};

/// Maximum number of hops within a rack.
const RACK: u8 = 2;
/// Maximum number of hops under an aggregation switch.
const SUBTREE: u8 = 4;
/// Valid hop counts of a multi-rooted tree.
pub const LENGTHS: [u8; 5] = [1, 2, 4, 6, 8];

/// A pair of hosts that does not fit a tree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Misfit {
    /// Hosts: from, to.
    pub pair: (usize, usize),
    /// Number of hops; `None` without a reply.
    pub hops: Option<u8>,
    /// Description of the contradiction.
    pub why: String,
}

/// Hosts fitted to a tree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Topology {
    /// Hosts of each rack, in order.
    pub racks: Vec<Vec<usize>>,
    /// Hosts under each aggregation switch, in order.
    pub subtrees: Vec<Vec<usize>>,
    /// Pairs that do not fit.
    pub misfits: Vec<Misfit>,
}

/// Fits hosts to a tree. `hops[i][j]` is the hop count from host i to host j, `None` without a reply; the diagonal is
/// ignored. Hosts connected by a chain of pairs within a rack form one rack. Subtrees are formed in the same way.
pub fn fit(hops: &[Vec<Option<u8>>]) -> Topology {
    let count = hops.len();
    let hops_to = |i: usize, j: usize| hops[i].get(j).copied().flatten();
    let mut misfits = Vec::new();
    let mut misfit = |pair: (usize, usize), hops: Option<u8>, why: String| {
        misfits.push(Misfit { pair, hops, why });
    };
    for i in 0..count {
        for j in (0..count).filter(|&j| j != i) {
            match (hops_to(i, j), hops_to(j, i)) {
                (None, _) => misfit((i, j), None, "no reply".to_owned()),
                (Some(hops), _) if !LENGTHS.contains(&hops) => {
                    let why =
                        "paths of a tree have 1, 2, 4, 6 or 8 hops: the network hides hops or is not a tree";
                    misfit((i, j), Some(hops), why.to_owned());
                }
                (Some(there), Some(back)) if i < j && there != back => {
                    misfit((i, j), Some(there), format!("{back} hops in the other direction"));
                }
                _ => {}
            }
        }
    }
    // The longer direction counts: a network may hide hops but never adds any.
    let apart = |i: usize, j: usize| hops_to(i, j).max(hops_to(j, i));
    let racks = clusters(count, |i, j| apart(i, j).is_some_and(|hops| hops <= RACK));
    let subtrees = clusters(count, |i, j| apart(i, j).is_some_and(|hops| hops <= SUBTREE));
    for (groups, most, what) in [(&racks, RACK, "rack"), (&subtrees, SUBTREE, "subtree")] {
        for group in groups {
            for (index, &i) in group.iter().enumerate() {
                for &j in &group[index + 1..] {
                    if let Some(hops) = apart(i, j).filter(|&hops| hops > most) {
                        let why =
                            format!("other pairs place both in one {what}, which has at most {most} hops");
                        misfit((i, j), Some(hops), why);
                    }
                }
            }
        }
    }
    Topology { racks, subtrees, misfits }
}

/// Connected groups, each in order, sorted by their first member.
fn clusters(count: usize, joined: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut group: Vec<Option<usize>> = vec![None; count];
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for first in 0..count {
        if group[first].is_some() {
            continue;
        }
        let (number, mut reached, mut next) = (groups.len(), vec![first], 0);
        group[first] = Some(number);
        while let Some(&from) = reached.get(next) {
            let new = (0..count).filter(|&to| group[to].is_none() && joined(from, to)).collect::<Vec<_>>();
            for &to in &new {
                group[to] = Some(number);
            }
            reached.extend(new);
            next += 1;
        }
        reached.sort_unstable();
        groups.push(reached);
    }
    groups
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The group of each host.
    fn group_of(groups: &[Vec<usize>]) -> Vec<usize> {
        let mut group_by_host = vec![0; groups.iter().map(Vec::len).sum()];
        for (group, hosts) in groups.iter().enumerate() {
            for &host in hosts {
                group_by_host[host] = group;
            }
        }
        group_by_host
    }

    /// Hops between hosts at known (subtree, rack, machine).
    fn tree(places: &[(u8, u8, u8)], core: u8) -> Vec<Vec<Option<u8>>> {
        let hops = |a: &(u8, u8, u8), b: &(u8, u8, u8)| match () {
            () if a == b => 1,
            () if (a.0, a.1) == (b.0, b.1) => 2,
            () if a.0 == b.0 => 4,
            () => core,
        };
        places.iter().map(|a| places.iter().map(|b| Some(hops(a, b))).collect()).collect()
    }

    proptest! {
        #[test]
        fn trees_are_recognised(
            places in prop::collection::vec((0..3_u8, 0..3_u8, 0..3_u8), 1..20), core in prop::sample::select(vec![6, 8]),
        ) {
            let found = fit(&tree(&places, core));
            prop_assert_eq!(&found.misfits, &[]);
            let (racks, subtrees) = (group_of(&found.racks), group_of(&found.subtrees));
            for (i, a) in places.iter().enumerate() {
                for (j, b) in places.iter().enumerate() {
                    prop_assert_eq!(racks[i] == racks[j], (a.0, a.1) == (b.0, b.1));
                    prop_assert_eq!(subtrees[i] == subtrees[j], a.0 == b.0);
                }
            }
        }

        #[test]
        fn any_hop_counts_are_fitted_with_every_host_in_one_place(
            hops in (0..8_usize).prop_flat_map(|n| prop::collection::vec(prop::collection::vec(any::<Option<u8>>(), n), n)),
        ) {
            let found = fit(&hops);
            for groups in [&found.racks, &found.subtrees] {
                let mut all: Vec<_> = groups.iter().flatten().copied().collect();
                all.sort_unstable();
                prop_assert_eq!(all, (0..hops.len()).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn misfits_are_described() {
        let mut hops = tree(&[(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)], 6);
        (hops[0][3], hops[1][3], hops[2][3]) = (Some(5), None, Some(8));
        let misfits: Vec<_> = fit(&hops).misfits.into_iter().map(|one| (one.pair, one.hops)).collect();
        assert_eq!(misfits, [((0, 3), Some(5)), ((1, 3), None), ((2, 3), Some(8))]);
        // Hosts 0 and 1 share a rack, and so do 1 and 2; but 0 and 2 are far apart.
        let chain = [[1, 2, 6], [2, 1, 2], [6, 2, 1]].map(|row| row.map(Some).to_vec());
        let found = fit(&chain);
        assert_eq!(found.racks, [[0, 1, 2]]);
        assert!(found.misfits.iter().all(|one| one.pair == (0, 2)) && found.misfits.len() == 2);
    }
}
