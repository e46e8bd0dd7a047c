//! The history of one hour, read in steps of any length from any time.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::{Server, service};
use jiff::Timestamp;
use leeward_fabric::Nanos;
use leeward_records::Clock;
use leeward_testing::clusters::RACKS_2X2;
use serde_json::{Value, json};

/// Seconds on the clock, which the test advances.
static SECONDS: AtomicU64 = AtomicU64::new(0);

/// A service with reports of one link every five seconds, over `seconds`. Each step of ten seconds adds a tenth of the
/// interface's rate to the load, and after ten steps the load starts again at zero.
fn server_with_history(seconds: u64) -> Server {
    let began = "2026-01-31T12:00:00Z".parse().expect("a time");
    let clock = Clock::new(began, || Nanos(SECONDS.load(Ordering::Relaxed) * Nanos::SECOND.0));
    let server = Server::start(service(RACKS_2X2, "", clock));
    for second in (5..=seconds).step_by(5) {
        SECONDS.store(second, Ordering::Relaxed);
        let time = |second: u64| format!("2026-01-31T12:{:02}:{:02}Z", second / 60, second % 60);
        let load = 1e8 * ((second - 1) / 10 % 10) as f64;
        let link = json!({ "link": "r0h0:egress", "load_bps": load });
        let body = json!({ "from": time(second - 1), "until": time(second), "links": [link] });
        let (status, _, summary) = server.post("/v1/reports", &body);
        assert_eq!(status, 200, "{summary}");
        // A read publishes the current state and adds it to the history.
        assert_eq!(server.get("/v1/links/r0h0:egress").2["seen"], true);
    }
    server
}

/// Start of a history, in seconds.
fn second(history: &Value) -> i64 {
    let from: Timestamp = history["from"].as_str().and_then(|from| from.parse().ok()).expect("a time");
    from.as_second()
}

#[test]
fn history_steps_are_bounded_and_invalid_queries_name_their_field() {
    let server = server_with_history(300);
    let series = |query: &str| {
        let (status, _, history) = server.get(&format!("/v1/links/r0h0:egress/history{query}"));
        assert_eq!(status, 200, "{query}: {history}");
        history
    };
    let whole = series("");
    let each = whole["series"][0]["utilization"].as_array().expect("a list").clone();
    assert!(whole["step_s"] == 10 && (20..=30).contains(&each.len()), "{whole}");
    assert!(each.iter().filter(|share| share.is_f64()).count() >= 20, "{whole}");
    for step in [20, 50, 300, 3_600] {
        let joined = series(&format!("?step_s={step}"));
        let all = joined["series"][0]["utilization"].as_array().expect("a list");
        assert_eq!(joined["step_s"], step);
        assert!(!all.is_empty() && all.len() as i64 <= 300 / step + 2, "{step}: {joined}");
        for (at, share) in all.iter().enumerate() {
            // The mean over the stored steps inside this step.
            let begins = second(&joined) + at as i64 * step;
            let inside = |&(one, _): &(usize, &Value)| {
                (begins..begins + step).contains(&(second(&whole) + 10 * one as i64))
            };
            let parts = each.iter().enumerate().filter(inside);
            let parts: Vec<f64> = parts.filter_map(|(_, share)| share.as_f64()).collect();
            let mean = (!parts.is_empty()).then(|| parts.iter().sum::<f64>() / parts.len() as f64);
            let same = mean.zip(share.as_f64()).is_some_and(|(mean, share)| (mean - share).abs() < 1e-5);
            assert!(same || (mean.is_none() && share.is_null()), "{step}, {at}: {share} for {mean:?}");
        }
    }
    for (since, steps) in [
        ("2026-01-31T12:00:00Z", 1),
        ("2026-01-31T12:02:00Z", 1),
        ("2026-01-31T12:59:00Z", 0),
        ("2500-01-01T00:00:00Z", 0),
    ] {
        let past = format!("?since={since}&step_s=3600");
        let (_, _, all) = server.get(&format!("/v1/history{past}&kind=host"));
        assert_eq!(all["series"][0]["utilization"].as_array().map(Vec::len), Some(steps), "{since}: {all}");
        let (_, _, one) = server.get(&format!("/v1/hosts/r0h0/history{past}"));
        assert_eq!(one["links"][0]["utilization"].as_array().map(Vec::len), Some(steps), "{since}: {one}");
    }
    for wrong in ["0", "5", "15", "-10", "86410", "18446744073709551610", "18446744073709551616", "1e1", ""] {
        for path in ["/v1/history", "/v1/links/r0h0:egress/history", "/v1/hosts/r0h0/history"] {
            let (status, _, problem) = server.get(&format!("{path}?step_s={wrong}"));
            assert_eq!((status, &problem["field"]), (422, &json!("step_s")), "{path} {wrong}: {problem}");
        }
    }
}
