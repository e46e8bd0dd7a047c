//! A server of NFS version 3 and MOUNT whose files are in memory. It answers NULL, GETATTR, LOOKUP, CREATE, REMOVE, READ,
//! WRITE, COMMIT and MNT, and rejects other procedures. The export is `/vol`, and each file handle is a file.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::BytesMut;
use leeward_nfs::calls::{COMMIT, NFS, READ, WRITE};
use leeward_nfs::mount::{MNT, MOUNT, UMNT};
use leeward_nfs::rpc::{Accepted, Call, HEAD, Record, Records, reply};
use leeward_nfs::xdr::{Reader, Writer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

pub const GETATTR: u32 = 1;
const LOOKUP: u32 = 3;
const CREATE: u32 = 8;
const REMOVE: u32 = 12;
/// Status of a file that is not there.
pub const STALE: u32 = 70;
/// Status of a new file that is there already.
const EXISTS: u32 = 17;

/// Behaviour of a server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Behaviour {
    /// Time of each READ, WRITE and COMMIT.
    pub delay: Duration,
    /// True if its device serves one of them at a time.
    pub is_serial: bool,
    /// READs from this offset are never answered.
    pub ignored: Option<u64>,
    /// Later calls are answered first, if they wait at the same time.
    pub answers_backwards: bool,
}

/// A data call that reached the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    pub procedure: u32,
    pub file: Vec<u8>,
    pub offset: u64,
    pub size: usize,
}

#[derive(Default)]
pub struct State {
    behaviour: Behaviour,
    files: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    seen: Mutex<Vec<Seen>>,
    running: AtomicUsize,
    most: AtomicUsize,
    device: tokio::sync::Mutex<()>,
}

pub struct MemoryServer {
    pub address: SocketAddr,
    state: Arc<State>,
    tasks: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl MemoryServer {
    pub async fn start(behaviour: Behaviour) -> MemoryServer {
        MemoryServer::start_at("127.0.0.1:0".parse().expect("an address"), behaviour).await
    }

    /// Starts a server on a thread of its own, which ends with the process of the tests.
    pub fn on_thread(behaviour: Behaviour) -> MemoryServer {
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                sender.send(MemoryServer::start(behaviour).await).expect("the test waits");
                std::future::pending::<()>().await;
            });
        });
        receiver.recv().expect("a server")
    }

    pub async fn start_at(address: SocketAddr, behaviour: Behaviour) -> MemoryServer {
        let listener = TcpListener::bind(address).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State { behaviour, ..State::default() });
        let tasks = Arc::new(Mutex::new(Vec::new()));
        let (own, connections) = (state.clone(), tasks.clone());
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let connection = tokio::spawn(connection(own.clone(), stream));
                connections.lock().expect("a lock").push(connection);
            }
        });
        tasks.lock().expect("a lock").push(accepting);
        MemoryServer { address, state, tasks }
    }

    /// Ends the server and all its connections. Its files are lost.
    pub fn stop(self) {
        self.tasks.lock().expect("a lock").drain(..).for_each(|task| task.abort());
    }

    pub fn file(&self, file: &[u8]) -> Vec<u8> {
        self.state.files.lock().expect("a lock").get(file).cloned().unwrap_or_default()
    }

    pub fn has_file(&self, file: &[u8]) -> bool {
        self.state.files.lock().expect("a lock").contains_key(file)
    }

    pub fn put(&self, file: &[u8], content: Vec<u8>) {
        self.state.files.lock().expect("a lock").insert(file.to_vec(), content);
    }

    /// Data calls in the order in which they came.
    pub fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().expect("a lock").clone()
    }

    /// Largest number of data calls at the server at once.
    pub fn most(&self) -> usize {
        self.state.most.load(Ordering::Relaxed)
    }
}

async fn connection(state: Arc<State>, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let (mut from, mut to) = stream.into_split();
    let (sender, mut receiver) = unbounded_channel::<Vec<u8>>();
    let writing = tokio::spawn(async move {
        while let Some(mut reply) = receiver.recv().await {
            while let Ok(more) = receiver.try_recv() {
                reply.extend_from_slice(&more);
            }
            if to.write_all(&reply).await.is_err() {
                return;
            }
        }
    });
    let (mut records, mut buffer, mut backlog) = (Records::new(8 << 20), BytesMut::new(), Vec::new());
    loop {
        buffer.reserve(256 << 10);
        match from.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(_) => records.push(buffer.split().freeze()),
        }
        while let Some(record) = records.next_record().expect("records of a proxy") {
            if state.behaviour.answers_backwards {
                backlog.push(record);
            } else {
                handle(&state, record, &sender);
            }
        }
        while let Some(record) = backlog.pop() {
            handle(&state, record, &sender);
        }
    }
    drop(sender);
    let _ = writing.await;
}

fn handle(state: &Arc<State>, record: Record, sender: &UnboundedSender<Vec<u8>>) {
    let mut buffer = [0; HEAD];
    let call = Call::read(record.head(&mut buffer)).expect("a call");
    let is_data = call.program == NFS && [READ, WRITE, COMMIT].contains(&call.procedure);
    if !is_data {
        let _ = sender.send(answer(state, &call, &record));
        return;
    }
    let running = state.running.fetch_add(1, Ordering::Relaxed) + 1;
    state.most.fetch_max(running, Ordering::Relaxed);
    if state.behaviour.delay.is_zero() && state.behaviour.ignored.is_none() {
        let answer = answer(state, &call, &record);
        state.running.fetch_sub(1, Ordering::Relaxed);
        let _ = sender.send(answer);
        return;
    }
    let (state, sender) = (state.clone(), sender.clone());
    tokio::spawn(async move {
        let answer = answer(&state, &call, &record);
        {
            let _turn = if state.behaviour.is_serial { Some(state.device.lock().await) } else { None };
            tokio::time::sleep(state.behaviour.delay).await;
        }
        state.running.fetch_sub(1, Ordering::Relaxed);
        if !answer.is_empty() {
            let _ = sender.send(answer);
        }
    });
}

/// Reply to a call as a record; empty for a call that is not answered.
fn answer(state: &State, call: &Call, record: &Record) -> Vec<u8> {
    let mut message = vec![0; record.payload()];
    record.copy_payload(&mut message);
    let arguments = &message[call.arguments..];
    let results = match (call.program, call.procedure) {
        (MOUNT | NFS, 0) | (MOUNT, UMNT) => Vec::new(),
        (MOUNT, MNT) => {
            let path = Reader::new(arguments).opaque(1024).expect("a path");
            let root = Writer::new().u32(0).opaque(b"root").u32(1).u32(1);
            if path.starts_with(b"/vol") { root } else { Writer::new().u32(2) }.into_bytes()
        }
        (NFS, GETATTR) => {
            let file = Reader::new(arguments).opaque(64).expect("a handle");
            match state.files.lock().expect("a lock").get(file) {
                Some(content) => attributes(Writer::new().u32(0), content.len() as u64).into_bytes(),
                None => Writer::new().u32(STALE).into_bytes(),
            }
        }
        (NFS, LOOKUP) => {
            let (name, _) = name(arguments);
            match state.files.lock().expect("a lock").contains_key(&name) {
                true => Writer::new().u32(0).opaque(&name).u32(0).u32(0).into_bytes(),
                false => Writer::new().u32(2).u32(0).into_bytes(),
            }
        }
        (NFS, CREATE) => {
            let (name, mut rest) = name(arguments);
            let is_guarded = rest.u32().expect("a way") == 1;
            let mut files = state.files.lock().expect("a lock");
            if is_guarded && files.contains_key(&name) {
                Writer::new().u32(EXISTS).u32(0).u32(0).into_bytes()
            } else {
                files.entry(name.clone()).or_default();
                Writer::new().u32(0).u32(1).opaque(&name).u32(0).u32(0).u32(0).into_bytes()
            }
        }
        (NFS, REMOVE) => {
            let (name, _) = name(arguments);
            let removed = state.files.lock().expect("a lock").remove(&name);
            Writer::new().u32(if removed.is_some() { 0 } else { 2 }).u32(0).u32(0).into_bytes()
        }
        (NFS, READ | WRITE | COMMIT) => data(state, call.procedure, arguments),
        _ => return reply(call.xid, Accepted::ProgramUnavailable),
    };
    if results.is_empty() && call.procedure == READ && call.program == NFS {
        return results;
    }
    reply(call.xid, Accepted::Success(&results))
}

/// Name of a file in a folder, and the arguments after it.
fn name(arguments: &[u8]) -> (Vec<u8>, Reader<'_>) {
    let mut reader = Reader::new(arguments);
    let _folder = reader.opaque(64).expect("a handle");
    let name = reader.opaque(255).expect("a name").to_vec();
    (name, reader)
}

fn data(state: &State, procedure: u32, arguments: &[u8]) -> Vec<u8> {
    let mut reader = Reader::new(arguments);
    let file = reader.opaque(64).expect("a handle").to_vec();
    let (offset, count) = (reader.u64().expect("an offset"), reader.u32().expect("a count"));
    let seen = Seen { procedure, file: file.clone(), offset, size: count as usize };
    state.seen.lock().expect("a lock").push(seen);
    let mut files = state.files.lock().expect("a lock");
    let content = files.entry(file).or_default();
    match procedure {
        READ if state.behaviour.ignored == Some(offset) => Vec::new(),
        READ => {
            let from = (offset as usize).min(content.len());
            let read = &content[from..(from + count as usize).min(content.len())];
            let is_end = u32::from(from + read.len() == content.len());
            Writer::new().u32(0).u32(0).u32(read.len() as u32).u32(is_end).opaque(read).into_bytes()
        }
        WRITE => {
            let _stable = reader.u32().expect("a number");
            let written = reader.opaque(8 << 20).expect("the data");
            let end = offset as usize + written.len();
            content.resize(content.len().max(end), 0);
            content[offset as usize..end].copy_from_slice(written);
            Writer::new().u32(0).u32(0).u32(0).u32(count).u32(2).u64(7).into_bytes()
        }
        _ => Writer::new().u32(0).u32(0).u32(0).u64(7).into_bytes(),
    }
}

/// Attributes of a file of this size (RFC 1813, fattr3).
fn attributes(writer: Writer, size: u64) -> Writer {
    let writer = writer.u32(1).u32(0o644).u32(1).u32(0).u32(0).u64(size).u64(size);
    writer.u32(0).u32(0).u64(1).u64(1).u64(0).u64(0).u64(0)
}
