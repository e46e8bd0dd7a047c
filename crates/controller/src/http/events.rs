//! Events as they happen: a stream that a page or a tool listens to.

use std::convert::Infallible;
use std::fmt::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use hyper::body::Frame;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::mpsc;

use super::decisions::Decision;
use super::network::Hotspot;
use super::problem::Problem;
use super::shapes::Rack;
use super::status::ROLES;
use super::{Answer, Edge, Shared};
use crate::described::{Id, Time};
use crate::watch::{Happening, Told};

/// A stream on which nothing happens says so after this time, so that either side sees when the other is gone.
const SILENCE: Duration = Duration::from_secs(15);
/// Events that are handed to a connection at once.
const AT_ONCE: usize = 64;
/// How long a listener waits before it comes back, in milliseconds.
const RETRY_MS: u32 = 1_000;

/// All racks.
#[derive(Serialize, JsonSchema)]
pub struct Racks {
    items: Vec<Rack>,
}

/// A link that became hot, or cooled.
#[derive(Serialize, JsonSchema)]
pub struct HotspotEvent {
    #[serde(flatten)]
    hotspot: Hotspot,
    /// When it cooled; null while it is hot.
    #[schemars(with = "Option<Time>")]
    until: Option<String>,
}

/// The cluster is another one.
#[derive(Serialize, JsonSchema)]
pub struct ClusterEvent {
    cluster_version: String,
}

/// Another service decides, or this one, or none for now.
#[derive(Serialize, JsonSchema)]
pub struct LeaderEvent {
    /// Whether it is this service.
    #[schemars(extend("enum" = ROLES))]
    role: &'static str,
    /// The address of the service that decides; null if there is none, or it has not said its own.
    leader: Option<String>,
}

/// What came after the event that was asked for is not kept any more.
#[derive(Serialize, JsonSchema)]
pub struct MissedEvent {
    /// The event that was asked for.
    #[schemars(with = "Id")]
    after: String,
}

/// What an event says, by its name. Only those who read descriptions see it.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes what is written")]
pub struct Described {
    decision: Decision,
    racks: Racks,
    hotspot: HotspotEvent,
    cluster: ClusterEvent,
    leader: LeaderEvent,
    missed: MissedEvent,
}

fn event(name: &str, id: u64, data: &impl Serialize) -> Bytes {
    // What is told is made of numbers and texts, and can always be written.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\nid: {id}\ndata: {data}\n\n").into()
}

fn render(edge: &Edge, told: &Told) -> Bytes {
    let clock = &edge.clock;
    match &told.what {
        Happening::Decision(record) => event("decision", told.id, &Decision::of(record, clock)),
        Happening::Racks(world) => {
            let items = world.fabric.all_racks().map(|rack| Rack::of(world, clock, rack)).collect();
            event("racks", told.id, &Racks { items })
        }
        Happening::Hotspot(hot) => {
            let hotspot = Hotspot::of(hot.link.clone(), hot.utilization, hot.since, hot.at, clock);
            let until = hot.until.map(|at| clock.text(at));
            event("hotspot", told.id, &HotspotEvent { hotspot, until })
        }
        Happening::Cluster(number) => {
            event("cluster", told.id, &ClusterEvent { cluster_version: number.to_string() })
        }
        Happening::Leader(position) => {
            let (role, leader) = edge.about.leader(position);
            event("leader", told.id, &LeaderEvent { role, leader })
        }
    }
}

/// A body whose pieces come from elsewhere, and end when that does.
struct Pieces(mpsc::Receiver<Bytes>);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// The number of the last event that a listener heard.
pub fn heard(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(said) = headers.get("last-event-id") else { return Ok(None) };
    let number = said.to_str().ok().and_then(|said| Id::read(said.trim()));
    let expected = "expected the number of an event, as `id` said";
    number.map(Some).ok_or_else(|| Problem::field("last-event-id", expected))
}

pub async fn events(State(edge): Shared, headers: HeaderMap) -> Answer {
    let heard = heard(&headers)?;
    let place = edge.events.place().ok_or_else(Problem::too_many_streams)?;
    let (sender, pieces) = mpsc::channel(1);
    // The events that come from here on are in the stream, even if it is first read later.
    let last = edge.events.last();
    tokio::spawn(async move {
        edge.metrics.streams.inc();
        follow(&edge, heard, last, &sender).await;
        edge.metrics.streams.dec();
        drop(place);
    });
    let head = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((head, Body::new(Pieces(pieces))).into_response())
}

/// Sends events until the listener is gone, falls behind too far, or there are no more.
async fn follow(edge: &Arc<Edge>, heard: Option<u64>, last: u64, sender: &mpsc::Sender<Bytes>) {
    let (events, mut bell) = (&edge.events, edge.events.bell());
    let mut beginning = format!("retry: {RETRY_MS}\n\n");
    let mut at = match heard {
        None => last,
        Some(id) if id >= events.gone() && id <= last => id,
        Some(id) => {
            let gone = events.gone();
            // Who keeps an account of what it heard has to begin anew.
            let missed = serde_json::to_string(&MissedEvent { after: id.to_string() }).unwrap_or_default();
            let _ = write!(beginning, "event: missed\ndata: {missed}\n\n");
            gone
        }
    };
    let mut piece = Bytes::from(beginning);
    loop {
        if sender.send(piece).await.is_err() {
            return;
        }
        let told = loop {
            let told = match events.after(at, AT_ONCE) {
                Ok(told) => told,
                Err(_) => {
                    let farewell =
                        ": you read more slowly than things happen; come back for what there is then\n\n";
                    let _ = sender.send(Bytes::from_static(farewell.as_bytes())).await;
                    return;
                }
            };
            if !told.is_empty() {
                break told;
            }
            // The guard on what was rung is let go before anything else is waited for.
            let more =
                async { bell.wait_for(|last| last.is_none_or(|last| last > at)).await.map(|last| *last) };
            let silent = tokio::select! {
                () = sender.closed() => return,
                more = tokio::time::timeout(SILENCE, more) => match more {
                    Ok(Ok(last)) if last.is_some() => false,
                    Ok(_) => {
                        let _ = sender.send(Bytes::from_static(b": the service stops\n\n")).await;
                        return;
                    }
                    Err(_) => true,
                },
            };
            if silent {
                break Vec::new();
            }
        };
        at = told.last().map_or(at, |last| last.id);
        piece = match &told[..] {
            [] => Bytes::from_static(b": nothing new\n\n"),
            [one] => one.text(|told| render(edge, told)).clone(),
            several => {
                several.iter().flat_map(|one| one.text(|told| render(edge, told)).iter().copied()).collect()
            }
        };
    }
}
