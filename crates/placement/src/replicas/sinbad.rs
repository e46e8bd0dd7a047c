//! Policy `sinbad`: each copy goes below the link with the most expected capacity (Chowdhury, Kandula, Stoica:
//! "Leveraging endpoint flexibility in data-intensive clusters", SIGCOMM 2013; pseudocodes 1 and 2).
//!
//! Small blocks go to the default policy. For the others, the policy ranks links level by level down the tree
//! by min(Cap - Rx, DiskWriteCap). Chosen links carry the block until the next report, so that blocks between
//! two reports do not all go to one place. With a decision interval q, blocks wait and are decided together.
//!
//! The paper does not define ties, and contradicts itself about racks. Here all links that are limited by the disk are
//! equal, and a seeded hash ranks equal links. Pseudocode 2 puts every remote copy into a rack of its own, while the
//! text keeps two of three copies in one rack. `remote_racks` chooses: 1 as in the text (default), 2 as in the
//! pseudocode.

use leeward_fabric::Nanos;
use leeward_ledger::{Fade, Transaction};
use leeward_registry::{Registration, schema, setting_error, settings};

use super::first_replica::explain_chosen;
use super::search::Search;
use super::sinbad_settings::{Hysteresis, SinbadSettings, WithoutTelemetry};
use super::source::source;
use super::{Chain, ReplicaRequest, Uniform, UniformSettings, transfer, transfers};
use crate::{Basis, Context, Decision, Note, Policy, Refusal};

/// Placement by expected link capacity.
#[derive(Clone, Debug)]
pub struct Sinbad {
    name: &'static str,
    settings: SinbadSettings,
    default: Uniform,
}

pub(super) const REGISTRATION: Registration<dyn Policy<ReplicaRequest>> = Registration {
    name: "sinbad",
    aliases: &[],
    summary: "each copy below the link with the most expected capacity, charged until the next report",
    source: "Sinbad (SIGCOMM 2013), pseudocodes 1 and 2",
    schema: schema::<SinbadSettings>,
    make: |text| {
        let read: SinbadSettings = settings("sinbad", text)?;
        if read.makespan {
            let message = "`sinbad` serves blocks as they came; leave it out, or use `sinbad-file`";
            return Err(setting_error("sinbad", "makespan", message));
        }
        Ok(Box::new(Sinbad::new(read)))
    },
};

impl Sinbad {
    /// Creates the policy from settings.
    pub fn new(settings: SinbadSettings) -> Sinbad {
        Sinbad::named("sinbad", settings)
    }

    pub(super) fn named(name: &'static str, settings: SinbadSettings) -> Sinbad {
        let default = Uniform::new(UniformSettings { remote_racks: settings.remote_racks });
        Sinbad { name, settings, default }
    }

    /// Places a block by the default policy. The search selected no link, so `hysteresis: selected` charges none.
    fn place_by_default(
        &self,
        request: &ReplicaRequest,
        context: &mut Context<'_, '_>,
        note: Note,
    ) -> Result<Decision<Chain>, Refusal> {
        let copies = self.default.choose(request, context)?;
        let (fade, now) = (Fade::AtNextWindow, context.view.now());
        let basis = Basis {
            epoch: context.view.epoch(),
            oldest: None,
            policy: self.name(),
            note: Some(note),
            gaps: None,
            estimate: None,
            source: source(request),
        };
        Ok(Decision {
            change: match self.settings.hysteresis {
                Hysteresis::Selected => {
                    let entry = transfer(request, Vec::new(), None, fade, now);
                    Transaction { add: vec![entry], ..Transaction::default() }
                }
                Hysteresis::All => transfers(context.pool.fabric(), request, &copies, None, fade, now),
            },
            basis,
            why: explain_chosen(request, &copies, context),
            choice: copies,
        })
    }
}

impl Policy<ReplicaRequest> for Sinbad {
    fn name(&self) -> &'static str {
        self.name
    }

    fn place_one(
        &self,
        request: &ReplicaRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Chain>, Refusal> {
        if request.size < self.settings.threshold {
            return self.place_by_default(request, context, Note::Small);
        }
        let settings = &self.settings;
        let mut search = Search::new(settings, request, context)?;
        match search.select_all() {
            Ok(()) => {}
            Err(Refusal::NoTelemetry { .. }) if settings.without_telemetry == WithoutTelemetry::Default => {
                return self.place_by_default(request, context, Note::NoTelemetry);
            }
            Err(refusal) => return Err(refusal),
        }
        let (copies, hops, oldest, why) = search.into_parts();
        let (fade, now) = (Fade::AtNextWindow, context.view.now());
        let cap = [settings.disk_write_cap, context.pool.write_rate()].into_iter().flatten().min();
        Ok(Decision {
            change: match settings.hysteresis {
                Hysteresis::Selected => Transaction {
                    add: vec![transfer(request, hops, cap, fade, now)],
                    ..Transaction::default()
                },
                Hysteresis::All => transfers(context.pool.fabric(), request, &copies, cap, fade, now),
            },
            basis: Basis {
                epoch: context.view.epoch(),
                oldest,
                policy: self.name(),
                note: None,
                gaps: None,
                estimate: None,
                source: source(request),
            },
            why,
            choice: copies,
        })
    }

    /// Each block sees the load that the earlier blocks of the batch add to the links that `hysteresis` selects.
    fn place(
        &self,
        batch: &[ReplicaRequest],
        context: &mut Context<'_, '_>,
    ) -> Vec<Result<Decision<Chain>, Refusal>> {
        let mut answers = Vec::with_capacity(batch.len());
        for (i, request) in batch.iter().enumerate() {
            let answer = self.place_one(request, context);
            // The search charges links within a request. The loop below charges them for the rest of the batch.
            if self.settings.hysteresis == Hysteresis::All && i + 1 < batch.len() {
                for entry in answer.iter().flat_map(|decision| &decision.change.add) {
                    context.view.add(entry);
                }
            }
            answers.push(answer);
        }
        answers
    }

    fn batching_delay(&self, request: &ReplicaRequest) -> Nanos {
        if request.size < self.settings.threshold {
            Nanos(0)
        } else {
            self.settings.interval.unwrap_or_default()
        }
    }
}
