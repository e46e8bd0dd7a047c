//! Messages for names of hosts that the cluster does not have. Agents take the name of their machine by default, which
//! often differs from the cluster's name by its domain, its case or a letter.

use crate::input::excerpt;
use crate::{Fabric, HostId};

/// Largest number of similar names in a message.
const SHOWN: usize = 3;
/// Largest cluster whose names are compared letter by letter. Agents repeat wrong names, so a message must be cheap.
const COMPARED: usize = 10_000;
/// Longest name that is compared letter by letter.
const LONGEST: usize = 64;

impl Fabric {
    /// Message for a name of a host that the cluster does not have, with the names that are most similar.
    pub fn no_host(&self, name: &str) -> String {
        self.none_such("host", name)
    }

    /// Message for a name that no host, rack or pod has, with the names of hosts that are most similar.
    pub fn no_place(&self, name: &str) -> String {
        self.none_such("host, rack or pod", name)
    }

    fn none_such(&self, what: &str, name: &str) -> String {
        let similar = self.similar_hosts(name);
        let remedy = match similar.is_empty() {
            true => format!("hosts are named like {}", self.host_name(HostId(0))),
            false => format!("similar names: {}", similar.join(", ")),
        };
        format!("`{}`: the cluster has no such {what}; {remedy}", excerpt(name))
    }

    /// Names of hosts that are most similar: those that differ in case or domain, or else in one or two letters.
    fn similar_hosts(&self, name: &str) -> Vec<&str> {
        let short = short_name(name);
        let names = || self.all_hosts().map(|host| self.host_name(host));
        let same: Vec<&str> =
            names().filter(|host| short_name(host).eq_ignore_ascii_case(short)).take(SHOWN).collect();
        if !same.is_empty() || self.host_count() > COMPARED || name.len() > LONGEST {
            return same;
        }
        let most = if short.len() > 6 { 2 } else { 1 };
        let wanted = short.to_ascii_lowercase();
        let distance = |host: &str| distance(wanted.as_bytes(), host.to_ascii_lowercase().as_bytes(), most);
        let mut similar: Vec<(usize, &str)> =
            names().filter_map(|host| Some((distance(short_name(host))?, host))).collect();
        similar.sort_by_key(|&(distance, _)| distance);
        similar.into_iter().take(SHOWN).map(|(_, host)| host).collect()
    }
}

/// A name without its domain.
fn short_name(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// Number of letters to insert, remove or replace; `None` above `most`.
fn distance(one: &[u8], other: &[u8], most: usize) -> Option<usize> {
    if one.len().abs_diff(other.len()) > most {
        return None;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, other) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
        if row.iter().all(|&distance| distance > most) {
            return None;
        }
    }
    row.last().copied().filter(|&distance| distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cluster;

    fn message(hosts: &str, name: &str) -> String {
        let text = format!("racks: [{{hosts: [{hosts}]}}]\nnic: 1Gbps\noversubscription: 1\n");
        Cluster::from_text("test", &text).expect("a valid cluster").fabric.no_host(name)
    }

    #[test]
    fn a_message_names_the_most_similar_hosts() {
        let hosts = "{name: web1.dc1.example}, {name: web2}, {name: Storage-017}, {name: storage-018}";
        for (name, remedy) in [
            ("WEB1", "similar names: web1.dc1.example"),
            ("web1.example.org", "similar names: web1.dc1.example"),
            ("web2.dc1.example", "similar names: web2"),
            ("web3", "similar names: web1.dc1.example, web2"),
            ("storage-17", "similar names: Storage-017, storage-018"),
            ("storage17", "similar names: Storage-017"),
            ("localhost", "hosts are named like web1.dc1.example"),
            ("", "hosts are named like web1.dc1.example"),
        ] {
            let message = message(hosts, name);
            let expected = format!("`{name}`: the cluster has no such host; {remedy}");
            assert_eq!(message, expected);
        }
        let many = message("{name: a1}, {name: a2}, {name: a3}, {name: a4}", "a5");
        assert!(many.ends_with("similar names: a1, a2, a3"), "{many}");
    }

    #[test]
    fn the_distance_is_that_of_levenshtein_up_to_a_bound() {
        for (one, other, expected) in [
            ("", "", Some(0)),
            ("a", "", Some(1)),
            ("kitten", "sitting", Some(3)),
            ("flaw", "lawn", Some(2)),
            ("abcdef", "uvwxyz", None),
        ] {
            assert_eq!(distance(one.as_bytes(), other.as_bytes(), 3), expected, "{one} {other}");
        }
        assert_eq!(distance(b"kitten", b"sitting", 2), None);
    }
}
