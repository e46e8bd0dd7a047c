//! The OpenAPI document, made from the table of operations. OpenAPI 3.1 takes JSON schemas as they are.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::problem::{self, Problem};
use super::table::{Content, Operation, of};

/// Describes operations.
pub fn document(operations: &[Operation]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let problem = json!({ "application/problem+json": { "schema": of::<Problem>(&mut generator) } });
    let mut paths = Map::new();
    for one in operations {
        let mut answers = Map::new();
        for &(status, text, content) in one.answers {
            let content = match content {
                Content::Json(schema) => json!({ "application/json": { "schema": schema(&mut generator) } }),
                Content::Nothing => json!({}),
                Content::Stream(schema) => {
                    json!({ "text/event-stream": { "schema": schema(&mut generator) } })
                }
                Content::Text(media) => json!({ media: { "schema": { "type": "string" } } }),
            };
            answers.insert(status.to_string(), json!({ "description": text, "content": content }));
        }
        for (status, title) in problem::statuses() {
            let told = json!({ "description": title, "content": problem });
            answers.entry(status.to_string()).or_insert(told);
        }
        let parameters: Vec<Value> = one
            .parameters
            .iter()
            .map(|parameter| {
                json!({
                    "in": parameter.place,
                    "name": parameter.name,
                    "description": parameter.text,
                    "required": parameter.place == "path",
                    "schema": { "type": parameter.kind },
                })
            })
            .collect();
        let mut operation = json!({
            "operationId": name(one),
            "summary": one.summary,
            "parameters": parameters,
            "responses": answers,
            "security": match one.role {
                Some(role) => json!([{ "bearer": [role.name()] }]),
                None => json!([]),
            },
        });
        if let Some(body) = one.body {
            let content = json!({ "application/json": { "schema": body(&mut generator) } });
            operation["requestBody"] = json!({ "required": true, "content": content });
        }
        let path = paths.entry(one.path).or_insert_with(|| json!({}));
        path[one.method.as_str().to_lowercase()] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Leeward",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Places work on the sheltered side of the network.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token with a role: read, place or admin, each of which may what those before it \
                                    may. A service without tokens, which only its own machine reaches, asks for none.",
                },
            },
        },
    })
}

/// What clients that are generated call an operation: `get_racks_rack`.
fn name(one: &Operation) -> String {
    let parts = one.path.split('/').filter(|part| !part.is_empty() && *part != "v1");
    let parts = parts.map(|part| part.trim_matches(['{', '}']).replace(['-', '.'], "_"));
    std::iter::once(one.method.as_str().to_lowercase()).chain(parts).collect::<Vec<_>>().join("_")
}
