//! The table of nftables that gives packets their class and their DSCP, and readings of `nft -j`.

use std::fmt::Write;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tree::{BEST_EFFORT, HANDLE, Mark, Marks, Pair, class_id, dscp};

/// Class of a pair whose element was removed by another hand, and its level.
const MISSING_CLASS: u16 = 0;
const MISSING_LEVEL: u8 = u8::MAX;
/// Families of addresses: number in names of maps, name of the header, type of addresses.
const FAMILIES: [(char, &str, &str); 2] = [('4', "ip", "ipv4_addr"), ('6', "ip6", "ipv6_addr")];

/// Hook at which packets are marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hook {
    /// Egress of the interface, before its qdisc: all packets, those of bridges too. Since Linux 5.16.
    Egress,
    /// After routing: all packets but those of bridges.
    Postrouting,
}

impl Hook {
    /// Name in results.
    pub fn name(self) -> &'static str {
        match self {
            Hook::Egress => "egress",
            Hook::Postrouting => "postrouting",
        }
    }

    /// Family of the table.
    pub fn family(self) -> &'static str {
        match self {
            Hook::Egress => "netdev",
            Hook::Postrouting => "inet",
        }
    }
}

/// Name of the table of an interface.
pub fn table_name(device: &str) -> String {
    format!("leeward-{device}")
}

/// Program of `nft` that replaces the table of an interface in one transaction. With `clears`, packets without a mark get
/// the DSCP of best effort.
pub fn table(device: &str, hook: Hook, marks: &Marks, clears: bool) -> String {
    let mut text = delete_table(device, hook);
    let _ = writeln!(text, "table {} {} {{", hook.family(), table_name(device));
    for level in 0..=BEST_EFFORT {
        let name = dscp(level);
        let _ =
            writeln!(text, "\tchain level{level} {{\n\t\tip dscp set {name}\n\t\tip6 dscp set {name}\n\t}}");
    }
    for (number, _, kind) in FAMILIES {
        let own: Vec<(&Pair, &Mark)> =
            marks.iter().filter(|(pair, _)| pair.source.is_ipv4() == (number == '4')).collect();
        let class = |mark: &Mark| class_id(mark.class);
        let level = |mark: &Mark| format!("goto level{}", mark.level);
        write_map(&mut text, &format!("class_v{number}"), kind, "classid", &own, &class);
        write_map(&mut text, &format!("level_v{number}"), kind, "verdict", &own, &level);
    }
    let _ = match hook {
        Hook::Egress => writeln!(
            text,
            "\tchain leeward {{\n\t\ttype filter hook egress device \"{device}\" priority 0; policy accept;"
        ),
        Hook::Postrouting => writeln!(
            text,
            "\tchain leeward {{\n\t\ttype filter hook postrouting priority 300; policy accept;\n\t\toifname != \"{device}\" \
             accept"
        ),
    };
    for (number, header, _) in FAMILIES {
        let key = format!("{header} saddr . {header} daddr");
        let _ = writeln!(
            text,
            "\t\tmeta priority set {key} map @class_v{number}\n\t\t{key} vmap @level_v{number}"
        );
    }
    if clears {
        let _ = writeln!(text, "\t\tip dscp set cs0\n\t\tip6 dscp set cs0");
    }
    text.push_str("\t}\n}\n");
    text
}

fn write_map(
    text: &mut String,
    name: &str,
    kind: &str,
    value: &str,
    marks: &[(&Pair, &Mark)],
    show: &dyn Fn(&Mark) -> String,
) {
    let _ = writeln!(text, "\tmap {name} {{\n\t\ttype {kind} . {kind} : {value}");
    if !marks.is_empty() {
        let elements: Vec<String> = marks
            .iter()
            .map(|(pair, mark)| format!("{} . {} : {}", pair.source, pair.destination, show(mark)))
            .collect();
        let _ = writeln!(text, "\t\telements = {{\n\t\t\t{}\n\t\t}}", elements.join(",\n\t\t\t"));
    }
    text.push_str("\t}\n");
}

/// Program of `nft` that deletes the table of an interface, also if there is none.
pub fn delete_table(device: &str, hook: Hook) -> String {
    let table = format!("table {} {}", hook.family(), table_name(device));
    format!("{table}\ndelete {table}\n")
}

/// A table as `nft -j list table` shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listing {
    /// Marks of packets.
    pub marks: Marks,
    /// Everything else: chains, rules, and types of maps, without the kernel's handles.
    pub rules: String,
}

/// Reads a table from the output of `nft -j list table`.
///
/// # Errors
/// A message for a text that is not this output.
pub fn read_table(text: &str) -> Result<Listing, String> {
    let document: Value =
        serde_json::from_str(text).map_err(|error| format!("not the output of nft: {error}"))?;
    let Some(items) = document["nftables"].as_array() else {
        return Err("no list `nftables` in the output of nft".to_owned());
    };
    let mut marks = Marks::new();
    let mut rules = Vec::new();
    for item in items.iter().filter(|item| item.get("metainfo").is_none()) {
        let mut item = item.clone();
        if let Some(map) = item.get_mut("map").and_then(Value::as_object_mut) {
            let elements = map.remove("elem").unwrap_or_default();
            let name = map.get("name").and_then(Value::as_str).unwrap_or_default();
            read_elements(name, &elements, &mut marks)?;
        }
        remove_handles(&mut item);
        rules.push(item);
    }
    Ok(Listing { marks, rules: Value::Array(rules).to_string() })
}

/// True if the rules of a listing use all maps.
pub(crate) fn has_rules(rules: &str) -> bool {
    let uses = |name: &str| FAMILIES.iter().all(|(number, ..)| rules.contains(&format!("@{name}{number}")));
    uses("class_v") && uses("level_v")
}

/// Reads the elements of a map into marks. Maps of other names, which another hand added, have none.
fn read_elements(name: &str, elements: &Value, marks: &mut Marks) -> Result<(), String> {
    let (is_class, is_level) = (name.starts_with("class"), name.starts_with("level"));
    if !is_class && !is_level {
        return Ok(());
    }
    for element in elements.as_array().into_iter().flatten() {
        let invalid = || format!("map {name}: an element that is not the enforcer's: {element}");
        let pair = read_pair(&element[0]).ok_or_else(invalid)?;
        let mark = marks.entry(pair).or_insert(Mark { class: MISSING_CLASS, level: MISSING_LEVEL });
        if is_class {
            mark.class = read_class(&element[1]).ok_or_else(invalid)?;
        } else {
            let target = element[1]["goto"]["target"].as_str();
            let level = target.and_then(|target| target.strip_prefix("level")?.parse().ok());
            mark.level = level.unwrap_or(MISSING_LEVEL);
        }
    }
    Ok(())
}

fn read_pair(key: &Value) -> Option<Pair> {
    // An element with attributes of its own, such as a comment.
    let key = key.get("elem").and_then(|element| element.get("val")).unwrap_or(key);
    let address = |at: usize| key["concat"][at].as_str()?.parse::<IpAddr>().ok();
    Some(Pair { source: address(0)?, destination: address(1)? })
}

/// Minor number of a class; 0 for one of another qdisc.
fn read_class(value: &Value) -> Option<u16> {
    let (major, minor) = match value {
        Value::String(text) => {
            let (major, minor) = text.split_once(':')?;
            (u16::from_str_radix(major, 16).ok()?, u16::from_str_radix(minor, 16).ok()?)
        }
        other => {
            let number = u32::try_from(other.as_u64()?).ok()?;
            ((number >> 16) as u16, number as u16)
        }
    };
    Some(if major == HANDLE { minor } else { MISSING_CLASS })
}

fn remove_handles(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("handle");
            fields.values_mut().for_each(remove_handles);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_handles),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(source: &str, destination: &str) -> Pair {
        let [source, destination] = [source, destination].map(|text| text.parse().expect("valid"));
        Pair { source, destination }
    }

    fn marks() -> Marks {
        Marks::from([
            (pair("10.0.0.2", "10.0.1.2"), Mark { class: 0x10, level: 0 }),
            (pair("10.0.0.2", "10.0.1.3"), Mark { class: 0x1f, level: 6 }),
            (pair("fd00::2", "fd00::9"), Mark { class: 0x10, level: 0 }),
        ])
    }

    #[test]
    fn a_table_has_maps_of_both_families_and_a_chain_for_each_level() {
        insta::assert_snapshot!(table("eth0", Hook::Egress, &marks(), false));
    }

    #[test]
    fn a_table_after_routing_sees_one_interface_and_may_clear_other_marks() {
        insta::assert_snapshot!(table("eth0.7", Hook::Postrouting, &Marks::new(), true));
    }

    #[test]
    fn a_table_is_read_without_handles_and_in_any_order() {
        let text = r#"{"nftables": [
            {"metainfo": {"version": "1.0.6", "json_schema_version": 1}},
            {"table": {"family": "netdev", "name": "leeward-eth0", "handle": 3}},
            {"chain": {"family": "netdev", "table": "leeward-eth0", "name": "level0", "handle": 1}},
            {"map": {"family": "netdev", "name": "level_v4", "table": "leeward-eth0", "type": ["ipv4_addr", "ipv4_addr"],
              "handle": 9, "map": "verdict", "elem": [
                [{"concat": ["10.0.0.2", "10.0.1.3"]}, {"goto": {"target": "level6"}}],
                [{"concat": ["10.0.0.2", "10.0.1.2"]}, {"goto": {"target": "level0"}}]]}},
            {"map": {"family": "netdev", "name": "class_v4", "table": "leeward-eth0", "type": ["ipv4_addr", "ipv4_addr"],
              "handle": 8, "map": "classid", "elem": [
                [{"concat": ["10.0.0.2", "10.0.1.2"]}, "7ee0:10"],
                [{"elem": {"val": {"concat": ["10.0.0.2", "10.0.1.3"]}, "comment": "x"}}, "7ee0:1f"]]}},
            {"map": {"family": "netdev", "name": "class_v6", "table": "leeward-eth0", "type": ["ipv6_addr", "ipv6_addr"],
              "handle": 8, "map": "classid", "elem": [[{"concat": ["fd00::2", "fd00::9"]}, 2128609296]]}},
            {"map": {"family": "netdev", "name": "level_v6", "table": "leeward-eth0", "type": ["ipv6_addr", "ipv6_addr"],
              "handle": 8, "map": "verdict", "elem": [[{"concat": ["fd00::2", "fd00::9"]}, {"goto": {"target": "level0"}}]]}}
        ]}"#;
        let listing = read_table(text).expect("an output of nft");
        assert_eq!(listing.marks, marks());
        assert!(
            !listing.rules.contains("handle") && !listing.rules.contains("10.0.0.2"),
            "{}",
            listing.rules
        );
        assert!(listing.rules.contains("level0"), "{}", listing.rules);
    }

    #[test]
    fn marks_of_another_hand_differ_from_all_wanted_ones() {
        let map = |name: &str, element: &str| {
            format!(r#"{{"nftables": [{{"map": {{"name": "{name}", "elem": [{element}]}}}}]}}"#)
        };
        let key = r#"{"concat": ["10.0.0.2", "10.0.1.2"]}"#;
        for (name, element, expected) in [
            ("class_v4", format!(r#"[{key}, "1:10"]"#), Some(Mark { class: 0, level: 255 })),
            ("class_v4", format!(r#"[{key}, "7ee0:10"]"#), Some(Mark { class: 16, level: 255 })),
            ("level_v4", format!(r#"[{key}, {{"drop": null}}]"#), Some(Mark { class: 0, level: 255 })),
            ("other", format!(r#"[{key}, "7ee0:10"]"#), None),
        ] {
            let marks = read_table(&map(name, &element)).expect("an output of nft").marks;
            assert_eq!(marks.values().next().copied(), expected, "{name} {element}");
        }
        assert!(read_table(&map("class_v4", r#"["10.0.0.2", "7ee0:10"]"#)).is_err());
        assert!(read_table("{}").is_err());
    }
}
