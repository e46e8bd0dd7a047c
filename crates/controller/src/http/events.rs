//! Server-sent events. The format is written by hand, because the service renders each event once for all streams and
//! sends several events in one chunk. Axum's `Sse` sends one event per chunk.

use std::convert::Infallible;
use std::fmt::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use hyper::body::Frame;
use leeward_fabric::Nanos;
use leeward_frames::StreamEncoder;
use leeward_promises::{EnforcerEvent, PromiseEvent};
use leeward_records::schema::{Id, Time};
use leeward_records::{Modes, ModesState};
use leeward_service::in_background;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::compression;
use super::decisions::Decision;
use super::hotspots::Hotspot;
use super::shapes::Rack;
use super::state::{ApiResult, AppState, Params, SharedState};
use super::status::ROLES;
use leeward_observability::{Event, EventRecord};
use leeward_problems::Problem;

/// Interval of keep-alive comments on a silent stream. Each side thereby detects a dead peer.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Largest number of events per write.
const AT_ONCE: usize = 64;
/// Reconnection delay for clients, in milliseconds.
const RETRY_MS: u32 = 1_000;

/// Choice of events.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EventsQuery {
    /// False for a stream without `racks`: `GET /v1/snapshot` has the same loads in fewer bytes.
    racks: bool,
    /// False for a stream without `decision`.
    decisions: bool,
    /// Largest number of `decision` a second; the others of that second are left out. Default: all.
    #[schemars(range(min = 1))]
    decisions_per_s: Option<u32>,
}

impl Default for EventsQuery {
    /// All events.
    fn default() -> EventsQuery {
        EventsQuery { racks: true, decisions: true, decisions_per_s: None }
    }
}

/// Events of a stream by its choice, with the number of decisions that it sent in the present second.
struct EventFilter {
    query: EventsQuery,
    second: u64,
    sent: u32,
}

impl EventFilter {
    fn new(query: EventsQuery) -> EventFilter {
        EventFilter { query, second: 0, sent: 0 }
    }

    fn includes(&mut self, record: &EventRecord) -> bool {
        match &record.data {
            Event::Racks(_) => self.query.racks,
            Event::Decision(decision) => self.query.decisions && self.has_room(decision.at),
            Event::Hotspot(_)
            | Event::Cluster(_)
            | Event::Leader(_)
            | Event::Modes(_)
            | Event::Promise(_)
            | Event::Enforcer(_) => true,
        }
    }

    /// Counts a decision of this time; false beyond the limit of its second.
    fn has_room(&mut self, at: Nanos) -> bool {
        let Some(limit) = self.query.decisions_per_s else { return true };
        let second = at.0 / Nanos::SECOND.0;
        if second != self.second {
            (self.second, self.sent) = (second, 0);
        }
        self.sent = self.sent.saturating_add(1);
        self.sent <= limit
    }
}

/// Loads of all racks.
#[derive(Serialize, JsonSchema)]
pub struct Racks {
    /// The racks.
    items: Vec<Rack>,
}

/// A link that became hot, or cooled down.
#[derive(Serialize, JsonSchema)]
pub struct HotspotEvent {
    #[serde(flatten)]
    hotspot: Hotspot,
    /// Time at which the link cooled down; null while it is hot.
    #[schemars(with = "Option<Time>")]
    until: Option<String>,
}

/// The cluster changed.
#[derive(Serialize, JsonSchema)]
pub struct ClusterEvent {
    /// New version of the cluster.
    cluster_version: String,
}

/// The leader changed.
#[derive(Serialize, JsonSchema)]
pub struct LeaderEvent {
    /// Role of this service.
    #[schemars(extend("enum" = ROLES))]
    role: &'static str,
    /// Address of the leader; null if there is no leader, or its address is unknown.
    leader: Option<String>,
}

/// The modes changed.
#[derive(Serialize, JsonSchema)]
pub struct ModesEvent {
    /// Modes that were set.
    set: Modes,
    /// Source of the change: `settings`, or the name of the client.
    by: String,
    /// Reason of the change.
    reason: Option<String>,
}

/// Events after the requested one are no longer available.
#[derive(Serialize, JsonSchema)]
pub struct MissedEvent {
    /// Id of the requested event.
    #[schemars(with = "Id")]
    after: String,
}

/// Data of events: each field describes the data of the event with its name.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only for the OpenAPI document")]
pub struct Described {
    decision: Decision<'static>,
    racks: Racks,
    hotspot: HotspotEvent,
    cluster: ClusterEvent,
    leader: LeaderEvent,
    modes: ModesEvent,
    promise: PromiseEvent,
    enforcer: EnforcerEvent,
    missed: MissedEvent,
}

fn event(name: &str, id: u64, data: &impl Serialize) -> Bytes {
    // Event data consists of numbers and texts, so serialization cannot fail.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\nid: {id}\ndata: {data}\n\n").into()
}

fn render(app: &AppState, record: &EventRecord) -> Bytes {
    let clock = &app.clock;
    match &record.data {
        Event::Decision(decision) => event("decision", record.id, &Decision::of(decision, clock)),
        Event::Racks(snapshot) => {
            let items = snapshot.fabric.all_racks().map(|rack| Rack::of(snapshot, clock, rack)).collect();
            event("racks", record.id, &Racks { items })
        }
        Event::Hotspot(hot) => {
            let hotspot = Hotspot::of(hot.link.clone(), hot.utilization, hot.since, hot.at, clock);
            let until = hot.until.map(|at| clock.text(at));
            event("hotspot", record.id, &HotspotEvent { hotspot, until })
        }
        Event::Cluster(number) => {
            event("cluster", record.id, &ClusterEvent { cluster_version: number.to_string() })
        }
        Event::Leader(leader_state) => {
            let (role, leader) = app.about.leader(leader_state);
            event("leader", record.id, &LeaderEvent { role, leader })
        }
        Event::Modes(ModesState { modes: set, by, reason, .. }) => {
            let (by, reason) = (by.clone(), reason.clone());
            event("modes", record.id, &ModesEvent { set: *set, by, reason })
        }
        Event::Promise(change) => event("promise", record.id, &PromiseEvent::of(change, clock)),
        Event::Enforcer(change) => event("enforcer", record.id, &EnforcerEvent::of(change, clock)),
    }
}

/// A body whose chunks come from a channel. The body ends when the channel closes.
struct ChunkedBody(mpsc::Receiver<Bytes>);

impl HttpBody for ChunkedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}

/// Id of the last event that a client received, from the `last-event-id` header.
///
/// # Errors
/// [`Problem`] for an invalid header.
pub fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(text) = headers.get("last-event-id") else { return Ok(None) };
    let number = text.to_str().ok().and_then(|text| Id::read(text.trim()));
    let expected = "expected the id of an event";
    number.map(Some).ok_or_else(|| Problem::field("last-event-id", expected))
}

pub async fn events(
    State(app): SharedState,
    headers: HeaderMap,
    Params(Query(query)): Params<Query<EventsQuery>>,
) -> ApiResult {
    let requested = last_event_id(&headers)?;
    if query.decisions_per_s == Some(0) {
        return Err(Problem::field("decisions_per_s", "0: expected at least 1, or `decisions=false`"));
    }
    let encoding = compression::accepted(&headers);
    let permit = app.events.stream_permit().ok_or_else(Problem::too_many_streams)?;
    let (sender, chunks) = mpsc::channel(1);
    let encoder = StreamEncoder::new(encoding).map_err(|error| {
        tracing::error!(%error, "the compressor of an event stream could not start");
        Problem::broken()
    })?;
    // The position is fixed now, so that the stream has all later events even if the client reads it late.
    let last = app.events.last();
    tokio::spawn(async move {
        app.metrics.streams.inc();
        let sender = EventSender { sender, encoder: Some(encoder) };
        follow(&app, (requested, last), EventFilter::new(query), sender).await;
        app.metrics.streams.dec();
        drop(permit);
    });
    let head = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    let mut response = (head, Body::new(ChunkedBody(chunks))).into_response();
    compression::set_headers(encoding, response.headers_mut());
    Ok(response)
}

/// Compresses chunks and sends them to a body.
struct EventSender {
    sender: mpsc::Sender<Bytes>,
    /// The compressor; `None` after it failed.
    encoder: Option<StreamEncoder>,
}

impl EventSender {
    /// Sends a chunk that the client can decode at once. Returns false if the client is gone, or the compressor failed.
    async fn send(&mut self, chunk: Bytes) -> bool {
        let Some(mut encoder) = self.encoder.take() else { return false };
        let is_quick = chunk.len() <= compression::AT_ONCE || matches!(encoder, StreamEncoder::Identity);
        let compressed = if is_quick {
            encoder.piece(chunk).map(|piece| (encoder, piece))
        } else {
            let compress = move || encoder.piece(chunk).map(|piece| (encoder, piece));
            let compressed = in_background(compress).await;
            compressed.unwrap_or_else(|ended| Err(std::io::Error::other(ended)))
        };
        match compressed {
            Ok((encoder, piece)) => {
                self.encoder = Some(encoder);
                self.sender.send(piece).await.is_ok()
            }
            Err(error) => {
                tracing::error!(%error, "an event stream could not be compressed, and ends");
                false
            }
        }
    }

    /// Sends the last chunk, and ends the stream.
    async fn end(mut self, chunk: &'static str) {
        if self.send(Bytes::from_static(chunk.as_bytes())).await
            && let Some(Ok(end)) = self.encoder.take().map(StreamEncoder::end)
            && !end.is_empty()
        {
            // The client may be gone.
            let _ = self.sender.send(end).await;
        }
    }
}

/// Sends events until the client disconnects, falls too far behind, or the service stops. The pair has the id of the last
/// event that the client received, and that of the last event.
async fn follow(
    app: &Arc<AppState>,
    (requested, last): (Option<u64>, u64),
    mut filter: EventFilter,
    mut sender: EventSender,
) {
    let (events, mut subscribe) = (&app.events, app.events.subscribe());
    let mut head = format!("retry: {RETRY_MS}\n\n");
    let mut position = match requested {
        None => last,
        Some(id) if id >= events.last_dropped() && id <= last => id,
        Some(id) => {
            let last_dropped = events.last_dropped();
            // Clients must reload state that they derived from events.
            let missed = serde_json::to_string(&MissedEvent { after: id.to_string() }).unwrap_or_default();
            let _ = write!(head, "event: missed\ndata: {missed}\n\n");
            last_dropped
        }
    };
    let mut chunk = Bytes::from(head);
    loop {
        if !sender.send(chunk).await {
            return;
        }
        // A stream without events of its choice sends comments too.
        let mut silence = std::pin::pin!(tokio::time::sleep(KEEP_ALIVE));
        let records = loop {
            let mut records = match events.after(position, AT_ONCE) {
                Ok(records) => records,
                Err(_) => {
                    let farewell =
                        ": the client reads too slowly; reconnect for the events that are still stored\n\n";
                    return sender.end(farewell).await;
                }
            };
            position = records.last().map_or(position, |last| last.id);
            records.retain(|record| filter.includes(record));
            if !records.is_empty() {
                break records;
            }
            // Releases the guard of the watch before any other wait.
            let more = async {
                subscribe.wait_for(|last| last.is_none_or(|last| last > position)).await.map(|last| *last)
            };
            tokio::select! {
                () = sender.sender.closed() => return,
                () = &mut silence => break Vec::new(),
                more = more => if !matches!(more, Ok(Some(_))) {
                    return sender.end(": the service stops\n\n").await;
                },
            }
        };
        chunk = match &records[..] {
            [] => Bytes::from_static(b": nothing new\n\n"),
            [record] => record.text(|record| render(app, record)).clone(),
            several => several
                .iter()
                .flat_map(|record| record.text(|record| render(app, record)).iter().copied())
                .collect(),
        };
    }
}
