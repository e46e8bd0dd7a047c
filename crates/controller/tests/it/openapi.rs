//! The OpenAPI document, and the reference of the API in the book.

use std::collections::BTreeSet;

use leeward_testing::clusters::RACKS_2X2;
use serde_json::{Value, json};

use crate::support::{Server, frozen_clock, service};

/// Prefix of references to schemas.
const SCHEMAS: &str = "#/components/schemas/";
/// The reference page.
const REFERENCE: &str = include_str!("../../../../docs/reference/http-api.md");

/// The document of a running service.
fn document() -> Value {
    let server = Server::start(service(RACKS_2X2, "", frozen_clock()));
    let (status, media_type, document) = server.get("/v1/openapi.json");
    assert_eq!((status, media_type.as_str()), (200, "application/json"));
    assert_eq!(document["openapi"], json!("3.1.0"));
    document
}

fn walk(value: &Value, visit: &mut impl FnMut(&Value)) {
    visit(value);
    match value {
        Value::Object(fields) => fields.values().for_each(|value| walk(value, visit)),
        Value::Array(values) => values.iter().for_each(|value| walk(value, visit)),
        _ => {}
    }
}

#[test]
fn every_reference_resolves_and_every_schema_is_used() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().expect("types");
    let mut used = BTreeSet::new();
    walk(&document, &mut |value| {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            let name = reference.strip_prefix(SCHEMAS).expect("a type");
            assert!(schemas.contains_key(name), "{reference}");
            used.insert(name.to_owned());
        }
    });
    let unused: Vec<&String> = schemas.keys().filter(|name| !used.contains(*name)).collect();
    assert_eq!(unused, Vec::<&String>::new());
}

#[test]
fn response_fields_are_required_and_request_fields_may_be_optional() {
    let document = document();
    let required = |name: &str| document["components"]["schemas"][name]["required"].to_string();
    assert!(required("ArmRack").contains("up") && !required("ArmRackBody").contains("up"));
    let put = &document["paths"]["/v1/demo"]["put"]["requestBody"]["content"]["application/json"];
    assert_eq!(put["schema"]["$ref"], "#/components/schemas/DemoBody");
    let demo = &document["components"]["schemas"]["DemoBody"]["properties"]["arms"];
    assert_eq!(demo["items"]["$ref"], "#/components/schemas/ArmBody");
    assert!(required("Link").contains("measured_bps") && !required("Decision").contains("promise"));
    assert!(
        document["components"]["schemas"].get("ClusterFileBody").is_none(),
        "a cluster file has the same schema in requests and responses"
    );
}

#[test]
fn parameters_have_schemas() {
    let document = document();
    let parameters = document["paths"]["/v1/history"]["get"]["parameters"].as_array().expect("a list");
    let schema = |name: &str| {
        let parameter = parameters.iter().find(|parameter| parameter["name"] == name);
        parameter.expect("a parameter")["schema"].clone()
    };
    assert_eq!(schema("since"), json!({ "type": "string", "format": "date-time" }));
    let step = schema("step_s");
    assert_eq!(
        (&step["minimum"], &step["maximum"], &step["multipleOf"]),
        (&json!(10), &json!(86400), &json!(10))
    );
    assert_eq!(document["components"]["schemas"]["Whose"]["enum"], json!(["rack", "host"]));
}

#[test]
fn the_reference_lists_all_operations_with_their_roles() {
    let document = document();
    let is_row = |line: &&str| {
        let method = line.strip_prefix("| `").and_then(|line| line.split_once(" /"));
        method.is_some_and(|(method, _)| method.bytes().all(|byte| byte.is_ascii_uppercase()))
    };
    let columns = |row: &str| row.splitn(4, '|').take(3).collect::<Vec<_>>().join("|");
    let listed: BTreeSet<String> = REFERENCE.lines().filter(is_row).map(columns).collect();
    let mut offered = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let role = operation["security"][0]["bearer"][0].as_str().unwrap_or("none");
            offered.insert(format!("| `{} {path}` | {role} ", method.to_uppercase()));
        }
    }
    assert_eq!(listed, offered);
    let tags = document["tags"].as_array().expect("tags").iter();
    let tags: Vec<String> = tags.map(|tag| format!("`{}`", tag["name"].as_str().expect("a name"))).collect();
    let [first @ .., last] = tags.as_slice() else { panic!("there is no tag") };
    let tags = format!("Its tags are {} and {last}.", first.join(", "));
    assert!(REFERENCE.contains(&tags), "{tags}");
}
