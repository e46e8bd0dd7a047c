//! A connection from its first call to its end.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::calls_task::{CallsTask, End, Target};
use super::connection::Connection;
use super::replies_task::RepliesTask;
use super::streams::{Incoming, Outgoing};
use super::{Scratch, Shared};
use crate::event::Event;
use crate::mount::MOUNT;
use crate::outgoing::{connect, prepare_client, prepare_server};
use crate::rpc::{Call, HEAD, Record, Records};

/// Longest time until the first call of a connection.
const FIRST_CALL: Duration = Duration::from_secs(60);
/// Longest time until the server accepts a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// A connection in the lists of the proxy: it leaves them when it is dropped.
struct Registered {
    shared: Arc<Shared>,
    connection: Arc<Connection>,
}

impl Registered {
    fn new(shared: &Arc<Shared>, client: SocketAddr, export: usize) -> Registered {
        let number = shared.lock_queue().open(client.ip(), export);
        let connection = Arc::new(Connection::new(export, number));
        shared.lock_open().add(connection.clone());
        Registered { shared: shared.clone(), connection }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        release(&self.shared, &self.connection);
        let number = self.connection.number;
        self.shared.lock_open().remove(number);
        // Only from here on may the number belong to another connection.
        self.shared.with_queue(None, &mut Scratch::default(), |queue, now| queue.close(now, number));
    }
}

/// Closes a connection, and frees the places of its requests at the server.
fn release(shared: &Shared, connection: &Connection) {
    let running = connection.close();
    if !running.is_empty() {
        shared.with_queue(None, &mut Scratch::default(), |queue, _| {
            running.iter().for_each(|running| queue.release(running));
        });
    }
}

/// End of one direction, also by a panic: the connection is closed, so that the other direction ends too.
struct Ends(Arc<Shared>, Arc<Connection>);

impl Drop for Ends {
    fn drop(&mut self) {
        release(&self.0, &self.1);
    }
}

/// Serves a connection of a client.
pub async fn serve(shared: Arc<Shared>, export: usize, stream: TcpStream, client: SocketAddr) {
    let end = match run(&shared, export, stream, client).await {
        Ok(()) => return,
        Err(end) => end,
    };
    let why = end.to_string();
    match end {
        End::Client => {}
        End::Marking(_) | End::Header(_) => {
            shared.numbers.broken.fetch_add(1, Ordering::Relaxed);
            shared.events.send(Event::Closed { client, why });
        }
        End::Server | End::Reply(_) | End::ServerFailed(_) => {
            shared.events.send(Event::Closed { client, why });
        }
    }
}

async fn run(shared: &Arc<Shared>, export: usize, stream: TcpStream, client: SocketAddr) -> Result<(), End> {
    prepare_client(&stream).map_err(|_| End::Client)?;
    let (from_client, to_client) = stream.into_split();
    let (mut from_client, mut records) = (Incoming::new(from_client), Records::new(shared.limits.record));
    let first = timeout(FIRST_CALL, first_record(&mut from_client, &mut records));
    let first = first.await.map_err(|_| End::Client)??;
    let program = Call::read(first.head(&mut [0; HEAD]))?.program;
    let server = &shared.exports[export].server;
    let (target, address) = match program {
        _ if server.nfs == server.mount => (Target::Both, server.nfs),
        MOUNT => (Target::Mount, server.mount),
        _ => (Target::Nfs, server.nfs),
    };
    let stream = match connect(address, shared.source, CONNECT).await {
        Ok(stream) => stream,
        Err(error) => {
            shared.events.send(Event::ServerUnavailable { server: address, why: error.to_string() });
            return Ok(());
        }
    };
    prepare_server(&stream).map_err(End::ServerFailed)?;
    let (from_server, to_server) = stream.into_split();
    let registered = Registered::new(shared, client, export);
    let connection = &registered.connection;
    let (from_server, to_client) = (Incoming::new(from_server), Outgoing::new(to_client));
    let mut replies = RepliesTask::new(shared.clone(), connection.clone(), from_server, to_client);
    let to_server = Outgoing::new(to_server);
    let mut calls =
        CallsTask::new(shared.clone(), connection.clone(), target, from_client, to_server, records);
    let ends = Ends(shared.clone(), connection.clone());
    let replies = tokio::spawn(async move {
        let _ends = ends;
        poll_fn(|context| replies.poll(context)).await
    });
    let ended = match calls.begin(first) {
        Ok(()) => poll_fn(|context| calls.poll(context)).await,
        broken => broken,
    };
    release(shared, connection);
    // The other direction ends now too. The first reason counts: it closed the connection, and the other has none.
    let other = replies.await.unwrap_or(Ok(()));
    ended.and(other)
}

/// Reads until the first record is whole.
async fn first_record(from_client: &mut Incoming, records: &mut Records) -> Result<Record, End> {
    loop {
        let chunk = poll_fn(|context| from_client.poll_chunk(context, records.missing())).await;
        let chunk = chunk.map_err(|_| End::Client)?;
        if chunk.is_empty() {
            return Err(End::Client);
        }
        records.push(chunk);
        if let Some(record) = records.next_record()? {
            return Ok(record);
        }
    }
}
