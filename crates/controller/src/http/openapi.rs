//! OpenAPI document, generated from the table of operations. OpenAPI 3.1 uses plain JSON schemas. The generator is
//! hand-written: the library `aide` wraps axum's router and needs a trait implementation for each extractor. `aide`
//! would not replace the table of operations, which also defines the role of each operation.

use std::collections::BTreeSet;

use leeward_records::schema::present;
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::table::{Content, Operation, Parameter, Subject, of};
use leeward_problems::{self as problems, Problem};

/// Describes all operations.
pub fn document(subjects: &[Subject]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        settings.transforms.push(Box::new(add_maxima));
    });
    // Request fields may be optional; response fields are always present.
    let mut requests = settings.clone().for_deserialize().into_generator();
    let mut responses = settings.for_serialize().into_generator();
    let problem = json!({ "application/problem+json": { "schema": of::<Problem>(&mut responses) } });
    let mut paths = Map::new();
    let operations = subjects
        .iter()
        .flat_map(|subject| subject.operations.iter().map(move |operation| (subject, operation)));
    for (subject, one) in operations {
        let mut answers = Map::new();
        for &(status, text, content) in one.answers {
            let content = match content {
                Content::Json(schema) => json!({ "application/json": { "schema": schema(&mut responses) } }),
                Content::Nothing => json!({}),
                Content::Stream(schema) => {
                    json!({ "text/event-stream": { "schema": schema(&mut responses) } })
                }
                Content::Text(media) => {
                    let text = json!({ "schema": { "type": "string" } });
                    media.iter().map(|&media| (media.to_owned(), text.clone())).collect::<Map<_, _>>().into()
                }
            };
            answers.insert(status.to_string(), json!({ "description": text, "content": content }));
        }
        for (status, title) in problems::statuses() {
            let response = json!({ "description": title, "content": problem });
            answers.entry(status.to_string()).or_insert(response);
        }
        let mut operation = json!({
            "operationId": operation_id(one),
            "summary": one.summary,
            "tags": [subject.name],
            "parameters": parameters(one, &mut requests),
            "responses": answers,
            "security": match one.role {
                Some(role) => json!([{ "bearer": [role.name()] }]),
                None => json!([]),
            },
        });
        if let Some(body) = one.body {
            let content = json!({ "application/json": { "schema": body(&mut requests) } });
            operation["requestBody"] = json!({ "required": true, "content": content });
        }
        let path = paths.entry(one.path).or_insert_with(|| json!({}));
        path[one.method.as_str().to_lowercase()] = operation;
    }
    let mut schemas = responses.take_definitions(true);
    let requests = requests.take_definitions(true);
    let differing = differing(&requests, &schemas);
    for (name, mut schema) in requests {
        redirect(&mut schema, &differing);
        let name = if differing.contains(&name) { name + BODY } else { name };
        schemas.insert(name, schema);
    }
    for operation in paths.values_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
        operation.get_mut("requestBody").into_iter().for_each(|body| redirect(body, &differing));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Leeward",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Places replicas, tasks and volumes by the load of the network.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "tags": subjects.iter().map(|one| json!({ "name": one.name, "description": one.text })).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token with a role: read, report, place or admin. Each role includes the roles \
                                    before it. A service without tokens requires no token and is reachable only from \
                                    its own machine.",
                },
            },
        },
    })
}

fn parameters(one: &Operation, generator: &mut SchemaGenerator) -> Vec<Value> {
    let mut all = Vec::new();
    let mut add = |place: &str, name: &str, text: Value, schema: Value| {
        let required = place == "path";
        all.push(
            json!({ "in": place, "name": name, "description": text, "required": required, "schema": schema }),
        );
    };
    for parameter in one.parameters {
        match *parameter {
            Parameter::One { place, name, text, value } => {
                add(place, name, text.into(), value(generator).to_value());
            }
            // Query parameters are optional, and never null.
            Parameter::Query(fields) => {
                let mut fields = fields(generator);
                add_maxima(&mut fields);
                let fields = fields.get_mut("properties").and_then(Value::as_object_mut);
                for (name, schema) in fields.into_iter().flatten() {
                    present(schema);
                    let text = schema.as_object_mut().and_then(|schema| schema.remove("description"));
                    add("query", name, text.unwrap_or_default(), schema.clone());
                }
            }
        }
    }
    all
}

/// Adds the maximum to each unsigned integer of 32 or 64 bits in a schema.
fn add_maxima(schema: &mut Schema) {
    let most = match schema.get("format").and_then(Value::as_str) {
        Some("uint32") => Some(u64::from(u32::MAX)),
        Some("uint64" | "uint") => Some(u64::MAX),
        _ => None,
    };
    if let (Some(most), Some(fields)) = (most, schema.as_object_mut()) {
        fields.entry("maximum").or_insert(most.into());
    }
    transform_subschemas(&mut add_maxima, schema);
}

/// Suffix for the name of a request schema that differs from the response schema of the same type.
const BODY: &str = "Body";
/// Prefix of references to schemas.
const SCHEMAS: &str = "#/components/schemas/";

/// Types whose request schema differs from the response schema, directly or in a type that they contain.
fn differing(requests: &Map<String, Value>, responses: &Map<String, Value>) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    loop {
        let differs = |(name, schema): &(&String, &Value)| {
            let mut redirected = (*schema).clone();
            redirect(&mut redirected, &known);
            responses.get(*name).is_some_and(|response| *response != redirected)
        };
        let differing: BTreeSet<String> =
            requests.iter().filter(differs).map(|(name, _)| name.clone()).collect();
        if differing == known {
            return known;
        }
        known = differing;
    }
}

/// Redirects each reference to a type of `differing` to the request schema of that type.
fn redirect(schema: &mut Value, differing: &BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str().and_then(|value| value.strip_prefix(SCHEMAS)) {
                    Some(target) if name == "$ref" && differing.contains(target) => {
                        *value = format!("{SCHEMAS}{target}{BODY}").into()
                    }
                    _ => redirect(value, differing),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| redirect(value, differing)),
        _ => {}
    }
}

/// Operation id for generated clients, such as `get_racks_rack`.
fn operation_id(one: &Operation) -> String {
    let parts = one.path.split('/').filter(|part| !part.is_empty() && *part != "v1");
    let parts = parts.map(|part| part.trim_matches(['{', '}']).replace(['-', '.'], "_"));
    std::iter::once(one.method.as_str().to_lowercase()).chain(parts).collect::<Vec<_>>().join("_")
}
