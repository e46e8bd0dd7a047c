//! Operations and their calls: a request to a server, its work, and an answer.

use leeward_circuits::timers::NEVER;
use leeward_fabric::{HostId, Nanos};

use super::{MOST_RECORDS, Simulator, SimulatorError};
use crate::event::Event;
use crate::network;
use crate::plan::{Direction, Servers};
use crate::records::OperationRecord;
use crate::transport::Connections;

/// Bytes of a request or answer without data.
const MESSAGE: u64 = 256;

/// An operation in progress. It stays until its last call has ended, which may be after its own end.
#[derive(Debug)]
pub(super) struct ActiveOperation {
    worker: u32,
    /// Kind of its job, for its record.
    pub(super) job: usize,
    kind: usize,
    client: HostId,
    server: HostId,
    bytes: u64,
    pub(super) began: u64,
    /// Stripe of the read chunk, and the chunk's position.
    chunk: Option<(usize, usize)>,
    /// Time after which other chunks are fetched; `NEVER` if they are not.
    deadline: u64,
    /// Number of calls in progress, and of those for other chunks.
    calls: u32,
    others: u32,
    pub(super) is_done: bool,
}

/// A call in progress.
#[derive(Debug)]
pub(super) struct Call {
    operation: u32,
    /// True for the chunk itself, false for another chunk of its stripe.
    is_own: bool,
    server: HostId,
    /// `None` for a call to the client's own host.
    channel: Option<u32>,
    /// Time at which the request arrived at the server, and the time in the server.
    requested: u64,
    served: u64,
}

impl Simulator<'_> {
    /// A worker begins an operation.
    pub(super) fn begin_operation(&mut self, number: u32, kind: usize) -> Result<(), SimulatorError> {
        let plan = self.plan;
        let Some(worker) = self.workers.get(number) else { return Ok(()) };
        let operation = &plan.operations[kind];
        let (host, bytes) = (worker.host, worker.stream.log_uniform(operation.sizes.0, operation.sizes.1));
        let (server, chunk) = match &operation.servers {
            Servers::Hosts(hosts) => {
                (hosts[worker.stream.index_but(hosts.len(), |at| hosts[at] == host)], None)
            }
            Servers::Chunks => {
                let stripe = worker.stream.index(plan.stripes.len());
                let chunk = worker.stream.index(plan.stripes[stripe].len());
                (plan.stripes[stripe][chunk], Some((stripe, chunk)))
            }
        };
        let after = operation.degraded_after.filter(|_| chunk.is_some());
        let deadline = after.map_or(NEVER, |after| self.now.saturating_add(after.0));
        let active = ActiveOperation {
            worker: number,
            job: worker.kind,
            kind,
            client: host,
            server,
            bytes,
            began: self.now,
            chunk,
            deadline,
            calls: 0,
            others: 0,
            is_done: false,
        };
        let number = self.operations.add(active);
        if deadline < NEVER {
            self.agenda.push(deadline, Event::Degrade(number));
        }
        self.call(number, server, true)
    }

    /// Calls a server for an operation.
    fn call(&mut self, number: u32, server: HostId, is_own: bool) -> Result<(), SimulatorError> {
        let plan = self.plan;
        let Some(operation) = self.operations.get(number) else { return Ok(()) };
        operation.calls += 1;
        operation.others += u32::from(!is_own);
        let (client, bytes, kind) = (operation.client, operation.bytes, &plan.operations[operation.kind]);
        let (requested, served) = (self.now, 0);
        let call =
            self.calls.add(Call { operation: number, is_own, server, channel: None, requested, served });
        if client == server {
            return self.serve(call);
        }
        let fabric = &plan.cluster.fabric;
        let paths = || [network::path(fabric, client, server), network::path(fabric, server, client)];
        let channel = self.connections.take((client, server, kind.class), call, &plan.tcp, paths)?;
        if let Some(call) = self.calls.get(call) {
            call.channel = Some(channel);
        }
        let request = if kind.direction == Direction::Read { MESSAGE } else { bytes };
        self.write(Connections::of_channel(channel)[0], request);
        Ok(())
    }

    /// All bytes of a message have arrived.
    pub(super) fn message_arrives(&mut self, connection: u32) -> Result<(), SimulatorError> {
        match self.connections.call_of(connection) {
            (Some(call), true) => self.serve(call),
            (Some(call), false) => self.end_call(call),
            (None, _) => Ok(()),
        }
    }

    /// The request of a call is at the server.
    fn serve(&mut self, number: u32) -> Result<(), SimulatorError> {
        let (plan, now) = (self.plan, self.now);
        let Some(call) = self.calls.get(number) else { return Ok(()) };
        call.requested = now;
        let server = call.server;
        let Some(operation) = self.operations.get(call.operation) else { return Ok(()) };
        let (bytes, kind) = (operation.bytes, &plan.operations[operation.kind]);
        let medium = &plan.media[kind.medium];
        let device = self.device(server, kind.medium);
        let ready = match kind.direction {
            Direction::Read => device.read(medium, now, bytes),
            Direction::Write => device.write(medium, now, bytes),
        };
        self.agenda.push(ready.max(now.saturating_add(1)), Event::Served(number));
        Ok(())
    }

    /// The answer of a call is ready.
    pub(super) fn answer(&mut self, number: u32) -> Result<(), SimulatorError> {
        let plan = self.plan;
        let Some(call) = self.calls.get(number) else { return Ok(()) };
        call.served = self.now - call.requested;
        let Some(channel) = call.channel else { return self.end_call(number) };
        let Some(operation) = self.operations.get(call.operation) else { return Ok(()) };
        let is_read = plan.operations[operation.kind].direction == Direction::Read;
        let answer = if is_read { operation.bytes } else { MESSAGE };
        self.write(Connections::of_channel(channel)[1], answer);
        Ok(())
    }

    /// The answer of a call is at the client.
    fn end_call(&mut self, number: u32) -> Result<(), SimulatorError> {
        let Some(call) = self.calls.remove(number) else { return Ok(()) };
        if let Some(channel) = call.channel {
            self.connections.release(channel);
        }
        let Some(operation) = self.operations.get(call.operation) else { return Ok(()) };
        operation.calls -= 1;
        operation.others -= u32::from(!call.is_own);
        let ends = !operation.is_done && (call.is_own || operation.others == 0);
        operation.is_done |= ends;
        operation.deadline = if operation.is_done { NEVER } else { operation.deadline };
        let (worker, is_over) = (operation.worker, operation.calls == 0);
        if ends {
            self.record(call.operation, &call)?;
        }
        if is_over {
            self.operations.remove(call.operation);
        }
        if ends { self.operation_ended(worker) } else { Ok(()) }
    }

    /// Records an operation that ends with a call.
    fn record(&mut self, number: u32, call: &Call) -> Result<(), SimulatorError> {
        let plan = self.plan;
        let Some(operation) = self.operations.get(number) else { return Ok(()) };
        if !plan.jobs[operation.job].is_recorded || operation.began < plan.warmup.0 {
            return Ok(());
        }
        if self.records.operations.len() >= MOST_RECORDS {
            return Err(SimulatorError::Records { at: Nanos(self.now) });
        }
        self.records.operations.push(OperationRecord {
            job: operation.job as u32,
            operation: operation.kind as u32,
            client: operation.client,
            server: operation.server,
            bytes: operation.bytes,
            began: Nanos(operation.began),
            ended: Nanos(self.now),
            served: Nanos(call.served),
            degraded: !call.is_own,
        });
        Ok(())
    }

    /// An operation has waited for its chunk for long, and fetches other chunks of the stripe: as many as the stripe has of
    /// data.
    pub(super) fn degrade(&mut self, number: u32) -> Result<(), SimulatorError> {
        let (plan, now) = (self.plan, self.now);
        // The number may belong to a later operation by now.
        let Some(operation) = self.operations.get(number).filter(|operation| operation.deadline == now)
        else {
            return Ok(());
        };
        operation.deadline = NEVER;
        let Some((stripe, chunk)) = operation.chunk else { return Ok(()) };
        let hosts = &plan.stripes[stripe];
        let others = (1..hosts.len()).map(|step| hosts[(chunk + step) % hosts.len()]);
        for server in others.take(plan.data_chunks) {
            self.call(number, server, false)?;
        }
        Ok(())
    }
}
