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
use super::shared::{Scratch, Shared};
use super::streams::{Incoming, Outgoing};
use crate::event::Event;
use crate::mount::MOUNT;
use crate::outgoing::{connect, prepare_client, prepare_server};
use crate::rpc::{Call, HEAD, MarkingError, PROGRAM_END, Record, Records, program};

/// Longest time until the first call of a connection.
const FIRST_CALL: Duration = Duration::from_secs(60);
/// Bytes in which a connection names its first program. Its first call may be as large as any: a client that was
/// disconnected sends what it sent before.
const FIRST_BYTES: usize = 4096;
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
        let Registered { shared, connection } = self;
        shared.release(&connection.close());
        shared.end_permit(connection);
        shared.lock_open().remove(connection.number);
        // Only from here on may the number belong to another connection.
        let number = connection.number;
        shared.with_queue(None, &mut Scratch::default(), |queue, now| queue.close(now, number));
    }
}

/// End of one direction, also by a panic: the connection is closed, so that the other direction ends too.
struct Ends(Arc<Shared>, Arc<Connection>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.release(&self.1.close());
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
        End::Marking(_) | End::Header(_) | End::Slow => {
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
    let first = timeout(FIRST_CALL, first_program(&mut from_client, &mut records));
    let (program, first) = first.await.map_err(|_| End::Client)??;
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
    let read = (records, first);
    let mut calls = CallsTask::new(shared.clone(), connection.clone(), target, from_client, to_server, read)?;
    let ends = Ends(shared.clone(), connection.clone());
    let replies = tokio::spawn(async move {
        let _ends = ends;
        poll_fn(|context| replies.poll(context)).await
    });
    let ended = poll_fn(|context| calls.poll(context)).await;
    match &ended {
        Err(End::ServerFailed(_)) => shared.release(&connection.close()),
        _ => calls.leave(),
    }
    // The other direction ends once the server has answered. The first reason counts, and the other has none.
    let other = replies.await.unwrap_or(Ok(()));
    ended.and(other)
}

/// Reads until the program of the first call is known. Returns the call too, if it is whole.
async fn first_program(
    from_client: &mut Incoming,
    records: &mut Records,
) -> Result<(u32, Option<Record>), End> {
    loop {
        let chunk = poll_fn(|context| from_client.poll_chunk(context, 0)).await;
        let chunk = chunk.map_err(|_| End::Client)?;
        if chunk.is_empty() {
            return Err(End::Client);
        }
        records.push(chunk);
        if let Some(record) = records.next_record()? {
            return Ok((Call::read(record.head(&mut [0; HEAD]))?.program, Some(record)));
        }
        let mut head = [0; PROGRAM_END];
        if records.copy_begun(&mut head) == PROGRAM_END {
            return Ok((program(&head)?, None));
        }
        if records.begun() > FIRST_BYTES {
            return Err(MarkingError::TooLarge { limit: FIRST_BYTES }.into());
        }
    }
}
