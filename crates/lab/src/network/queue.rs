//! Queues of `tc` at the sending end of a link.

use std::fmt::Write;
use std::net::Ipv4Addr;

use crate::clock::TIMER_LATENESS_US;

/// Rate from which a link has no queue of `tc`: no machine carries so much between its namespaces.
const UNLIMITED_BPS: u64 = 100_000_000_000;
/// Smallest rate of `tc`.
const LEAST_BPS: u64 = 8;
/// Smallest burst in bytes: ten frames, so that the kernel's timer has time.
const LEAST_BURST: u64 = 16 << 10;
/// Largest frame, in bytes.
const FRAME: u64 = 1514;

/// Rate of a link in the lab, in bits per second; `None` if nothing limits it.
pub(super) fn real(rate: u64, scale: u32) -> Option<u64> {
    let rate = rate / u64::from(scale.max(1));
    (rate < UNLIMITED_BPS).then_some(rate.max(LEAST_BPS))
}

/// Sizes of a queue, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sizes {
    /// Bytes that may wait.
    pub queue: u64,
    /// Bytes that may be sent at once; `None` depends on the rate.
    pub burst: Option<u64>,
}

impl Sizes {
    fn burst(self, rate: u64) -> u64 {
        let slack = FRAME + rate / 8 * TIMER_LATENESS_US / 1_000_000;
        self.burst.unwrap_or(slack.max(LEAST_BURST))
    }
}

/// End of the paths that a link's queue distinguishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    Source,
    Destination,
}

/// A path with a rate of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PathRate {
    /// Address of the other end.
    pub end: Ipv4Addr,
    /// Rate in bits per second.
    pub rate: u64,
}

/// Rates of one direction of a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Limits {
    /// Rate in bits per second; `None` without a limit.
    pub rate: Option<u64>,
    /// End that distinguishes paths.
    pub by: By,
    /// Paths with a rate of their own.
    pub paths: Vec<PathRate>,
}

impl Limits {
    /// Limits of the whole link only.
    pub fn link(rate: Option<u64>) -> Limits {
        Limits { rate, by: By::Destination, paths: Vec::new() }
    }

    /// Commands of `tc -batch` for a device that has no queue yet.
    pub fn commands(&self, device: &str, sizes: Sizes) -> String {
        let mut text = String::new();
        if !self.paths.is_empty() {
            self.write_classes(&mut text, device, sizes);
        } else if let Some(rate) = self.rate {
            let (burst, limit) = (sizes.burst(rate), sizes.queue);
            let _ =
                writeln!(text, "qdisc add dev {device} root tbf rate {rate}bit burst {burst} limit {limit}");
        }
        text
    }

    /// HTB: class 1:1 is the link, class 1:2 all paths without a rate of their own, and the others are one for each path.
    /// Classes of paths borrow from the link: their own guaranteed rates together are at most that of the link.
    fn write_classes(&self, text: &mut String, device: &str, sizes: Sizes) {
        let field = match self.by {
            By::Source => "src",
            By::Destination => "dst",
        };
        let mut class = |parent: &str, id: usize, rate: u64, ceil: u64, is_leaf: bool| {
            let burst = sizes.burst(ceil);
            let _ = writeln!(
                text,
                "class add dev {device} parent {parent} classid 1:{id:x} htb rate {rate}bit ceil {ceil}bit \
                 burst {burst} cburst {burst} quantum {FRAME}"
            );
            if is_leaf {
                let _ = writeln!(text, "qdisc add dev {device} parent 1:{id:x} bfifo limit {}", sizes.queue);
            }
        };
        if let Some(rate) = self.rate {
            let share = (rate / (self.paths.len() as u64 + 1)).max(LEAST_BPS);
            class("1:", 1, rate, rate, false);
            class("1:1", 2, share, rate, true);
        }
        let mut filters = String::new();
        for (id, path) in (3..).zip(&self.paths) {
            match self.rate {
                Some(rate) => {
                    let ceil = path.rate.min(rate);
                    let share = (rate / (self.paths.len() as u64 + 1)).clamp(LEAST_BPS, ceil.max(LEAST_BPS));
                    class("1:1", id, share, ceil, true);
                }
                None => class("1:", id, path.rate, path.rate, true),
            }
            let _ = writeln!(
                filters,
                "filter add dev {device} parent 1: protocol ip prio 1 u32 match ip {field} {}/32 flowid 1:{id:x}",
                path.end
            );
        }
        let default = if self.rate.is_some() { " default 2" } else { "" };
        text.insert_str(0, &format!("qdisc add dev {device} root handle 1: htb{default}\n"));
        text.push_str(&filters);
    }
}
