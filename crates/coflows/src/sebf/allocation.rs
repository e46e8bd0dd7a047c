//! Decisions: the order of coflows, their guaranteed rates, and the use of what is left.

use leeward_fabric::ResourceId;

use super::{Group, Sebf};

impl Sebf {
    /// Decides the rates of all flows.
    pub(super) fn decide(&mut self) {
        self.free.append(&mut self.ended);
        self.links.reset();
        let order = self.order();
        let mut position = 0;
        for number in &order {
            self.guarantee(*number, &mut position);
        }
        self.ends.clear();
        for number in &order {
            let group = std::mem::take(&mut self.group_mut(*number).flows);
            for &slot in &group {
                self.raise(slot);
                self.links.enter(&self.flows[slot as usize].hops, slot);
            }
            self.group_mut(*number).flows = group;
        }
        let slots: Vec<u32> = self.groups.values().flat_map(|group| group.flows.iter().copied()).collect();
        for slot in slots {
            self.predict(slot);
        }
    }

    fn group_mut(&mut self, number: u64) -> &mut Group {
        self.groups.get_mut(&number).expect("the order has active coflows only")
    }

    /// Returns the numbers of the coflows, the smallest effective bottleneck first. Computes the work that each of them
    /// has left on each link.
    fn order(&mut self) -> Vec<u64> {
        let Sebf { now, links, flows, groups, .. } = self;
        let mut total = vec![0.0; links.count()];
        let mut order = Vec::with_capacity(groups.len());
        for (&number, group) in groups.iter_mut() {
            group.flows.retain(|&slot| flows[slot as usize].group == Some(number));
            if std::mem::take(&mut group.grown) {
                let path = |slot: &u32| flows[*slot as usize].hops.iter().map(|hop| hop.resource);
                group.flows.sort_by(|a, b| path(a).cmp(path(b)));
            }
            group.work.clear();
            for &slot in &group.flows {
                let flow = &mut flows[slot as usize];
                flow.update(*now);
                for hop in &flow.hops {
                    let sum: &mut f64 = &mut total[hop.resource.index()];
                    if *sum == 0.0 {
                        group.work.push((hop.resource.0, 0.0));
                    }
                    *sum += flow.left * hop.work;
                }
            }
            let mut bottleneck: f64 = 0.0;
            for (r, work) in &mut group.work {
                *work = std::mem::take(&mut total[*r as usize]);
                bottleneck = bottleneck.max(time(*work, links.available(*r)));
            }
            order.push((bottleneck, number));
        }
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        order.into_iter().map(|(_, number)| number).collect()
    }

    /// Gives a coflow the least rates with which all its flows end together, as early as the free capacity allows.
    fn guarantee(&mut self, number: u64, position: &mut u32) {
        let Sebf { links, flows, groups, .. } = self;
        let group = &groups[&number];
        let span = group.work.iter().map(|&(r, work)| time(work, links.free(r))).fold(0.0, f64::max);
        let served = span > 0.0 && span < f64::INFINITY;
        for &slot in &group.flows {
            let flow = &mut flows[slot as usize];
            flow.rate = if served { flow.left / span } else { 0.0 };
            flow.version = flow.version.wrapping_add(1);
            flow.position = *position;
            *position += 1;
        }
        for &(r, work) in group.work.iter().filter(|_| served) {
            links.take(r, work / span);
        }
    }

    /// Gives a flow all that its links have free. Returns true if that is more than nothing.
    fn raise(&mut self, slot: u32) -> bool {
        let flow = &mut self.flows[slot as usize];
        let more = self.links.headroom(&flow.hops);
        if more <= 0.0 {
            return false;
        }
        flow.rate += more;
        for hop in &flow.hops {
            self.links.take(hop.resource.0, more * hop.work);
        }
        true
    }

    /// Gives the free capacity of some links to the flows on them, in the order of the last decision.
    pub(super) fn share_released(&mut self, links: &[ResourceId]) {
        let mut slots = Vec::new();
        for &resource in links {
            slots.extend(self.links.members(resource).iter().copied().filter(|&slot| {
                let flow = &self.flows[slot as usize];
                flow.group.is_some() && self.links.headroom(&flow.hops) > 0.0
            }));
        }
        slots.sort_unstable_by_key(|&slot| self.flows[slot as usize].position);
        slots.dedup();
        for slot in slots {
            let now = self.now;
            self.flows[slot as usize].update(now);
            if self.raise(slot) {
                let flow = &mut self.flows[slot as usize];
                flow.version = flow.version.wrapping_add(1);
                self.predict(slot);
            }
        }
    }
}

/// Returns the time of some work at a rate.
fn time(work: f64, rate: f64) -> f64 {
    if work > 0.0 { work / rate } else { 0.0 }
}
