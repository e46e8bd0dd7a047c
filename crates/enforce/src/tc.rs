//! Commands of `tc -batch`, and readings of `tc -j`. [`classes`](crate::classes) are read without it.

use serde_json::Value;

use crate::difference::Change;
use crate::tree::{Class, FRAME, HANDLE, LEAF, OTHERS, class_id};

/// Bytes and packets of a class since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClassCounters {
    /// Bytes that were sent.
    pub bytes: u64,
    /// Packets that were sent.
    pub packets: u64,
    /// Packets that were dropped, because the queue was full.
    pub drops: u64,
    /// Times at which a limit held packets back.
    pub overlimits: u64,
    /// Bytes that wait.
    pub backlog: u64,
    /// Packets that wait.
    pub waiting: u64,
}

/// Root qdisc of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Root {
    /// The one that the kernel gives to every interface.
    Default,
    /// The enforcer's, by its handle.
    Own {
        /// True if packets without a class go to the class of all other packets.
        is_default_right: bool,
        /// Kind of the qdisc of that class; `None` for HTB's FIFO.
        leaf: Option<String>,
    },
    /// One of another owner.
    Foreign {
        /// Kind and handle, such as `fq 8001:`.
        qdisc: String,
    },
}

/// Command of a change.
pub fn command(device: &str, change: &Change) -> String {
    match change {
        Change::Root => format!("qdisc add dev {device} root handle {HANDLE:x}: htb default {OTHERS:x}"),
        Change::Add(id, class) => class_command("add", device, *id, class),
        Change::Alter(id, class) => class_command("change", device, *id, class),
        Change::Leaf(kind) => {
            format!("qdisc add dev {device} parent {} handle {LEAF:x}: {kind}", class_id(OTHERS))
        }
    }
}

fn class_command(verb: &str, device: &str, id: u16, class: &Class) -> String {
    let Class { parent, rate, burst, ceil, cburst, prio } = class;
    let parent = if *parent == 0 { format!("{HANDLE:x}:") } else { class_id(*parent) };
    format!(
        "class {verb} dev {device} parent {parent} classid {} htb rate {}bit burst {burst} ceil {}bit cburst {cburst} \
         prio {prio} quantum {FRAME}",
        class_id(id),
        u128::from(*rate) * 8,
        u128::from(*ceil) * 8
    )
}

/// Command that deletes a class.
pub fn delete(device: &str, id: u16) -> String {
    format!("class del dev {device} classid {}", class_id(id))
}

/// Command that removes the root qdisc with everything below it.
pub fn delete_root(device: &str) -> String {
    format!("qdisc del dev {device} root")
}

/// Reads the root qdisc from `tc -j qdisc show dev DEVICE`.
///
/// # Errors
/// A message for a text that is not this output.
pub fn read_root(text: &str) -> Result<Root, String> {
    let qdiscs = list(text)?;
    let own = format!("{HANDLE:x}:");
    let Some(root) = qdiscs.iter().find(|qdisc| qdisc["root"] == true) else { return Ok(Root::Default) };
    let (kind, handle) = (field(root, "kind")?, field(root, "handle")?);
    if handle == "0:" {
        return Ok(Root::Default);
    }
    if handle != own || kind != "htb" {
        return Ok(Root::Foreign { qdisc: format!("{kind} {handle}") });
    }
    let leaf = qdiscs.iter().find(|qdisc| qdisc["parent"] == class_id(OTHERS).as_str());
    let leaf = leaf.map(|leaf| field(leaf, "kind").map(str::to_owned)).transpose()?;
    Ok(Root::Own { is_default_right: number_in_hex(&root["options"]["default"]) == Some(OTHERS), leaf })
}

fn list(text: &str) -> Result<Vec<Value>, String> {
    // Without any qdisc or class, some versions print nothing.
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_str(text).map_err(|error| format!("not a list of tc: {error}"))
}

fn field<'v>(value: &'v Value, name: &str) -> Result<&'v str, String> {
    value[name].as_str().ok_or_else(|| format!("no text `{name}` in the output of tc"))
}

/// A number that tc prints as `0x2`, or as a number.
fn number_in_hex(value: &Value) -> Option<u16> {
    match value {
        Value::String(text) => u16::from_str_radix(text.trim_start_matches("0x"), 16).ok(),
        other => u16::try_from(other.as_u64()?).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limit;
    use crate::tree::{FIRST, LINK};

    #[test]
    fn changes_are_lines_of_a_batch() {
        let limit = Limit { rate: 1_000_001, burst: 64_000 };
        for (change, expected) in [
            (Change::Root, "qdisc add dev eth0 root handle 7ee0: htb default 2"),
            (
                Change::Add(LINK, Class::link(25_000_000)),
                "class add dev eth0 parent 7ee0: classid 7ee0:1 htb rate 200000000bit burst 5000 ceil 200000000bit cburst \
                 5000 prio 0 quantum 1514",
            ),
            (
                Change::Alter(FIRST, Class::limited(LINK, limit, 3)),
                "class change dev eth0 parent 7ee0:1 classid 7ee0:10 htb rate 8bit burst 1 ceil 8000008bit cburst 64001 \
                 prio 3 quantum 1514",
            ),
            (Change::Leaf("fq_codel".to_owned()), "qdisc add dev eth0 parent 7ee0:2 handle 7ee1: fq_codel"),
        ] {
            assert_eq!(command("eth0", &change), expected);
        }
        assert_eq!(delete("eth0", FIRST), "class del dev eth0 classid 7ee0:10");
    }

    #[test]
    fn roots_are_told_apart_by_their_handles() {
        let own = |default: &str, leaf: Option<&str>| Root::Own {
            is_default_right: default == "0x2",
            leaf: leaf.map(str::to_owned),
        };
        for (text, expected) in [
            ("[]", Root::Default),
            ("", Root::Default),
            (r#"[{"kind":"noqueue","handle":"0:","root":true,"refcnt":2,"options":{}}]"#, Root::Default),
            (
                r#"[{"kind":"mq","handle":"0:","root":true,"options":{}},{"kind":"fq_codel","handle":"0:","parent":":1"}]"#,
                Root::Default,
            ),
            (
                r#"[{"kind":"fq","handle":"8001:","root":true,"refcnt":2,"options":{}}]"#,
                Root::Foreign { qdisc: "fq 8001:".to_owned() },
            ),
            (
                r#"[{"kind":"tbf","handle":"7ee0:","root":true}]"#,
                Root::Foreign { qdisc: "tbf 7ee0:".to_owned() },
            ),
            (
                r#"[{"kind":"htb","handle":"7ee0:","root":true,"options":{"r2q":10,"default":"0x2"}},
                    {"kind":"fq_codel","handle":"7ee1:","parent":"7ee0:2"}]"#,
                own("0x2", Some("fq_codel")),
            ),
            (
                r#"[{"kind":"htb","handle":"7ee0:","root":true,"options":{"default":"0x3"}}]"#,
                own("0x3", None),
            ),
        ] {
            assert_eq!(read_root(text), Ok(expected), "{text}");
        }
        for text in ["{}", "[1", r#"[{"root":true}]"#] {
            assert!(read_root(text).is_err(), "{text}");
        }
    }
}
