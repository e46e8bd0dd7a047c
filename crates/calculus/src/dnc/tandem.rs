//! A path of queues for the flows of one priority, served in order of arrival, and two analyses of it: by queue, and by
//! flow. A linear program that combines the two analyses is tighter than each of them (Bouillard, "Trade-off between
//! accuracy and tractability of Network Calculus in FIFO networks", Performance Evaluation 153, 2022).

use std::collections::BTreeMap;

use super::operators::Overload;
use super::service::ServiceCurve;
use crate::curve::ArrivalCurve;
use crate::token_bucket::TokenBucket;

/// Servers in sequence; each serves its crossings in order of arrival.
#[derive(Clone, PartialEq, Debug)]
pub struct Tandem {
    /// Servers in order; at least one.
    pub servers: Vec<Server>,
    /// Limits on the crossings that share a link to their first server.
    pub links: Vec<TokenBucket>,
    /// Flows that cross a part of the path; the first crosses all of it.
    pub crossings: Vec<Crossing>,
}

/// Service for all crossings of a server.
#[derive(Clone, PartialEq, Debug)]
pub struct Server {
    /// Service for flows that end at this server.
    pub ends: ServiceCurve,
    /// Service for flows that continue, in whole packets if work moves in packets.
    pub passes_on: ServiceCurve,
    /// Limit on all flows that continue to the next server together, if there is one.
    pub link: Option<TokenBucket>,
}

/// Flows that cross the same servers, combined into one.
#[derive(Clone, PartialEq, Debug)]
pub struct Crossing {
    /// Arrivals at the first server.
    pub arrivals: ArrivalCurve,
    /// First server, by index.
    pub first: usize,
    /// Last server, not before the first.
    pub last: usize,
    /// Index of the link that limits this crossing and others together at its first server; `None` without such a link.
    pub link: Option<usize>,
}

impl Crossing {
    /// True if the crossing passes a server.
    pub fn is_at(&self, server: usize) -> bool {
        (self.first..=self.last).contains(&server)
    }
}

/// Source of a crossing at a server: unlimited, one of the links, or the previous server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Outside,
    Link(usize),
    Before,
}

impl Tandem {
    /// Total flow analysis: the longest delay at each server, in seconds. The output of a crossing is its arrivals,
    /// delayed by the delays of all servers so far, within the limit of the link.
    ///
    /// # Errors
    /// The first overloaded server.
    pub fn total_flow(&self) -> Result<Vec<f64>, (usize, Overload)> {
        let mut late = vec![0.0; self.crossings.len()];
        let mut delays = Vec::with_capacity(self.servers.len());
        for (at, server) in self.servers.iter().enumerate() {
            let overload =
                |arrivals: &ArrivalCurve| Overload { load: arrivals.rate(), service: server.ends.rate() };
            let mut by_link: BTreeMap<Source, ArrivalCurve> = BTreeMap::new();
            let here = self.crossings.iter().enumerate().filter(|(_, crossing)| crossing.is_at(at));
            for (index, crossing) in here {
                let from = match crossing.link {
                    _ if crossing.first < at => Source::Before,
                    Some(link) => Source::Link(link),
                    None => Source::Outside,
                };
                let later =
                    crossing.arrivals.delayed(late[index]).ok_or((at, overload(&crossing.arrivals)))?;
                let sum = by_link.entry(from).or_insert_with(ArrivalCurve::zero);
                *sum = sum.plus(&later);
            }
            let mut all = ArrivalCurve::zero();
            for (from, arrivals) in by_link {
                let link = match from {
                    Source::Outside => None,
                    Source::Link(link) => Some(self.links[link]),
                    Source::Before => self.servers[at - 1].link,
                };
                all = all.plus(&link.map_or(arrivals.clone(), |link| arrivals.min(&link.into())));
            }
            let delay = server.ends.delay(&all).map_err(|overload| (at, overload))?;
            for (late, crossing) in late.iter_mut().zip(&self.crossings) {
                *late += if crossing.is_at(at) { delay } else { 0.0 };
            }
            delays.push(delay);
        }
        Ok(delays)
    }

    /// Separated flow analysis: the longest delay of each crossing over all its servers, in seconds; `None` if the
    /// other flows leave a crossing no service. Each server leaves the crossing the service of
    /// [`ServiceCurve::leftover_in_order`], and a burst counts once.
    pub fn separated_flow(&self) -> Vec<Option<f64>> {
        let mut arrivals: Vec<Option<ArrivalCurve>> =
            self.crossings.iter().map(|crossing| Some(crossing.arrivals.clone())).collect();
        let mut services: Vec<Option<ServiceCurve>> = vec![None; self.crossings.len()];
        for (at, server) in self.servers.iter().enumerate() {
            let here: Vec<usize> =
                (0..self.crossings.len()).filter(|&index| self.crossings[index].is_at(at)).collect();
            let next: Vec<_> = (here.iter())
                .map(|&index| {
                    let others = here.iter().filter(|&&other| other != index);
                    let others = others.map(|&other| arrivals[other].clone());
                    let others =
                        others.reduce(|a, b| Some(a?.plus(&b?))).unwrap_or(Some(ArrivalCurve::zero()))?;
                    let crossing = &self.crossings[index];
                    let service = if crossing.last == at { &server.ends } else { &server.passes_on };
                    let leftover = service.leftover_in_order(&others).ok()?;
                    let output = leftover.output(arrivals[index].as_ref()?).ok();
                    let along = match crossing.first == at {
                        true => Some(leftover),
                        false => services[index].as_ref()?.then(&leftover),
                    };
                    Some((along, output))
                })
                .collect();
            for (index, next) in here.into_iter().zip(next) {
                (services[index], arrivals[index]) = next.unwrap_or((None, None));
            }
        }
        let delay =
            |(crossing, service): (&Crossing, Option<ServiceCurve>)| service?.delay(&crossing.arrivals).ok();
        self.crossings.iter().zip(services).map(delay).collect()
    }
}
