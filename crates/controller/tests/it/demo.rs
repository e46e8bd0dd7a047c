//! Output of the demo, and its absence without `--demo`.

use crate::support::{Server, agent, frozen_clock, service};
use leeward_testing::clusters::RACKS_2X2;
use leeward_testing::rows::{check_rows, equal};
use serde_json::{Value, json};

fn server(demo: bool) -> Server {
    let mut service = service(RACKS_2X2, "", frozen_clock());
    service.demo = demo;
    Server::start(service)
}

fn put(server: &Server, demo: &Value) -> (u16, Value) {
    let request = agent().put(server.url("/v1/demo")).header("content-type", "application/json");
    let mut response = request.send(demo.to_string()).expect("the service answers");
    let text = response.body_mut().read_to_string().expect("a text");
    (response.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::Null))
}

fn comparison() -> Value {
    let arm = |name: &str, up: f64| {
        json!({
            "name": name, "policy": "borg", "hot_racks": 1, "hot_share": 0.5,
            "racks": [{"rack": "r0", "up": up, "down": 1.25}, {"rack": "r1", "up": null, "down": 0.0}],
        })
    };
    let course = |name: &str| json!({ "name": name, "hot_share": [null, 0.5] });
    json!({
        "time": "2026-01-31T12:30:00Z", "speed": 30.0, "arms": [arm("default", 0.9), arm("leeward", 0.2)],
        "history": {"step_s": 30.0, "arms": [course("default"), course("leeward")]},
    })
}

#[test]
fn without_demo_mode_the_demo_operations_return_404() {
    let server = server(false);
    assert_eq!(server.get("/v1/demo").0, 404);
    let (status, problem) = put(&server, &comparison());
    assert_eq!((status, &problem["type"]), (404, &json!("urn:leeward:problem:not-found")));
    assert_eq!(server.get("/v1/status").2["demo"], Value::Null);
}

#[test]
fn the_demo_returns_the_last_comparison_put() {
    let server = server(true);
    assert_eq!(server.get("/v1/demo").0, 404, "no comparison was put yet");
    assert_eq!(server.get("/v1/status").2["demo"], Value::Null);
    let mut demo = comparison();
    for hot in [0.5, 0.0] {
        demo["arms"][1]["hot_share"] = json!(hot);
        assert_eq!(put(&server, &demo), (204, Value::Null));
        assert_eq!(server.get("/v1/demo").2, demo);
    }
    let about = json!({ "speed": 30.0, "arms": ["default", "leeward"] });
    assert_eq!(server.get("/v1/status").2["demo"], about);
}

#[test]
fn an_invalid_comparison_is_rejected_by_field_and_changes_nothing() {
    let server = server(true);
    assert_eq!(put(&server, &comparison()).0, 204);
    let long = "a".repeat(201);
    let racks: Vec<Value> = (0..10_001).map(|_| json!({ "rack": "r", "up": null, "down": null })).collect();
    let wrong = [
        ("/time", json!("yesterday"), "time"),
        ("/speed", json!(0), "speed"),
        ("/speed", json!("fast"), "speed"),
        ("/history/step_s", json!(-1), "history.step_s"),
        ("/arms/0/name", json!(""), "arms[0].name"),
        ("/arms/1/policy", json!(long), "arms[1].policy"),
        ("/arms/1/hot_share", json!(1.1), "arms[1].hot_share"),
        ("/arms/1/hot_racks", json!(3), "arms[1].hot_racks"),
        ("/arms/0/racks/1/down", json!(-0.1), "arms[0].racks[1].down"),
        ("/arms/0/racks", json!(racks), "arms[0].racks"),
        ("/arms", json!(vec![comparison()["arms"][0].clone(); 9]), "arms"),
        ("/history/arms/1/hot_share/1", json!(2), "history.arms[1].hot_share[1]"),
        ("/history/arms/0/hot_share", json!(vec![0.5; 10_001]), "history.arms[0].hot_share"),
    ];
    check_rows(wrong, |(at, value, field)| {
        let mut demo = comparison();
        *demo.pointer_mut(at).expect("a field of it") = value;
        let (status, problem) = put(&server, &demo);
        equal(&(status, problem["field"].as_str()), &(422_u16, Some(field)))
            .map_err(|failure| format!("{at}: {failure}"))
    });
    assert_eq!(server.get("/v1/demo").2, comparison());
}
