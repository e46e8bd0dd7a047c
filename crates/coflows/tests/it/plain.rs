//! Plain simulators for comparison: at each event they compute everything again, from lists of flows. They share no
//! code with the crate.

/// A flow in the tests. Links are numbers; a byte is one unit of work on each.
#[derive(Clone, Debug)]
pub struct Flow {
    pub coflow: u32,
    pub start: f64,
    pub links: Vec<usize>,
    pub bytes: f64,
}

/// A change of the capacity of a link.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub at: f64,
    pub link: usize,
    pub capacity: f64,
}

/// Returns the end of each flow under a rule that gives rates. The rule receives the capacities, the bytes left of each
/// flow (negative for flows that are not active), the present rates, and whether a flow started, a coflow ended or a
/// capacity changed.
fn simulate(
    capacities: &[f64],
    flows: &[Flow],
    mut change: Option<Change>,
    mut rule: impl FnMut(&[f64], &[f64], &mut Vec<f64>, bool),
) -> Vec<f64> {
    let mut capacities = capacities.to_vec();
    let mut left = vec![-1.0; flows.len()];
    let mut rates = vec![0.0; flows.len()];
    let mut ends = vec![f64::INFINITY; flows.len()];
    let mut started = vec![false; flows.len()];
    let mut now = 0.0;
    loop {
        let starts = (0..flows.len()).filter(|&f| !started[f]).map(|f| flows[f].start);
        let completions = (0..flows.len()).filter(|&f| left[f] >= 0.0).map(|f| now + left[f] / rates[f]);
        let changes = change.iter().map(|change| change.at);
        let next = starts.chain(completions).chain(changes).fold(f64::INFINITY, f64::min);
        if next == f64::INFINITY {
            return ends;
        }
        let (mut decision, mut event) = (false, false);
        for f in 0..flows.len() {
            if left[f] >= 0.0 {
                left[f] = (left[f] - rates[f] * (next - now)).max(0.0);
                if left[f] <= 1e-9 * flows[f].bytes {
                    (left[f], ends[f], event, rates[f]) = (-1.0, next, true, 0.0);
                    let others = |other: usize| flows[other].coflow == flows[f].coflow && left[other] >= 0.0;
                    decision |= !(0..flows.len()).any(others);
                }
            }
        }
        now = next;
        if let Some(Change { link, capacity, .. }) = change.take_if(|change| change.at <= now) {
            (capacities[link], decision) = (capacity, true);
        }
        for f in 0..flows.len() {
            if !started[f] && flows[f].start <= now {
                (started[f], left[f], decision) = (true, flows[f].bytes, true);
            }
        }
        if decision || event {
            rule(&capacities, &left, &mut rates, decision);
        }
    }
}

/// Returns the ends under smallest effective bottleneck first.
pub fn sebf(capacities: &[f64], flows: &[Flow], change: Option<Change>) -> Vec<f64> {
    // Flows in the order of the last decision.
    let mut order: Vec<usize> = Vec::new();
    simulate(capacities, flows, change, |capacities, left, rates, decision| {
        let on = |f: usize, link: usize| flows[f].links.contains(&link);
        let free = |rates: &[f64], link: usize| {
            let used: f64 = (0..flows.len()).filter(|&f| on(f, link)).map(|f| rates[f]).sum();
            if capacities[link] - used > 1e-9 * capacities[link] { capacities[link] - used } else { 0.0 }
        };
        if decision {
            rates.fill(0.0);
            let mut coflows: Vec<u32> = flows.iter().map(|flow| flow.coflow).collect();
            coflows.sort_unstable();
            coflows.dedup();
            let active =
                |coflow: u32| (0..flows.len()).filter(move |&f| flows[f].coflow == coflow && left[f] >= 0.0);
            let span = |coflow: u32, rate: &dyn Fn(usize) -> f64| {
                let of_link = |link: usize| {
                    let bytes: f64 = active(coflow).filter(|&f| on(f, link)).map(|f| left[f]).sum();
                    if bytes > 0.0 { bytes / rate(link) } else { 0.0 }
                };
                (0..capacities.len()).map(of_link).fold(0.0, f64::max)
            };
            coflows.retain(|&coflow| active(coflow).next().is_some());
            coflows.sort_by(|&a, &b| {
                span(a, &|link| capacities[link]).total_cmp(&span(b, &|link| capacities[link]))
            });
            order.clear();
            for coflow in coflows {
                let before = rates.clone();
                let span = span(coflow, &|link| free(&before, link));
                let mut members: Vec<usize> = active(coflow).collect();
                members.sort_by(|&a, &b| flows[a].links.cmp(&flows[b].links));
                for &f in members.iter().filter(|_| span.is_finite() && span > 0.0) {
                    rates[f] = left[f] / span;
                }
                order.extend(members);
            }
        }
        for &f in order.iter().filter(|&&f| left[f] >= 0.0) {
            rates[f] += flows[f].links.iter().map(|&link| free(rates, link)).fold(f64::INFINITY, f64::min);
        }
    })
}

/// Returns the ends under max-min fair rates, by raising all rates together.
pub fn fair(capacities: &[f64], flows: &[Flow], change: Option<Change>) -> Vec<f64> {
    simulate(capacities, flows, change, |capacities, left, rates, _| {
        rates.fill(0.0);
        let mut rising: Vec<usize> = (0..flows.len()).filter(|&f| left[f] >= 0.0).collect();
        let mut free = capacities.to_vec();
        while !rising.is_empty() {
            let crossing =
                |link: usize| rising.iter().filter(|&&f| flows[f].links.contains(&link)).count() as f64;
            let used: Vec<f64> = (0..free.len()).map(crossing).collect();
            let steps =
                free.iter().zip(&used).filter(|(_, used)| **used > 0.0).map(|(free, used)| free / used);
            let step = steps.fold(f64::INFINITY, f64::min);
            for &f in &rising {
                rates[f] += step;
            }
            for (free, used) in free.iter_mut().zip(used) {
                *free -= step * used;
            }
            rising.retain(|&f| !flows[f].links.iter().any(|&link| free[link] <= 1e-9 * capacities[link]));
        }
    })
}
