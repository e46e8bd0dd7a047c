//! Tests of the queue: order, limits, changes, and ends of requests.

use leeward_calculus::TokenBucket;
use leeward_slo::Slo;

use super::streams::{MOST_CLIENTS, MOST_FORMER, OTHERS};
use super::*;
use crate::workloads::{Entry, Workload};

const DEVICE: &str = r#"{"table": [{"size_bytes": 4096, "read_iops": 1000, "write_iops": 1000}]}"#;
const MILLI: u64 = 1_000_000;

fn queue(outstanding: u32) -> Queue<&'static str> {
    ordered(Order::Priority, outstanding)
}

fn ordered(order: Order, outstanding: u32) -> Queue<&'static str> {
    let device = Device::from_text("ssd.json", DEVICE).unwrap();
    let caps = Caps { outstanding, ..Caps::NONE };
    Queue::new(order, caps, Some(Arc::new(device)), vec!["nas:/vol".to_owned()], None).unwrap()
}

fn entry(name: &str, priority: u32, client: &str, limits: &[(f64, f64)]) -> Entry {
    let limits = limits.iter().map(|&(rate, burst)| TokenBucket::new(rate, burst).unwrap()).collect();
    let slo = Some(Slo { percentile: 99.0, latency: 0.01 });
    let (name, over) = (name.to_owned(), OverLimit::Demoted);
    let workload = Workload { name, priority, limits, over, slo };
    Entry { workload, clients: vec![client.parse().unwrap()], export: None }
}

fn workloads(entries: Vec<Entry>) -> Arc<Workloads> {
    Arc::new(Workloads::new(1, entries).unwrap())
}

fn read(queue: &mut Queue<&'static str>, millis: u64, connection: ConnectionNumber, name: &'static str) {
    let item = Item { kind: Kind::Read, size: 4096, place: 0 };
    assert_eq!(queue.arrive(Nanos(millis * MILLI), Nanos(0), connection, item, name), None);
}

fn start(queue: &mut Queue<&'static str>, millis: u64) -> Option<(&'static str, Running)> {
    queue.start(Nanos(millis * MILLI)).map(|started| (started.payload, started.running))
}

#[test]
fn each_order_starts_the_same_requests_in_its_own_way() {
    for (order, expected) in [
        (Order::Priority, ["mail 1", "mail 2", "mail 3", "web"]),
        (Order::Fifo, ["mail 1", "mail 2", "web", "mail 3"]),
        (Order::Shares, ["mail 1", "web", "mail 2", "mail 3"]),
        (Order::Deadline, ["web", "mail 1", "mail 2", "mail 3"]),
    ] {
        let mut queue = ordered(order, 1);
        let mut web = entry("web", 1, "10.0.0.2", &[]);
        web.workload.slo = Some(Slo { percentile: 99.0, latency: 0.001 });
        queue.replace(Nanos(0), workloads(vec![entry("mail", 0, "10.0.0.1", &[]), web])).unwrap();
        let [mail, web, other] =
            ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|client| queue.open(client.parse().unwrap(), 0));
        read(&mut queue, 0, other, "other");
        let (_, mut running) = start(&mut queue, 0).unwrap();
        for (connection, name) in [(mail, "mail 1"), (mail, "mail 2"), (web, "web"), (mail, "mail 3")] {
            read(&mut queue, 0, connection, name);
        }
        let started = expected.map(|_| {
            queue.complete(Nanos(MILLI), &running);
            let (name, next) = start(&mut queue, 1).unwrap();
            running = next;
            name
        });
        assert_eq!(started, expected, "{order:?}");
    }
}

#[test]
fn the_highest_priority_within_its_limits_starts_first_and_requests_over_a_limit_last() {
    let mut queue = queue(1);
    let entries = vec![entry("mail", 0, "10.0.0.1", &[(0.1, 0.001)]), entry("web", 1, "10.0.0.2", &[])];
    queue.replace(Nanos(0), workloads(entries)).unwrap();
    let [mail, web, other] =
        ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|client| queue.open(client.parse().unwrap(), 0));
    read(&mut queue, 0, other, "other");
    let (first, mut running) = start(&mut queue, 0).unwrap();
    assert_eq!(first, "other");
    // The second request of mail is over its limit.
    for (connection, name) in [(web, "web"), (other, "other"), (mail, "mail"), (mail, "mail over")] {
        read(&mut queue, 1, connection, name);
    }
    assert_eq!(start(&mut queue, 1), None);
    assert_eq!(queue.depth(), (4, 1));
    for expected in ["mail", "web", "other", "mail over"] {
        queue.complete(Nanos(2 * MILLI), &running);
        let (name, next) = start(&mut queue, 2).unwrap();
        assert_eq!(name, expected);
        running = next;
    }
    queue.complete(Nanos(20 * MILLI), &running);
    let summaries = queue.summaries();
    let mail = summaries.iter().find(|summary| summary.workload == "mail").unwrap();
    assert_eq!((mail.reads, mail.over_limit, mail.late), (2, 1, 1));
    let other = summaries.iter().find(|summary| summary.workload == "client 10.0.0.3").unwrap();
    assert_eq!((other.reads, other.slo, other.priority), (2, None, None));
}

#[test]
fn waiting_requests_of_a_closed_connection_never_start() {
    let mut queue = queue(1);
    let [one, other] = ["10.0.0.1", "10.0.0.2"].map(|client| queue.open(client.parse().unwrap(), 0));
    for (connection, name) in [(one, "a"), (one, "b"), (other, "c"), (one, "d")] {
        read(&mut queue, 0, connection, name);
    }
    let (_, running) = start(&mut queue, 0).unwrap();
    queue.close(Nanos(0), one);
    queue.close(Nanos(0), one);
    let item = Item { kind: Kind::Read, size: 1, place: 0 };
    assert_eq!(queue.arrive(Nanos(0), Nanos(0), one, item, "e"), Some("e"));
    queue.release(Nanos(0), &running);
    queue.release(Nanos(0), &running);
    let (name, running) = start(&mut queue, 0).unwrap();
    assert_eq!((name, start(&mut queue, 0)), ("c", None));
    queue.complete(Nanos(MILLI), &running);
    assert_eq!(queue.depth(), (0, 0));
    // The number is used again.
    let new = queue.open("10.0.0.3".parse().unwrap(), 0);
    read(&mut queue, 1, new, "f");
    assert_eq!(start(&mut queue, 1).unwrap().0, "f");
}

#[test]
fn workloads_change_while_requests_wait() {
    let mut queue = queue(1);
    let rows = |mail, web| vec![entry("mail", mail, "10.0.0.1", &[]), entry("web", web, "10.0.0.2", &[])];
    queue.replace(Nanos(0), workloads(rows(0, 1))).unwrap();
    let [mail, web] = ["10.0.0.1", "10.0.0.2"].map(|client| queue.open(client.parse().unwrap(), 0));
    read(&mut queue, 0, mail, "first");
    let (_, running) = start(&mut queue, 0).unwrap();
    read(&mut queue, 0, mail, "mail");
    read(&mut queue, 0, web, "web");
    queue.replace(Nanos(0), workloads(rows(1, 0))).unwrap();
    queue.complete(Nanos(0), &running);
    let (name, running) = start(&mut queue, 0).unwrap();
    assert_eq!(name, "web");
    // Without a workload, the client of mail is best effort, and its waiting request is still served.
    queue.replace(Nanos(0), workloads(vec![entry("web", 0, "10.0.0.2", &[])])).unwrap();
    read(&mut queue, 0, mail, "best effort");
    queue.complete(Nanos(0), &running);
    for expected in ["mail", "best effort"] {
        let (name, running) = start(&mut queue, 0).unwrap();
        assert_eq!(name, expected);
        queue.complete(Nanos(0), &running);
    }
    let names: Vec<String> = queue.summaries().into_iter().map(|summary| summary.workload).collect();
    assert_eq!(names, ["mail", "web", "client 10.0.0.1"]);
}

#[test]
fn held_requests_start_at_a_time_and_demoted_ones_need_none() {
    for over in [OverLimit::Held, OverLimit::Demoted] {
        let mut queue = queue(u32::MAX);
        let mut mail = entry("mail", 0, "10.0.0.1", &[(0.1, 0.001)]);
        mail.workload.over = over;
        queue.replace(Nanos(0), workloads(vec![mail])).unwrap();
        let connection = queue.open("10.0.0.1".parse().unwrap(), 0);
        read(&mut queue, 0, connection, "first");
        read(&mut queue, 0, connection, "second");
        assert_eq!(start(&mut queue, 0).unwrap().0, "first");
        if over == OverLimit::Demoted {
            assert_eq!((start(&mut queue, 0).unwrap().0, queue.next_poll()), ("second", None));
            continue;
        }
        // Its work of 1 ms fits after 10 ms.
        assert_eq!(start(&mut queue, 9), None);
        let next = queue.next_poll().unwrap();
        assert!(next.0.abs_diff(10 * MILLI) < 10, "{next}");
        assert_eq!(queue.start(next).unwrap().payload, "second");
        assert_eq!(queue.next_poll(), None);
    }
}

#[test]
fn an_invalid_workload_changes_nothing() {
    let mut queue = queue(1);
    queue.replace(Nanos(0), workloads(vec![entry("mail", 0, "10.0.0.1", &[])])).unwrap();
    let invalid = workloads(vec![entry("web", 0, "10.0.0.1", &[(0.0, 1.0)])]);
    let error = queue.replace(Nanos(0), invalid).unwrap_err().to_string();
    assert_eq!(error, "workload web: a limit of rate 0: expected above 0");
    let names: Vec<String> = queue.summaries().into_iter().map(|summary| summary.workload).collect();
    assert_eq!(names, ["mail"]);
}

#[test]
fn former_workloads_have_counters_up_to_a_number_and_their_places_are_used_again() {
    let mut queue = queue(u32::MAX);
    for number in 0..2 * MOST_FORMER {
        let own = entry(&format!("w{number}"), 0, "10.0.0.1", &[]);
        queue.replace(Nanos(0), workloads(vec![own])).unwrap();
        let connection = queue.open("10.0.0.1".parse().unwrap(), 0);
        read(&mut queue, 0, connection, "x");
        let (_, running) = start(&mut queue, 0).unwrap();
        queue.complete(Nanos(0), &running);
        queue.close(Nanos(0), connection);
    }
    queue.replace(Nanos(0), workloads(Vec::new())).unwrap();
    let summaries = queue.summaries();
    let mut numbers: Vec<usize> =
        summaries.iter().map(|summary| summary.workload[1..].parse().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (MOST_FORMER..2 * MOST_FORMER).collect::<Vec<_>>());
    assert!(summaries.iter().all(|summary| summary.reads == 1));
    assert!(queue.streams.len() <= MOST_FORMER + 2, "{} streams", queue.streams.len());
    // One that comes back after that begins again.
    queue.replace(Nanos(0), workloads(vec![entry("w0", 0, "10.0.0.1", &[])])).unwrap();
    let again = queue.summaries().into_iter().find(|summary| summary.workload == "w0").unwrap();
    assert_eq!(again.reads, 0);
}

#[test]
fn a_former_workload_with_a_request_at_the_server_keeps_its_place() {
    let mut queue = queue(u32::MAX);
    queue.replace(Nanos(0), workloads(vec![entry("slow", 0, "10.0.0.1", &[])])).unwrap();
    let connection = queue.open("10.0.0.1".parse().unwrap(), 0);
    read(&mut queue, 0, connection, "x");
    let (_, running) = start(&mut queue, 0).unwrap();
    for number in 0..MOST_FORMER + 10 {
        let own = entry(&format!("w{number}"), 0, "10.0.0.2", &[]);
        queue.replace(Nanos(0), workloads(vec![own])).unwrap();
    }
    queue.complete(Nanos(MILLI), &running);
    let summaries = queue.summaries();
    let reads = |name: &str| summaries.iter().find(|one| one.workload == name).map(|one| one.reads);
    assert_eq!((reads("slow"), summaries.iter().map(|one| one.reads).sum::<u64>()), (Some(1), 1));
}

#[test]
fn waiting_requests_of_a_workload_that_goes_are_best_effort_and_its_tokens_stay() {
    for over in [OverLimit::Held, OverLimit::Demoted] {
        let mut queue = queue(1);
        // Tokens for one request in ten milliseconds.
        let mut mail = entry("mail", 0, "10.0.0.1", &[(0.1, 0.001)]);
        mail.workload.over = over;
        let both = vec![mail, entry("web", 1, "10.0.0.2", &[])];
        queue.replace(Nanos(0), workloads(both.clone())).unwrap();
        let [mail, web] = ["10.0.0.1", "10.0.0.2"].map(|client| queue.open(client.parse().unwrap(), 0));
        read(&mut queue, 0, web, "first");
        let (_, mut running) = start(&mut queue, 0).unwrap();
        for (connection, name) in [(mail, "mail"), (mail, "mail over"), (web, "web")] {
            read(&mut queue, 0, connection, name);
        }
        // The lease ends. Nothing waits for tokens, and nothing goes before a promise.
        queue.replace(Nanos(MILLI), workloads(vec![both[1].clone()])).unwrap();
        for expected in ["web", "mail", "mail over"] {
            queue.complete(Nanos(MILLI), &running);
            let (name, next) = start(&mut queue, 1).expect(expected);
            assert_eq!(name, expected, "{over:?}");
            running = next;
        }
        queue.complete(Nanos(MILLI), &running);
        // The lease begins again: the tokens of before are not there again.
        queue.replace(Nanos(2 * MILLI), workloads(both)).unwrap();
        read(&mut queue, 2, mail, "mail");
        let started = start(&mut queue, 2);
        assert_eq!(
            started.map(|(_, running)| running.was_over),
            (over == OverLimit::Demoted).then_some(true)
        );
    }
}

#[test]
fn a_request_without_an_answer_is_a_late_one() {
    let mut queue = queue(u32::MAX);
    queue.replace(Nanos(0), workloads(vec![entry("mail", 0, "10.0.0.1", &[])])).unwrap();
    let connection = queue.open("10.0.0.1".parse().unwrap(), 0);
    let mut started = [(); 4].map(|()| {
        read(&mut queue, 0, connection, "x");
        start(&mut queue, 0).unwrap().1
    });
    queue.complete(Nanos(MILLI), &started[0]);
    // One that the server never answers, one whose connection to the server ended early, and one that never left.
    queue.release(Nanos(30_000 * MILLI), &started[1]);
    queue.release(Nanos(2 * MILLI), &started[2]);
    queue.withdraw(&started[3]);
    started.reverse();
    started.iter().for_each(|running| queue.release(Nanos(40_000 * MILLI), running));
    let mail = queue.summaries().remove(0);
    assert_eq!((mail.reads, mail.latency.requests, mail.late), (1, 3, 2));
    assert!(mail.latency.max_s.unwrap() >= 30.0, "{mail:?}");
    let counted = queue.counted(Nanos(40_000 * MILLI)).remove(0);
    assert_eq!((counted.counters.requests, counted.counters.late), (3, 2));
}

#[test]
fn a_request_that_its_client_gave_up_is_late_once_it_has_waited_for_longer_than_its_slo() {
    let mut queue = queue(1);
    queue.replace(Nanos(0), workloads(vec![entry("mail", 0, "10.0.0.1", &[])])).unwrap();
    let connection = queue.open("10.0.0.1".parse().unwrap(), 0);
    read(&mut queue, 0, connection, "started");
    let (_, running) = start(&mut queue, 0).unwrap();
    read(&mut queue, 0, connection, "long");
    read(&mut queue, 15, connection, "short");
    // The SLO is 10 ms.
    queue.leave(Nanos(20 * MILLI), connection);
    let item = Item { kind: Kind::Read, size: 1, place: 0 };
    assert_eq!(queue.arrive(Nanos(20 * MILLI), Nanos(0), connection, item, "after"), Some("after"));
    assert_eq!(queue.depth(), (0, 1), "the request at the server keeps its place");
    queue.complete(Nanos(21 * MILLI), &running);
    queue.close(Nanos(22 * MILLI), connection);
    let mail = queue.summaries().remove(0);
    assert_eq!((mail.reads, mail.latency.requests, mail.late), (1, 2, 2));
}

#[test]
fn clients_without_a_workload_have_counters_up_to_a_number() {
    let mut queue = queue(u32::MAX);
    for number in 0..MOST_CLIENTS as u32 + 50 {
        let connection = queue.open(IpAddr::V4((0x0a00_0000 + number).into()), 0);
        read(&mut queue, 0, connection, "x");
        let (_, running) = start(&mut queue, 0).unwrap();
        queue.complete(Nanos(0), &running);
        queue.close(Nanos(0), connection);
    }
    let summaries = queue.summaries();
    assert_eq!(summaries.len(), MOST_CLIENTS + 1);
    assert_eq!(summaries.last().map(|last| (last.workload.as_str(), last.reads)), Some((OTHERS, 50)));
}
