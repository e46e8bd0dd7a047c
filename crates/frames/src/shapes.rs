//! Shape of a snapshot, for the description of the API. The snapshots themselves are written column by column.

use leeward_ledger::Epoch;
use leeward_records::Modes;
use leeward_records::schema::{Id, Name, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::tables::{COUNT, TABLES, Table, Values};

/// The network at one time, in columns. A difference has the rows that changed: `rows` are their distances, the first
/// from row 0, and each number is to be added to the value before (0 if it was unknown); other values replace those
/// before.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "a schema")]
pub struct Snapshot {
    /// Id of the snapshot, for `since`.
    #[schemars(with = "Name")]
    id: String,
    /// Id of the snapshot from which this is the difference; null for a whole snapshot.
    #[schemars(with = "Option<Name>")]
    since: Option<String>,
    /// Epoch of the ledger.
    epoch: Epoch,
    /// Time of the snapshot.
    #[schemars(with = "Time")]
    time: String,
    /// End of the newest accepted window of a link; null without one.
    #[schemars(with = "Option<Time>")]
    telemetry: Option<String>,
    /// Version of the cluster.
    #[schemars(with = "Id")]
    cluster_version: String,
    /// Modes in force, also in a difference.
    modes: Modes,
    /// Unit of the columns that end in `_steps`, as a share of the capacity.
    resolution: f64,
    /// All links, if chosen.
    #[schemars(schema_with = "columns::<0>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<Value>,
    /// All racks, if chosen.
    #[schemars(schema_with = "columns::<1>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    racks: Option<Value>,
    /// All hosts, if chosen.
    #[schemars(schema_with = "columns::<2>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<Value>,
    /// All devices, if chosen.
    #[schemars(schema_with = "columns::<3>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Option<Value>,
    /// For each client, its last request whose placement the snapshot includes. Clients without a decided request are
    /// left out. A difference has the clients whose sequence changed.
    clients: Vec<Client>,
}

/// A client of a snapshot.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "a schema")]
struct Client {
    /// Name of the client.
    client: String,
    /// Sequence number of its last included request; null in a difference if the service has forgotten the client.
    sequence: Option<u64>,
}

/// Schema of a table's columns.
fn columns<const TABLE: usize>(_: &mut SchemaGenerator) -> Schema {
    const { assert!(TABLE < COUNT) };
    let table: &Table = &TABLES[TABLE];
    let rows = json!({
        "description": "In a difference, the changed rows, each by its distance from the one before; the first from row 0.",
        "type": "array",
        "items": { "type": "integer", "minimum": 0 },
    });
    let columns = table.columns.iter().map(|column| {
        let items = match column.values {
            Values::Names(_) => json!({ "type": ["string", "null"] }),
            Values::Numbers(_) => json!({ "type": ["integer", "null"] }),
            Values::Flags(_) => json!({ "type": ["boolean", "null"] }),
            Values::Times(_) => json!({ "type": ["string", "null"], "format": "date-time" }),
        };
        (column.name.to_owned(), json!({ "type": "array", "items": items }))
    });
    let properties: Map<String, Value> = std::iter::once(("rows".to_owned(), rows)).chain(columns).collect();
    json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
}
