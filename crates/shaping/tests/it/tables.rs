//! Tables of caps, orders and limits, on small cases that can be followed by hand.

use leeward_fabric::Nanos;
use leeward_shaping::{Batch, Caps, Order, OverLimit, Request, Server, StartCaps, Workload};
use leeward_testing::rows::{check_rows, equal};
use leeward_traces::device::Device;

use crate::support::{limit, read, starts, workload, write};

/// Two reads, two consecutive writes and a read of one workload, of 4 bytes each.
fn requests() -> [Request; 5] {
    [read(4), read(4), write(4, 100), write(4, 104), read(4)]
}

/// Requests of one workload at once; their number that starts.
fn started(caps: Caps, requests: &[Request]) -> usize {
    let mut server = Server::new(Order::Priority, caps).unwrap();
    let id = server.add(&workload(0)).unwrap();
    for &request in requests {
        server.arrive(Nanos(0), id, request, ()).unwrap();
    }
    starts(&mut server, 0).len()
}

#[test]
fn the_first_request_that_a_cap_stops_stops_all_others() {
    let none = Caps::NONE;
    let batch = |bytes, gap| Some(Batch { bytes, gap });
    let rows = [
        (none, 5),
        (Caps { outstanding: 2, ..none }, 2),
        (Caps { reads: 1, ..none }, 1),
        (Caps { reads: 2, ..none }, 4),
        (Caps { writes: 1, ..none }, 3),
        (Caps { read_bytes: 4, ..none }, 1),
        (Caps { read_bytes: 11, ..none }, 4),
        (Caps { read_bytes: 12, ..none }, 5),
        // One write may always be in progress.
        (Caps { write_bytes: 3, ..none }, 3),
        (Caps { write_bytes: 7, ..none }, 3),
        (Caps { write_bytes: 8, ..none }, 5),
        // The two writes are one batch of 8 bytes, and so one of three requests.
        (Caps { outstanding: 3, ..none }, 3),
        (Caps { outstanding: 3, batch: batch(8, 0), ..none }, 4),
        (Caps { outstanding: 4, batch: batch(8, 0), ..none }, 5),
        (Caps { outstanding: 3, batch: batch(7, 0), ..none }, 3),
    ];
    check_rows(rows, |(caps, expected)| equal(&started(caps, &requests()), &expected));
}

#[test]
fn writes_near_each_other_in_order_form_a_batch() {
    // Offsets of three writes of 4 bytes, the gap, and the number of writes in the first batch.
    let rows = [
        ([0, 4, 8], 0, 3),
        ([0, 4, 9], 0, 2),
        ([0, 4, 9], 1, 3),
        ([8, 4, 0], 0, 1),
        ([8, 4, 0], 8, 3),
        ([0, 100, 104], 0, 1),
    ];
    check_rows(rows, |(offsets, gap, expected)| {
        let caps = Caps { outstanding: 1, batch: Some(Batch { bytes: 1000, gap }), ..Caps::NONE };
        equal(&started(caps, &offsets.map(|offset| write(4, offset))), &expected)
    });
}

#[test]
fn a_batch_frees_its_place_with_its_last_request() {
    let caps = Caps { outstanding: 1, batch: Some(Batch { bytes: 8, gap: 0 }), ..Caps::NONE };
    let mut server = Server::new(Order::Priority, caps).unwrap();
    let id = server.add(&workload(0)).unwrap();
    for (at, request) in [write(4, 0), write(4, 4), write(4, 8)].into_iter().enumerate() {
        server.arrive(Nanos(0), id, request, at).unwrap();
    }
    let first = server.poll(Nanos(0)).unwrap();
    let second = server.poll(Nanos(0)).unwrap();
    assert_eq!((first.joins, second.joins, server.poll(Nanos(0))), (false, true, None));
    // On a real device, the requests of a batch may end in any order.
    assert!(server.complete(second.ticket));
    assert_eq!(server.poll(Nanos(0)), None);
    assert!(server.complete(first.ticket));
    assert_eq!(starts(&mut server, 0), [2]);
}

#[test]
fn starts_behind_a_higher_priority_are_counted_from_the_oldest_one() {
    // Caps on requests and bytes, and the numbers of low reads of 4 bytes that start behind one high read, and when it
    // has ended.
    let rows = [
        ((0, u64::MAX), 0, 5),
        ((1, u64::MAX), 1, 4),
        ((3, u64::MAX), 3, 2),
        ((9, u64::MAX), 5, 0),
        ((9, 0), 0, 5),
        ((9, 1), 1, 4),
        ((9, 4), 1, 4),
        ((9, 5), 2, 3),
        ((9, 9), 3, 2),
    ];
    check_rows(rows, |((requests, bytes), behind, after)| {
        let caps = Caps { behind: Some(StartCaps { requests, bytes }), ..Caps::NONE };
        let mut server = Server::new(Order::Priority, caps).unwrap();
        let [high, low] = [0, 5].map(|priority| server.add(&workload(priority)).unwrap());
        server.arrive(Nanos(0), high, read(4), "high").unwrap();
        let start = server.poll(Nanos(0)).unwrap();
        for _ in 0..5 {
            server.arrive(Nanos(0), low, read(4), "low").unwrap();
        }
        let first = starts(&mut server, 0).len();
        server.complete(start.ticket);
        equal(&(first, starts(&mut server, 0).len()), &(behind, after))
    });
}

#[test]
fn each_order_serves_three_workloads_in_its_own_way() {
    // Workloads a, b and c with priorities 2, 1 and 0, weights 1, 2 and 4, and deadlines 30, 10 and 20.
    let rows = [
        (Order::Priority, "ccbbaa"),
        (Order::Fifo, "abcabc"),
        (Order::Shares, "abccba"),
        (Order::Deadline, "bbccaa"),
    ];
    check_rows(rows, |(order, expected)| {
        let mut server = Server::new(order, Caps::NONE).unwrap();
        let all = [(2, 1.0, 30, 'a'), (1, 2.0, 10, 'b'), (0, 4.0, 20, 'c')];
        let ids =
            all.map(|(priority, weight, ..)| server.add(&Workload { weight, ..workload(priority) }).unwrap());
        for number in 0..6 {
            let at = number as usize % 3;
            let (_, _, deadline, payload) = all[at];
            let request = Request { number, deadline: Nanos(deadline), ..read(4) };
            server.arrive(Nanos(0), ids[at], request, payload).unwrap();
        }
        equal(&starts(&mut server, 0).into_iter().collect::<String>(), expected)
    });
}

#[test]
fn requests_over_a_limit_are_held_or_come_last() {
    // Requests a, b and c of one workload whose limit lets one of them pass, and d of a workload of lower priority. Starts
    // at times 0, 1000 and 2000; a bucket of 4 leaks in 2000 ns.
    let rows = [(OverLimit::Held, ["ad", "", "b"]), (OverLimit::Demoted, ["adbc", "", ""])];
    check_rows(rows, |(over, expected)| {
        let mut server = Server::new(Order::Priority, Caps::NONE).unwrap();
        let limited = Workload { limits: vec![limit(0.002, 4.0)], over, ..workload(0) };
        let ids = [server.add(&limited).unwrap(), server.add(&workload(1)).unwrap()];
        for (of, payload) in [(0, 'a'), (0, 'b'), (0, 'c'), (1, 'd')] {
            server.arrive(Nanos(0), ids[of], read(4), payload).unwrap();
        }
        let times = [0, 1000, 2000];
        let actual = times.map(|now| starts(&mut server, now).into_iter().collect::<String>());
        equal(&actual, &expected.map(str::to_owned))
    });
}

#[test]
fn the_caps_of_a_device_file_are_those_of_its_enforcer() {
    let device = r#"{"table": [{"size_bytes": 4096, "read_iops": 1000, "write_iops": 1000}],
        "outstanding_reads": 4, "outstanding_write_bytes": 65536, "behind": {"requests": 8},
        "write_batch": {"bytes": 32768, "gap_bytes": 512}}"#;
    let device = Device::from_text("d.json", device).unwrap();
    let caps = Caps::of_profile(&device.outstanding, 7);
    let expected = Caps {
        outstanding: 7,
        reads: 4,
        write_bytes: 65536,
        behind: Some(StartCaps { requests: 8, bytes: u64::MAX }),
        batch: Some(Batch { bytes: 32768, gap: 512 }),
        ..Caps::NONE
    };
    assert_eq!(caps, expected);
    assert_eq!(Caps::default(), Caps::NONE);
}
