//! Re-placement: whether an app that runs should go on elsewhere (Choreo section 2.4).
//!
//! The policy places what is left of the app once more, as if the app were not there: its own load is taken out of the
//! view, its tasks out of the pool. Both placements are then judged by one model, when the rest of the transfers would be
//! over ([`super::completion()`]). The paper says that apps are re-evaluated every T minutes and leaves open what a
//! migration is worth; here:
//!
//! ```text
//! cost  = pause + time to carry the memory of every task that moves, all at once, from its host to its next
//! moves if  cost + (the rest, on the new hosts)  <  (1 - margin) * (the rest, where it is)
//! ```
//!
//! A task that has nothing more to send or receive stays where it is, if the others leave it room. So what is predicted gets shorter with every migration, by `margin` at least, costs included: two placements that are
//! about as good are not exchanged for each other again and again.

use leeward_fabric::{HostId, Nanos};
use leeward_ledger::{Owner, OwnerKind};

use super::seats::Seats;
use super::{AppRequest, Assignment, Estimate, Transfer, change, completion};
use crate::{Context, Decision, Policy, Pool, Refusal};

/// What a migration costs besides carrying memory, and what it must save.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Worth {
    /// For how long the app stands still once its memory is carried.
    pub pause: Nanos,
    /// The share of the time left, at least, that must be saved when all costs are paid; 0 to 1.
    pub margin: f64,
}

/// An app placed once more. Times are predictions, in seconds from now; infinite where a link carries nothing.
#[derive(Clone, PartialEq, Debug)]
pub struct Again {
    /// Where its tasks would go, and what the ledger would learn of it.
    pub decision: Decision<Assignment>,
    /// When the rest would be over where it is.
    pub stays: f64,
    /// When the rest would be over there, without the cost of going there.
    pub moves: f64,
    /// How long going there takes.
    pub cost: f64,
    /// Tasks that would change hosts.
    pub moved: u32,
}

impl Again {
    /// Whether it should go there.
    pub fn is_worth(&self, margin: f64) -> bool {
        self.moved > 0 && self.cost + self.moves < (1.0 - margin) * self.stays
    }
}

/// Places `left` once more: an app that runs on `hosts`, with what it has still to send. The context's pool is one
/// without the tasks of the app; its own load is taken out of the view here.
///
/// # Errors
/// The policy's refusal, with which an app stays where it is.
pub fn again(
    policy: &dyn Policy<AppRequest>,
    left: &AppRequest,
    hosts: &[HostId],
    pause: Nanos,
    context: &mut Context<'_, '_>,
) -> Result<Again, Refusal> {
    context.view.without(&Owner { kind: OwnerKind::App, id: left.id });
    let mark = context.view.mark();
    let decision = policy.place(std::slice::from_ref(left), context).remove(0)?;
    context.view.back_to(mark);
    let decision = match stay_put(left, hosts, &decision.choice, context.pool) {
        Some(choice) if choice != decision.choice => {
            let notes = change::Notes { why: decision.why, gap: decision.basis.gap };
            change::decision(decision.basis.policy, left, choice, notes, context)
        }
        _ => decision,
    };
    let (view, estimate) = (&*context.view, Estimate::default());
    let next = &decision.choice;
    let over = |on: &[HostId]| completion(view, &left.transfers, on, estimate).seconds;
    // Each task is an end where it is, and another where it goes.
    let tasks = left.tasks.len() as u32;
    let moving = (0..tasks).filter(|&task| hosts[task as usize] != next[task as usize]);
    let memory = |task: u32| left.tasks[task as usize].memory;
    let carried: Vec<Transfer> =
        moving.map(|task| Transfer { from: task, to: tasks + task, bytes: memory(task) }).collect();
    let carrying = completion(view, &carried, &[hosts, next].concat(), estimate).seconds;
    Ok(Again {
        stays: over(hosts),
        moves: over(next),
        cost: pause.as_secs_f64() + carrying,
        moved: carried.len() as u32,
        decision,
    })
}

/// `next`, but tasks that have nothing more to send or receive stay on `hosts` where there is room for them beside those
/// that do. `None` if one of them has no room then.
fn stay_put(left: &AppRequest, hosts: &[HostId], next: &[HostId], pool: &Pool) -> Option<Assignment> {
    let mut talks = vec![false; next.len()];
    for transfer in left.transfers.iter().filter(|transfer| transfer.bytes.0 > 0) {
        talks[transfer.from as usize] = true;
        talks[transfer.to as usize] = true;
    }
    let mut seats = Seats::new(pool, left);
    let (busy, idle): (Vec<u32>, Vec<u32>) = (0..next.len() as u32).partition(|&task| talks[task as usize]);
    for task in busy {
        seats.take(task, next[task as usize]);
    }
    for task in idle {
        seats.take_first(task, [hosts[task as usize], next[task as usize]]).ok()?;
    }
    Some(seats.assignment())
}
