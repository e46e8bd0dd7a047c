//! A path of queues as the flows of one priority see it, which are served in order of arrival, and two analyses of it: by queue, and by
//! flow. A linear program that knows both is tighter than either (Bouillard, "Trade-off between accuracy and tractability of
//! Network Calculus in FIFO networks", Performance Evaluation 153, 2022).

use std::collections::BTreeMap;

use super::operators::Overload;
use super::service::ServiceCurve;
use crate::curve::ArrivalCurve;
use crate::token_bucket::TokenBucket;

/// Servers one after another, each of which serves what crosses it in order of arrival.
#[derive(Clone, PartialEq, Debug)]
pub struct Tandem {
    /// In order; at least one.
    pub servers: Vec<Server>,
    /// Limits on what crossings that share one bring together to their first server.
    pub links: Vec<TokenBucket>,
    /// What crosses a stretch of it; the first goes all the way.
    pub crossings: Vec<Crossing>,
}

/// What a server gives to all that cross it.
#[derive(Clone, PartialEq, Debug)]
pub struct Server {
    /// To what ends there.
    pub ends: ServiceCurve,
    /// To what goes on from it, in whole packets where work moves so.
    pub passes_on: ServiceCurve,
    /// The most that all that goes on to the next server brings there, if anything limits it.
    pub link: Option<TokenBucket>,
}

/// Flows that cross the same servers, as one.
#[derive(Clone, PartialEq, Debug)]
pub struct Crossing {
    /// What comes to its first server.
    pub arrivals: ArrivalCurve,
    /// Its first server, by index.
    pub first: usize,
    /// Its last, not before the first.
    pub last: usize,
    /// Which of the links limits it and others at its first server.
    pub link: Option<usize>,
}

impl Crossing {
    /// Whether it crosses a server.
    pub fn is_at(&self, server: usize) -> bool {
        (self.first..=self.last).contains(&server)
    }
}

/// What a crossing comes by to a server: nothing that limits it, one of the links, or the server before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum From {
    Outside,
    Link(usize),
    Before,
}

impl Tandem {
    /// Total flow analysis: the longest delay at each server, in seconds. What passes on is the arrivals, late by the delays so far, and
    /// within the link.
    ///
    /// # Errors
    /// The first server that is asked for more than it has.
    pub fn total_flow(&self) -> Result<Vec<f64>, (usize, Overload)> {
        let mut late = vec![0.0; self.crossings.len()];
        let mut delays = Vec::with_capacity(self.servers.len());
        for (at, server) in self.servers.iter().enumerate() {
            let overload =
                |arrivals: &ArrivalCurve| Overload { asked: arrivals.rate(), served: server.ends.rate() };
            let mut by_link: BTreeMap<From, ArrivalCurve> = BTreeMap::new();
            for (of, crossing) in self.crossings.iter().enumerate().filter(|(_, of)| of.is_at(at)) {
                let from = match crossing.link {
                    _ if crossing.first < at => From::Before,
                    Some(link) => From::Link(link),
                    None => From::Outside,
                };
                let later = crossing.arrivals.later(late[of]).ok_or((at, overload(&crossing.arrivals)))?;
                let sum = by_link.entry(from).or_insert_with(ArrivalCurve::zero);
                *sum = sum.plus(&later);
            }
            let mut all = ArrivalCurve::zero();
            for (from, arrivals) in by_link {
                let link = match from {
                    From::Outside => None,
                    From::Link(link) => Some(self.links[link]),
                    From::Before => self.servers[at - 1].link,
                };
                all = all.plus(&link.map_or(arrivals.clone(), |link| arrivals.within(&link.into())));
            }
            let delay = server.ends.delay(&all).map_err(|overload| (at, overload))?;
            for (late, crossing) in late.iter_mut().zip(&self.crossings) {
                *late += if crossing.is_at(at) { delay } else { 0.0 };
            }
            delays.push(delay);
        }
        Ok(delays)
    }

    /// Separated flow analysis: the longest delay of each crossing over all of its servers, in seconds; none where nothing is left for it
    /// beside the others. Each server leaves it what [`ServiceCurve::leftover_in_order`] says, and a burst is paid for once.
    pub fn separated_flow(&self) -> Vec<Option<f64>> {
        let mut arrivals: Vec<Option<ArrivalCurve>> =
            self.crossings.iter().map(|of| Some(of.arrivals.clone())).collect();
        let mut services: Vec<Option<ServiceCurve>> = vec![None; self.crossings.len()];
        for (at, server) in self.servers.iter().enumerate() {
            let here: Vec<usize> =
                (0..self.crossings.len()).filter(|&of| self.crossings[of].is_at(at)).collect();
            let next: Vec<_> = (here.iter())
                .map(|&of| {
                    let others = here.iter().filter(|&&other| other != of);
                    let others = others.map(|&other| arrivals[other].clone());
                    let others =
                        others.reduce(|a, b| Some(a?.plus(&b?))).unwrap_or(Some(ArrivalCurve::zero()))?;
                    let crossing = &self.crossings[of];
                    let service = if crossing.last == at { &server.ends } else { &server.passes_on };
                    let left = service.leftover_in_order(&others).ok()?;
                    let output = left.output(arrivals[of].as_ref()?).ok();
                    let along = match crossing.first == at {
                        true => Some(left),
                        false => services[of].as_ref()?.then(&left),
                    };
                    Some((along, output))
                })
                .collect();
            for (of, next) in here.into_iter().zip(next) {
                (services[of], arrivals[of]) = next.unwrap_or((None, None));
            }
        }
        let delay =
            |(crossing, service): (&Crossing, Option<ServiceCurve>)| service?.delay(&crossing.arrivals).ok();
        self.crossings.iter().zip(services).map(delay).collect()
    }
}
