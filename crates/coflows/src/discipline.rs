//! Disciplines: the ways in which coflows share links.

use leeward_registry::{NoSettings, Registration, Registry, schema, settings};

/// A way to share links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Discipline {
    /// Max-min fair rates for flows, which know no coflows: [`leeward_fluid::Network`].
    Fair,
    /// Smallest effective bottleneck first: [`super::Sebf`].
    Sebf,
}

/// All disciplines.
pub const REGISTRY: Registry<Discipline> = Registry {
    noun: "policy",
    kind: Some("coflows"),
    entries: &[
        Registration {
            name: "fair",
            aliases: &[],
            summary: "every flow has its max-min fair rate; coflows play no part",
            source: "Bertsekas and Gallager, Data Networks, section 6.5.2; the per-flow fairness of Varys section 7",
            schema: schema::<NoSettings>,
            make: |text| settings::<NoSettings>("fair", text).map(|_| Box::new(Discipline::Fair)),
        },
        Registration {
            name: "sebf",
            aliases: &[],
            summary: "coflows in the order of their earliest possible end, each with the least rates that it takes; what is left goes out in this order too",
            source: "Varys (SIGCOMM 2014) section 5.3: SEBF, MADD and work conservation",
            schema: schema::<NoSettings>,
            make: |text| settings::<NoSettings>("sebf", text).map(|_| Box::new(Discipline::Sebf)),
        },
    ],
};
