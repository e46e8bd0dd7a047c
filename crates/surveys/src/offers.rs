//! Addresses of hosts for measurements, from the reports of their agents and from the settings.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use leeward_fabric::Nanos;
use leeward_probe::survey::Host;

/// Number of report intervals after which the service no longer uses a silent agent.
const SILENT: u64 = 3;
/// Shortest time after which the service no longer uses a silent agent.
const LEAST: Nanos = Nanos(10_000_000_000);

/// Hosts that take part in measurements.
pub struct Offers {
    /// For each host name: the source address of the host's reports with the announced port, and the time of the last
    /// report.
    reported: Mutex<BTreeMap<String, (SocketAddr, Nanos)>>,
    /// Addresses of the settings, which take precedence.
    addresses: BTreeMap<String, String>,
    /// Longest time since the last report of a usable agent.
    max_silence: Nanos,
}

impl Offers {
    /// Starts without hosts. `interval` is the time between reports.
    pub fn new(addresses: BTreeMap<String, String>, interval: Nanos) -> Offers {
        let max_silence = Nanos(interval.0.saturating_mul(SILENT)).max(LEAST);
        Offers { reported: Mutex::default(), addresses, max_silence }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (SocketAddr, Nanos)>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a report of a host's agent, with its listening address.
    pub fn record(&self, host: &str, address: SocketAddr, now: Nanos) {
        let mut known = self.lock();
        match known.get_mut(host) {
            Some(offer) => *offer = (address, now),
            None => drop(known.insert(host.to_owned(), (address, now))),
        }
    }

    /// Addresses of hosts that all other hosts can reach.
    ///
    /// # Errors
    /// Position of the first host without a usable address, and the reason.
    pub fn find(&self, hosts: &[String], now: Nanos) -> Result<Vec<Host>, (usize, String)> {
        let known = self.lock();
        let mut usable = Vec::with_capacity(hosts.len());
        let (mut loopback, mut has_other) = (None, false);
        for (at, name) in hosts.iter().enumerate() {
            if let Some(address) = self.addresses.get(name) {
                usable.push(Host { name: name.clone(), address: address.clone() });
                continue;
            }
            let Some(&(address, reported)) = known.get(name) else {
                let why = "it takes no part in measurements; start its agent with --probe-listen";
                return Err((at, why.to_owned()));
            };
            let silent = now.since(reported);
            if silent > self.max_silence {
                return Err((at, format!("its agent has not reported for {:.0} s", silent.as_secs_f64())));
            }
            if address.ip().is_loopback() {
                loopback = loopback.or(Some(at));
            } else {
                has_other = true;
            }
            usable.push(Host { name: name.clone(), address: address.to_string() });
        }
        match loopback.filter(|_| has_other) {
            Some(at) => Err((
                at,
                "its agent reports from a loopback address, which other hosts cannot reach; start the agent with \
                 this machine's name or address as --controller, or set the host's address in `probes.addresses` \
                 of the settings"
                    .to_owned(),
            )),
            None => Ok(usable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_hosts_lose_the_address_their_reports_came_from() {
        let second = |seconds: u64| Nanos(seconds * Nanos::SECOND.0);
        let addresses = [("r0h3".to_owned(), "r0h3.example".to_owned())].into();
        let offers = Offers::new(addresses, second(1));
        let hosts = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let at = |address: &str| address.parse::<SocketAddr>().expect("an address");
        offers.record("r0h0", at("10.0.0.1:7601"), second(100));
        offers.record("r0h1", at("10.0.0.2:7601"), second(100));
        offers.record("r0h1", at("10.0.0.3:7602"), second(101));
        offers.record("r0h2", at("127.0.0.1:7601"), second(101));
        let find = |names: &[&str], now| {
            let found = offers.find(&hosts(names), second(now));
            found.map(|found| found.into_iter().map(|host| host.address).collect::<Vec<_>>())
        };
        let all = find(&["r0h0", "r0h1", "r0h3"], 105).expect("the hosts have reported");
        assert_eq!(all, ["10.0.0.1:7601", "10.0.0.3:7602", "r0h3.example"]);
        assert_eq!(find(&["r0h2", "r0h3"], 105).map(|found| found.len()), Ok(2));
        let wrong = |names: &[&str], now| find(names, now).expect_err("an error");
        assert_eq!(wrong(&["r0h0", "r0h1", "r0h2"], 105).0, 2, "other hosts cannot reach its address");
        assert_eq!(wrong(&["r0h3", "r9h9"], 105).0, 1);
        let (at, why) = wrong(&["r0h1", "r0h0"], 111);
        assert!(at == 1 && why.contains("11 s"), "{why}");
    }
}
