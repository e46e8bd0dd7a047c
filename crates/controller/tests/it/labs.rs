//! Labs with circuits that stand on the machine of the service.

use std::fs;
use std::path::Path;

use leeward_lab::{LabName, Part, State};
use leeward_testing::clusters::RACKS_2X2;
use serde_json::{Value, json};

use crate::support::{Server, frozen_clock, service};

fn view() -> Value {
    json!({
        "at_s": 1.5, "dilation": 240, "racks": 2, "circuits": [[0, 1]],
        "queued_packets": [0, 3, 0, 0], "capacity_packets": [0, 16, 16, 0],
        "packet_bytes": [1500, 0], "circuit_bytes": [9000, 0], "dropped_packets": 2, "lost_packets": 1,
        "demand_bytes": [], "late_p99_s": null,
    })
}

/// Items of the list. Other programs may have labs on this machine at the same time.
fn listed(server: &Server, prefix: &str) -> Vec<Value> {
    let (status, media_type, labs) = server.get("/v1/labs?limit=1000");
    assert_eq!((status, media_type.as_str()), (200, "application/json"));
    let items = labs["items"].as_array().expect("a list").iter();
    items.filter(|lab| lab["name"].as_str().expect("a name").starts_with(prefix)).cloned().collect()
}

#[test]
fn labs_that_stand_are_listed_by_name_with_their_views() {
    let server = Server::start(service(RACKS_2X2, "", frozen_clock()));
    let prefix = format!("test-list-{}", std::process::id());
    assert_eq!(listed(&server, &prefix), Vec::<Value>::new());
    let root = if rustix::process::geteuid().is_root() { Ok(()) } else { Err("root is needed") };
    if leeward_testing::require("labs", root).is_none() {
        return;
    }
    let stand = |name: &str| {
        let name: LabName = name.parse().expect("a valid name");
        let folder = Path::new("/run/leeward-labs").join(name.as_str());
        let path = folder.join("view.json");
        let parts = vec![Part::Folder(folder.clone()), Part::File(path.clone())];
        let state = State::begin(&name, parts, Vec::new()).expect("a new name");
        fs::create_dir(folder).expect("root may write");
        fs::write(path, view().to_string()).expect("root may write");
        state
    };
    let names = [format!("{prefix}-a"), format!("{prefix}-b")];
    let labs = [stand(&names[1]), stand(&names[0])];
    let expected = names.map(|name| {
        let mut lab = view();
        lab["name"] = name.into();
        lab
    });
    assert_eq!(listed(&server, &prefix), expected);
    assert_eq!(server.get("/v1/labs?limit=1").2["items"].as_array().map(Vec::len), Some(1));
    for lab in labs {
        lab.remove().expect("it is ours");
    }
    assert_eq!(listed(&server, &prefix), Vec::<Value>::new());
}
