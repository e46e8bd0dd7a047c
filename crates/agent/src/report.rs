//! Converts readings to reports, and replies to events. This module does no I/O.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use leeward_client::Rejection;
use leeward_fabric::Nanos;

use crate::body::{Acceptance, Device, HostStorage, Link, PodTraffic, Probe, Report, SkippedParts};
use crate::counters::Meter;
use crate::disks::{Disk, DiskWork};
use crate::event::Event;
use crate::pod_rates::{PodMeter, PodRates};
use crate::pods::{LeftOut, Pods};
use crate::reading::Reading;
use crate::report_schedule::ReportSchedule;
use crate::volumes::Storage;
use crate::window::{Gap, Window};

/// Maximum number of different messages that are logged once each. Without this limit, a controller that always sends
/// new names could fill the log.
const MOST_ONCE: usize = 256;

/// Ratio of the agent's interval to the controller's from which on the controller takes links for silent at times.
const RARE: f64 = 1.5;

/// Disks to report, and their names in the cluster.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Disks(BTreeMap<String, String>);

impl Disks {
    /// Selects disks and their names in the cluster. If `named` is empty, selects all physical disks under their own
    /// names.
    pub fn new(named: impl IntoIterator<Item = (String, String)>) -> Disks {
        Disks(named.into_iter().collect())
    }

    /// Name of a disk in the cluster; `None` for a disk that is not reported.
    fn device<'a>(&'a self, disk: &'a Disk) -> Option<&'a str> {
        match self.0.get(&disk.name) {
            Some(device) => Some(device),
            None => Some(disk.name.as_str()).filter(|_| self.0.is_empty() && disk.physical),
        }
    }

    /// The only counted disk among several physical ones, if no disk was selected by name. In a report, it would look
    /// like the host's only disk.
    fn sole_counted<'a>(&self, disks: &'a [Disk]) -> Option<&'a Disk> {
        let physical: Vec<&Disk> = disks.iter().filter(|disk| self.0.is_empty() && disk.physical).collect();
        let mut counted = physical.iter().filter(|disk| disk.counted);
        let first = counted.next().filter(|_| physical.len() > 1)?;
        counted.next().is_none().then_some(*first)
    }

    /// Selected disks that do not exist.
    fn missing(&self, disks: &[Disk]) -> impl Iterator<Item = &String> {
        self.0.keys().filter(|name| !disks.iter().any(|disk| disk.name == **name))
    }
}

/// State machine of an agent.
#[derive(Clone, Debug)]
pub struct Reporter {
    host: String,
    meter: Meter,
    disks: Disks,
    /// Port of the measurement listener, if any.
    probe: Option<u16>,
    schedule: ReportSchedule,
    /// Last window, with the work of the devices and the storage of the host, until it is sent or replaced.
    window: Option<(Window, Vec<Device>, Vec<HostStorage>)>,
    pod_meter: PodMeter,
    /// Last traffic of the pods, until it is sent or replaced.
    pods: Vec<PodTraffic>,
    /// Number of windows dropped since the last accepted report.
    dropped: u64,
    /// Last logged event; an event is logged again only after a different one.
    last_event: Option<Event>,
    /// Messages that are logged once each.
    once: BTreeSet<String>,
}

fn rfc3339(at: Nanos) -> String {
    Timestamp::from_nanosecond(i128::from(at.0)).unwrap_or(Timestamp::MAX).to_string()
}

impl Reporter {
    /// Creates a reporter for a host.
    pub fn new(host: String, meter: Meter, disks: Disks, schedule: ReportSchedule) -> Reporter {
        let (probe, window, dropped, last_event, once) = (None, None, 0, None, BTreeSet::new());
        let (pod_meter, pods) = (PodMeter::default(), Vec::new());
        Reporter { host, meter, disks, probe, schedule, window, pod_meter, pods, dropped, last_event, once }
    }

    /// Sets the port of the host's measurement listener, if any.
    pub fn with_probe(self, probe: Option<u16>) -> Reporter {
        Reporter { probe, ..self }
    }

    /// Time of the next reading.
    pub fn next(&mut self, now: Nanos, random: f64) -> Nanos {
        self.schedule.next(now, random)
    }

    /// Processes a reading.
    pub fn read(&mut self, reading: &Reading) -> Vec<Event> {
        // The new reading replaces a window that is not sent yet.
        self.dropped += u64::from(self.window.take().is_some());
        let sole_counted = self.disks.sole_counted(&reading.disks);
        let mut events: Vec<Event> = match self.meter.take(reading) {
            Ok(window) => {
                let device = |work: &DiskWork| {
                    let named = |disk: &&Disk| disk.name == work.disk && sole_counted != Some(disk);
                    let disk = reading.disks.iter().find(named)?;
                    let name = self.disks.device(disk)?;
                    Some(Device {
                        device: format!("{}:{name}", self.host),
                        busy: work.busy,
                        read_bps: work.read_bps,
                        write_bps: work.write_bps,
                        queue: work.queue,
                        in_flight: work.in_flight,
                    })
                };
                let devices = window.disks.iter().filter_map(device).collect();
                let storage = reading.storage.map(|Storage { used, capacity }| HostStorage {
                    host: self.host.clone(),
                    stored: used,
                    storage: capacity,
                });
                self.window = Some((window, devices, storage.into_iter().collect()));
                Vec::new()
            }
            Err(Gap::First) => Vec::new(),
            Err(gap) => self.changed(Event::Gap(gap)).into_iter().collect(),
        };
        let left_out = reading.pods.as_ref().and_then(|pods| self.read_pods(reading.at, pods));
        let missing = self.disks.missing(&reading.disks).cloned().map(Event::NoDisk);
        let uncounted = |disk: &&Disk| !disk.counted && self.disks.device(disk).is_some();
        let uncounted =
            reading.disks.iter().filter(uncounted).map(|disk| Event::NotCounted(disk.name.clone()));
        let unread = reading.unread.iter().cloned().map(Event::Unreadable);
        let sole_counted = sole_counted.map(|disk| Event::SoleCounted(disk.name.clone()));
        let problems: Vec<Event> =
            unread.chain(missing).chain(uncounted).chain(sole_counted).chain(left_out).collect();
        events.extend(self.first_time(problems));
        events
    }

    /// Processes the pods of a reading. Returns an event if some have no counters of their own.
    fn read_pods(&mut self, at: Nanos, pods: &Pods) -> Option<Event> {
        let traffic = |PodRates { id, egress_bps, ingress_bps }| PodTraffic {
            pod: id.to_string(),
            host: self.host.clone(),
            egress_bps,
            ingress_bps,
        };
        self.pods = self.pod_meter.take(at, pods).into_iter().map(traffic).collect();
        (pods.left_out != LeftOut::default()).then_some(Event::PodsLeftOut(pods.left_out))
    }

    /// Processes a failure to read interfaces.
    pub fn read_failed(&mut self, why: String) -> Option<Event> {
        self.changed(Event::InterfacesUnreadable(why))
    }

    /// Report to send now, if any.
    pub fn report(&mut self, now: Nanos) -> Option<Report> {
        if !self.schedule.may_send(now) {
            return None;
        }
        let (window, devices, hosts) = self.window.take()?;
        let link = |way: &str, bytes, queue_bytes| Link {
            link: format!("{}:{way}", self.host),
            load_bps: window.rate_bps(bytes),
            speed_bps: window.speed_bps,
            queue_bytes,
        };
        let links = [link("egress", window.egress, window.queued), link("ingress", window.ingress, None)];
        let probe = self.probe.map(|port| Probe { host: self.host.clone(), port });
        let (from, until) = (rfc3339(window.from), rfc3339(window.until));
        let pods = std::mem::take(&mut self.pods);
        Some(Report { from, until, links, devices, hosts, pods, probe })
    }

    /// Processes the reply to a report. If the reply was lost, the controller may have accepted the report. The loss
    /// does no harm, because the next report has new data.
    pub fn process_reply(
        &mut self,
        now: Nanos,
        reply: Result<Acceptance, Rejection>,
        random: f64,
    ) -> Vec<Event> {
        match reply {
            Ok(acceptance) => {
                self.schedule.succeeded();
                let dropped = std::mem::take(&mut self.dropped);
                // A report of a host without links is not stale: no link was skipped.
                let stale = acceptance.links == 0 && acceptance.skipped != SkippedParts::default();
                let event = if stale { Event::Stale } else { Event::Reports { dropped } };
                let mut events: Vec<Event> = self.changed(event).into_iter().collect();
                let unknown = acceptance.unknown_devices.into_iter().map(Event::NoDevice);
                let clamped = acceptance.clamped_names.into_iter().map(Event::Clamped);
                let own = self.schedule.interval();
                let is_rare = |needed_s: &f64| own.as_secs_f64() > needed_s * RARE;
                let rare = acceptance.interval_s.filter(is_rare);
                let rare = rare.map(|needed_s| Event::Rare { own, needed_s });
                events.extend(self.first_time(unknown.chain(clamped).chain(rare).collect()));
                events
            }
            Err(Rejection { why, after, .. }) => {
                self.dropped += 1;
                let wait = self.schedule.failed(now, after, random);
                let event = Event::Rejected { why, wait };
                self.last_event = Some(event.clone());
                vec![event]
            }
        }
    }

    /// Events of this list that were not logged before.
    fn first_time(&mut self, mut events: Vec<Event>) -> Vec<Event> {
        events.retain(|event| self.once.len() < MOST_ONCE && self.once.insert(event.to_string()));
        events
    }

    /// The event, unless the last event was the same.
    fn changed(&mut self, event: Event) -> Option<Event> {
        let same = match (&self.last_event, &event) {
            // The number of dropped windows is logged only with the first accepted report.
            (Some(Event::Reports { .. }), Event::Reports { .. }) => true,
            (last, event) => last.as_ref() == Some(event),
        };
        if same {
            return None;
        }
        self.last_event = Some(event.clone());
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use leeward_fabric::Bytes;

    use super::*;
    use crate::count::Count;
    use crate::pods::{Pod, PodId};
    use crate::reading::Interface;

    fn reading(second: u64, bytes: u64) -> Reading {
        let count = Count { bytes, packets: bytes / 1_000 };
        let interface = Interface {
            index: 1,
            name: "eth0".to_owned(),
            physical: true,
            master: None,
            received: count,
            sent: count,
            speed_bps: None,
            queued: None,
        };
        let at = Nanos(second * Nanos::SECOND.0);
        let (wall, interfaces) = (Nanos(1_769_860_800_000_000_000 + at.0), vec![interface]);
        Reading { at, wall, interfaces, disks: Vec::new(), storage: None, pods: None, unread: Vec::new() }
    }

    fn reporter() -> Reporter {
        let schedule = ReportSchedule::new(Nanos::SECOND, Nanos(0), 0.0);
        Reporter::new("r0h1".to_owned(), Meter::new([]), Disks::default(), schedule)
    }

    #[test]
    fn a_report_has_the_window_and_the_host_s_links() {
        let mut reporter = reporter();
        assert_eq!(reporter.read(&reading(0, 1_000)), []);
        assert_eq!(reporter.report(Nanos(0)), None, "a window needs two readings");
        reporter.read(&reading(2, 251_000));
        let report = reporter.report(Nanos(2)).expect("a window");
        assert_eq!(
            serde_json::to_string(&report).expect("JSON"),
            r#"{"from":"2026-01-31T12:00:00Z","until":"2026-01-31T12:00:02Z","links":[{"link":"r0h1:egress","load_bps":1000000.0},{"link":"r0h1:ingress","load_bps":1000000.0}]}"#
        );
        assert_eq!(reporter.report(Nanos(2)), None, "a window is sent once");
    }

    #[test]
    fn a_report_has_the_storage_of_the_volumes_and_none_while_a_volume_is_unreadable() {
        let mut reporter = reporter();
        let full = Some(Storage { used: Bytes(7), capacity: Bytes(9 << 20) });
        let mut hosts = |second, storage, unread: &[&str]| {
            let unread = unread.iter().map(|&why| why.to_owned()).collect();
            let events = reporter.read(&Reading { storage, unread, ..reading(second, 1_000) });
            let report = reporter.report(Nanos(second * Nanos::SECOND.0)).map(|report| report.hosts);
            (serde_json::to_string(&report).expect("JSON"), events.len())
        };
        assert_eq!(hosts(0, full, &[]), ("null".to_owned(), 0));
        let expected = r#"[{"host":"r0h1","stored":"7B","storage":"9MiB"}]"#;
        assert_eq!(hosts(1, full, &[]), (expected.to_owned(), 0));
        let unreadable = "used bytes: volume `/data/1`: No such file or directory";
        assert_eq!(hosts(2, None, &[unreadable]), ("[]".to_owned(), 1));
        assert_eq!(hosts(3, None, &[unreadable]), ("[]".to_owned(), 0), "the event is logged once");
        assert_eq!(hosts(4, full, &[]).0, expected);
    }

    #[test]
    fn the_next_report_has_the_traffic_of_pods_once_and_pods_without_counters_are_logged_once() {
        let mut reporter = reporter();
        let mut read = |second: u64, bytes: Option<u64>| {
            let count = |bytes| Count { bytes, packets: bytes };
            let pod =
                |bytes| Pod { id: PodId(0xa1), network: 7, received: count(bytes), sent: count(2 * bytes) };
            let left_out = LeftOut { host_network: 3, ..LeftOut::default() };
            let pods = bytes.map(|bytes| Pods { pods: vec![pod(bytes)], left_out });
            let events = reporter.read(&Reading { pods, ..reading(second, 1_000) });
            let report = reporter.report(Nanos(second * Nanos::SECOND.0)).map(|report| report.pods);
            (serde_json::to_string(&report).expect("JSON"), events)
        };
        let (report, events) = read(0, Some(0));
        assert_eq!(report, "null");
        assert!(matches!(events.as_slice(), [Event::PodsLeftOut(left_out)] if left_out.host_network == 3));
        assert_eq!(read(1, None), ("[]".to_owned(), Vec::new()));
        let expected = r#"[{"pod":"000000000000000000000000000000a1","host":"r0h1","egress_bps":16000,"ingress_bps":8000}]"#;
        assert_eq!(read(2, Some(2_000)), (expected.to_owned(), Vec::new()), "the event is logged once");
        assert_eq!(read(3, None).0, "[]");
    }

    #[test]
    fn after_an_outage_only_the_number_of_dropped_windows_is_reported() {
        let mut reporter = reporter();
        let rejection = || Err(Rejection::new("connection refused"));
        let (mut sent, mut events) = (0, 0);
        for second in 0..1_000 {
            let now = Nanos(second * Nanos::SECOND.0);
            reporter.read(&reading(second, 1_000 * second));
            if reporter.report(now).is_some() {
                sent += 1;
                events += reporter.process_reply(now, rejection(), 0.5).len();
            }
        }
        assert!(sent == events && (15..60).contains(&sent), "the waits grow: {sent}");
        reporter.read(&reading(2_000, 2_000_000));
        assert!(reporter.report(Nanos(2_000 * Nanos::SECOND.0)).is_some());
        let acceptance = |links| {
            let skipped = SkippedParts { stale: 2 - links, down: 0 };
            Ok(Acceptance { links, skipped, ..Acceptance::default() })
        };
        let events = reporter.process_reply(Nanos(0), acceptance(2), 0.5);
        // There were 1,000 windows, and only the last one was accepted.
        assert_eq!(events, [Event::Reports { dropped: 999 }]);
        reporter.read(&reading(2_001, 2_000_000));
        assert!(reporter.report(Nanos(2_001 * Nanos::SECOND.0)).is_some());
        assert_eq!(reporter.process_reply(Nanos(0), acceptance(2), 0.5), [], "the event is logged once");
        assert_eq!(reporter.process_reply(Nanos(0), acceptance(0), 0.5), [Event::Stale]);
    }

    #[test]
    fn an_interval_that_does_not_fit_and_clamped_loads_are_logged_once() {
        let mut reporter = reporter();
        let mut reply = |interval_s, clamped: &[&str]| {
            let clamped_names = clamped.iter().map(|&name| name.to_owned()).collect();
            let acceptance = Acceptance { links: 2, interval_s, clamped_names, ..Acceptance::default() };
            let mut events = reporter.process_reply(Nanos(0), Ok(acceptance), 0.5);
            events.retain(|event| *event != Event::Reports { dropped: 0 });
            events
        };
        // The agent reports every second.
        for fits in [None, Some(0.7), Some(1.0), Some(5.0)] {
            assert_eq!(reply(fits, &[]), []);
        }
        assert_eq!(reply(Some(0.2), &[]), [Event::Rare { own: Nanos::SECOND, needed_s: 0.2 }]);
        assert_eq!(reply(Some(0.2), &["r0h1:egress"]), [Event::Clamped("r0h1:egress".to_owned())]);
        assert_eq!(reply(Some(0.2), &["r0h1:egress"]), []);
    }

    #[test]
    fn disks_have_their_cluster_names_and_problems_are_logged_once() {
        let disk = |name: &str, second: u64| Disk {
            name: name.to_owned(),
            physical: !name.starts_with("md"),
            counted: true,
            busy_ms: 250 * second,
            waited_ms: 500 * second,
            written: 125_000 * second,
            ..Disk::default()
        };
        let disks = |second| ["sda", "sdb", "md0"].map(|name| disk(name, second)).to_vec();
        let named = |names: &[(&str, &str)]| {
            Disks::new(names.iter().map(|&(disk, name)| (disk.to_owned(), name.to_owned())))
        };
        for (selected, expected) in [
            (named(&[]), vec!["r0h1:sda", "r0h1:sdb"]),
            (named(&[("sdb", "disk0")]), vec!["r0h1:disk0"]),
            (named(&[("md0", "array"), ("sdx", "disk1")]), vec!["r0h1:array"]),
        ] {
            let missing = selected.missing(&disks(0)).count();
            let mut reporter = Reporter { disks: selected, ..reporter() };
            let events = reporter.read(&Reading { disks: disks(0), ..reading(0, 1_000) });
            assert_eq!(events.len(), missing, "{events:?}");
            assert_eq!(
                reporter.read(&Reading { disks: disks(2), ..reading(2, 2_000) }),
                [],
                "the event is logged once"
            );
            let devices = reporter.report(Nanos(2)).expect("a window").devices;
            let names: Vec<_> = devices.iter().map(|device| device.device.as_str()).collect();
            assert_eq!(names, expected);
            let Device { busy, write_bps, queue, .. } = devices[0];
            assert_eq!((busy, write_bps, queue), (0.25, 1e6, 0.5));
            let unknown_devices = || vec![names[0].to_owned()];
            let acceptance =
                || Ok(Acceptance { links: 2, unknown_devices: unknown_devices(), ..Acceptance::default() });
            let events = reporter.process_reply(Nanos(2), acceptance(), 0.5);
            assert_eq!(events[1..], [Event::NoDevice(names[0].to_owned())]);
            assert_eq!(reporter.process_reply(Nanos(3), acceptance(), 0.5), []);
        }
    }

    #[test]
    fn uncounted_disks_are_logged_once_and_a_sole_counted_one_is_skipped() {
        let disks = |counted: &[(&str, bool)]| -> Vec<Disk> {
            let disk = |&(name, counted): &(&str, bool)| Disk {
                name: name.to_owned(),
                physical: true,
                counted,
                ..Disk::default()
            };
            counted.iter().map(disk).collect()
        };
        let named = |disk: &str| vec![(disk.to_owned(), "disk0".to_owned())];
        let (not_counted, sole_counted) =
            (Event::NotCounted("sda".to_owned()), Event::SoleCounted("sdb".to_owned()));
        for (selected, present, expected, events) in [
            (vec![], disks(&[("sda", true)]), vec!["r0h1:sda"], vec![]),
            (vec![], disks(&[("sda", false)]), vec![], vec![not_counted.clone()]),
            (
                vec![],
                disks(&[("sda", false), ("sdb", true)]),
                vec![],
                vec![not_counted.clone(), sole_counted],
            ),
            (
                vec![],
                disks(&[("sda", false), ("sdb", true), ("sdc", true)]),
                vec!["r0h1:sdb", "r0h1:sdc"],
                vec![not_counted.clone()],
            ),
            (named("sdb"), disks(&[("sda", false), ("sdb", true)]), vec!["r0h1:disk0"], vec![]),
            (named("sda"), disks(&[("sda", false), ("sdb", true)]), vec![], vec![not_counted]),
        ] {
            let mut reporter = Reporter { disks: Disks::new(selected), ..reporter() };
            assert_eq!(reporter.read(&Reading { disks: present.clone(), ..reading(0, 1_000) }), events);
            assert_eq!(reporter.read(&Reading { disks: present, ..reading(2, 2_000) }), []);
            let devices = reporter.report(Nanos(2)).expect("a window").devices;
            let names: Vec<_> = devices.iter().map(|device| device.device.as_str()).collect();
            assert_eq!(names, expected);
        }
    }
}
