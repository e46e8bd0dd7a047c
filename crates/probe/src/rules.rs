//! Rules for the links at which two paths meet (Choreo, section 3.3.2), and the experiments that stand for all paths out
//! of a rack or subtree.
//!
//! Rule 1 is about the links out of a host and out of its rack's switch: two paths meet there if they have the same
//! source (1a), or if both leave one rack (1b). Rule 2 is about the link out of an aggregation switch: two paths *may*
//! meet there if both leave one subtree. They need not, because a subtree may have several such switches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bottleneck::{Path, PathPair};

/// A group of hosts that has links to the rest of the network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "GroupLevel")]
pub enum Level {
    /// The hosts below one ToR switch.
    Rack,
    /// The hosts below one aggregation switch.
    Subtree,
}

/// True if a path begins in a group and ends outside it.
pub fn leaves(group: &[usize], path: Path) -> bool {
    group.contains(&path.0) && !group.contains(&path.1)
}

/// One pair of paths for each rack, from two of its hosts to two hosts in other racks. The pair shows if the uplink of
/// the rack is a bottleneck. The result applies to all paths out of the rack.
pub fn out_of_racks(racks: &[Vec<usize>]) -> Vec<(usize, PathPair)> {
    let pair = |rack: &Vec<usize>| match rack[..] {
        [a, c, ..] => outside(racks, rack).map(|(b, d)| ((a, b), (c, d))),
        _ => None,
    };
    racks.iter().enumerate().filter_map(|(number, rack)| Some((number, pair(rack)?))).collect()
}

/// One pair of paths for each subtree of several racks, from hosts in two of its racks to two hosts in other subtrees.
/// The paths meet at no rack, so the pair shows if a link above the racks is a bottleneck.
pub fn out_of_subtrees(racks: &[Vec<usize>], subtrees: &[Vec<usize>]) -> Vec<(usize, PathPair)> {
    let pair = |subtree: &Vec<usize>| {
        let (&a, others) = subtree.split_first()?;
        let rack = racks.iter().find(|rack| rack.contains(&a))?;
        let &c = others.iter().find(|host| !rack.contains(host))?;
        let (b, d) = outside(racks, subtree)?;
        Some(((a, b), (c, d)))
    };
    subtrees.iter().enumerate().filter_map(|(number, subtree)| Some((number, pair(subtree)?))).collect()
}

/// Two hosts outside a group, in different racks if possible, so that the links into a rack are no bottleneck.
fn outside(racks: &[Vec<usize>], group: &[usize]) -> Option<(usize, usize)> {
    let mut others = racks.iter().flat_map(|rack| rack.iter().map(move |&host| (host, rack)));
    let mut outside: Vec<(usize, &Vec<usize>)> =
        others.by_ref().filter(|(host, _)| !group.contains(host)).collect();
    outside.sort_unstable();
    let (&(b, rack), rest) = outside.split_first()?;
    let d = rest.iter().find(|(_, other)| *other != rack).or(rest.first())?;
    Some((b, d.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Rule 1: true if two paths meet at the link out of a host (1a) or of a rack (1b).
    fn meet_at_rack(racks: &[Vec<usize>], one: Path, other: Path) -> bool {
        one.0 == other.0 || leave_together(racks, one, other)
    }

    /// Rule 2: true if two paths may meet at the link out of a subtree.
    fn may_meet_at_subtree(subtrees: &[Vec<usize>], one: Path, other: Path) -> bool {
        leave_together(subtrees, one, other)
    }

    fn leave_together(groups: &[Vec<usize>], one: Path, other: Path) -> bool {
        groups.iter().any(|group| leaves(group, one) && leaves(group, other))
    }

    #[test]
    fn one_pair_stands_for_a_rack() {
        let racks = [vec![0, 1, 2], vec![3], vec![4, 5]];
        assert_eq!(out_of_racks(&racks), [(0, ((0, 3), (1, 4))), (2, ((4, 0), (5, 3)))]);
        assert_eq!(out_of_racks(&[vec![0, 1, 2]]), []);
        assert_eq!(out_of_racks(&[vec![0, 1], vec![2, 3]]), [(0, ((0, 2), (1, 3))), (1, ((2, 0), (3, 1)))]);
    }

    #[test]
    fn one_pair_stands_for_a_subtree_of_several_racks() {
        let racks = [vec![0, 1], vec![2], vec![3, 4], vec![5]];
        let subtrees = [vec![0, 1, 2], vec![3, 4], vec![5]];
        assert_eq!(out_of_subtrees(&racks, &subtrees), [(0, ((0, 3), (2, 5)))]);
        assert_eq!(out_of_subtrees(&racks, &[(0..6).collect()]), [], "no path leaves it");
    }

    #[test]
    fn the_rules_of_the_paper() {
        let (racks, subtrees) = ([vec![0, 1], vec![2], vec![3]], [vec![0, 1, 2], vec![3]]);
        assert!(meet_at_rack(&racks, (0, 1), (0, 3)), "1a: one source");
        assert!(meet_at_rack(&racks, (0, 2), (1, 3)), "1b: one rack");
        assert!(!meet_at_rack(&racks, (0, 1), (1, 3)), "the first path stays in the rack");
        assert!(may_meet_at_subtree(&subtrees, (0, 3), (2, 3)));
        assert!(!may_meet_at_subtree(&subtrees, (0, 2), (1, 3)), "the first path stays in the subtree");
    }

    proptest! {
        #[test]
        fn experiments_meet_where_they_should(hosts in prop::collection::vec((0..3_usize, 0..3_usize), 0..14)) {
            let group = |key: &dyn Fn(&(usize, usize)) -> usize, most: usize| -> Vec<Vec<usize>> {
                let of = |number| (0..hosts.len()).filter(|&host| key(&hosts[host]) == number).collect::<Vec<_>>();
                (0..most).map(of).filter(|group| !group.is_empty()).collect()
            };
            let racks = group(&|&(subtree, rack)| subtree * 3 + rack, 9);
            let subtrees = group(&|&(subtree, _)| subtree, 3);
            for (rack, (one, other)) in out_of_racks(&racks) {
                prop_assert!(leaves(&racks[rack], one) && leaves(&racks[rack], other) && one.0 != other.0);
                prop_assert!(meet_at_rack(&racks, one, other) && one.1 != other.1);
            }
            for (subtree, (one, other)) in out_of_subtrees(&racks, &subtrees) {
                prop_assert!(leaves(&subtrees[subtree], one) && leaves(&subtrees[subtree], other));
                prop_assert!(may_meet_at_subtree(&subtrees, one, other) && !meet_at_rack(&racks, one, other));
            }
        }
    }
}
