//! Steps 1 to 3 of Solstice: demand is cut to the port capacity of a week, in whole time units, with the same sum at
//! each port.

use crate::demand::sums;

/// Cuts demand to port capacity, shared max-min fairly as far as whole bytes allow.
///
/// All unsettled entries get the same share, the level. The level rises until an entry has all its demand or a port's
/// budget is used up. The level at which a port is used up changes only when one of its entries settles. So the search
/// visits only the levels of sorted entries and of ports.
pub(in super::super) fn water_fill(racks: usize, demand: &[u64], budget: u64) -> Vec<u64> {
    let mut given = demand.to_vec();
    let (mut rows, mut columns) = sums(racks, demand);
    if rows.iter().chain(&columns).all(|&sum| sum <= budget) {
        return given;
    }
    // Ports whose demand fits their budget never run out.
    let mut ports: Vec<Port> =
        rows.drain(..).chain(columns.drain(..)).map(|sum| Port::new(sum > budget)).collect();
    let mut entries: Vec<(u64, u32, u32)> = Vec::new();
    for (at, &entry) in demand.iter().enumerate().filter(|&(_, &entry)| entry > 0) {
        let (row, column) = (at / racks, racks + at % racks);
        if ports[row].short || ports[column].short {
            entries.push((entry, row as u32, column as u32));
            ports[row].open += 1;
            ports[column].open += 1;
        }
    }
    entries.sort_unstable_by_key(|&(entry, _, _)| entry);
    let mut settled = 0;
    // No port is used up below this level.
    let mut spent = 0;
    while settled < entries.len() {
        while let Some(&(entry, row, column)) = entries.get(settled).filter(|entry| entry.0 <= spent) {
            settled += 1;
            if ports[row as usize].closed || ports[column as usize].closed {
                continue;
            }
            ports[row as usize].settle(entry);
            ports[column as usize].settle(entry);
        }
        let next = ports.iter().filter_map(|port| port.level(budget)).min();
        match next {
            None => break,
            Some(level) if level > spent => spent = level,
            // No entry is left at this level, so the exhausted ports close: first those without a spare byte.
            Some(level) => {
                let has_no_spare = |port: &Port| port.left(budget) == level * port.open;
                let is_exhausted = |port: &Port| port.level(budget) == Some(level);
                let first = ports.iter().position(|port| is_exhausted(port) && has_no_spare(port));
                let first = first.or_else(|| ports.iter().position(is_exhausted));
                let Some(port) = first else { break };
                ports[port].closed = true;
                for other in 0..racks {
                    let (row, column) = if port < racks { (port, other) } else { (other, port - racks) };
                    let end = if port < racks { racks + other } else { other };
                    // Entries with a demand of at most the level are already settled.
                    if demand[row * racks + column] > level && !ports[end].closed {
                        ports[end].settle(level);
                        given[row * racks + column] = level;
                    }
                }
            }
        }
    }
    given
}

/// A rack's uplink or downlink while demand is cut.
struct Port {
    /// True if its demand exceeds its budget.
    short: bool,
    /// True if its budget is used up.
    closed: bool,
    /// Number of its unsettled entries.
    open: u64,
    /// Bytes given to its settled entries.
    given: u64,
}

impl Port {
    fn new(short: bool) -> Port {
        Port { short, closed: false, open: 0, given: 0 }
    }

    fn settle(&mut self, entry: u64) {
        self.open -= 1;
        self.given += entry;
    }

    /// Bytes left for its unsettled entries.
    fn left(&self, budget: u64) -> u64 {
        budget - self.given
    }

    /// Level at which its budget is used up.
    fn level(&self, budget: u64) -> Option<u64> {
        (self.short && !self.closed && self.open > 0).then(|| self.left(budget) / self.open)
    }
}

/// Converts demand to units of time: up to one unit becomes one unit, and larger values are rounded half up.
pub(in super::super) fn align(demand: &[u64], unit_bytes: u64) -> Vec<u64> {
    let units = |&bytes: &u64| match bytes {
        0 => 0,
        _ => (bytes / unit_bytes + u64::from(bytes % unit_bytes >= unit_bytes.div_ceil(2))).max(1),
    };
    demand.iter().map(units).collect()
}

/// Adds demand until each row and column has the largest of their sums. Existing entries get demand first, in the order
/// of `list`; new entries are appended to the list.
pub(super) fn stuff(racks: usize, units: &mut [u64], list: &mut Vec<u32>) {
    let (mut rows, mut columns) = sums(racks, units);
    let most = rows.iter().chain(&columns).copied().max().unwrap_or(0);
    for &at in list.iter() {
        let (row, column) = (at as usize / racks, at as usize % racks);
        let gap = (most - rows[row]).min(most - columns[column]);
        units[at as usize] += gap;
        rows[row] += gap;
        columns[column] += gap;
    }
    let largest_first = |sums: &[u64]| {
        let mut order: Vec<usize> = (0..racks).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(sums[at]));
        order
    };
    let (by_row, by_column) = (largest_first(&rows), largest_first(&columns));
    let (mut i, mut j) = (0, 0);
    while i < racks && j < racks {
        let (row, column) = (by_row[i], by_column[j]);
        let (row_gap, column_gap) = (most - rows[row], most - columns[column]);
        let gap = row_gap.min(column_gap);
        let at = row * racks + column;
        if gap > 0 {
            if units[at] == 0 {
                list.push(at as u32);
            }
            units[at] += gap;
            rows[row] += gap;
            columns[column] += gap;
        }
        i += usize::from(row_gap == gap);
        j += usize::from(column_gap == gap);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reference implementation by passes. Each pass gives all unsettled entries the same amount, until an entry has
    /// all its demand or a port has nothing left. A port with less than one byte per entry closes.
    fn by_passes(racks: usize, demand: &[u64], budget: u64) -> Vec<u64> {
        let mut left = demand.to_vec();
        let mut given = vec![0; demand.len()];
        let mut budgets = vec![budget; 2 * racks];
        loop {
            let ends = |at: usize| [at / racks, racks + at % racks];
            let open: Vec<usize> = (0..left.len()).filter(|&at| left[at] > 0).collect();
            let Some(least) = open.iter().map(|&at| left[at]).min() else { return given };
            let share = |port: usize| {
                let count = open.iter().filter(|&&at| ends(at).contains(&port)).count() as u64;
                (count > 0).then(|| budgets[port] / count)
            };
            if let Some(port) = (0..2 * racks).find(|&port| share(port) == Some(0)) {
                open.iter().filter(|&&at| ends(at).contains(&port)).for_each(|&at| left[at] = 0);
                continue;
            }
            let most = (0..2 * racks).filter_map(share).min().map_or(least, |share| share.min(least));
            for &at in &open {
                given[at] += most;
                left[at] -= most;
                ends(at).into_iter().for_each(|port| budgets[port] -= most);
            }
            for &at in &open {
                if ends(at).into_iter().any(|port| budgets[port] == 0) {
                    left[at] = 0;
                }
            }
        }
    }

    proptest! {
        #[test]
        fn levels_equal_passes(
            racks in 2usize..7, drawn in prop::collection::vec(0u64..60, 36), budget in 6u64..200
        ) {
            let demand: Vec<u64> = drawn[..racks * racks].iter().map(|&entry| entry.saturating_sub(15)).collect();
            prop_assert_eq!(water_fill(racks, &demand, budget), by_passes(racks, &demand, budget));
        }

        #[test]
        fn stuffed_demand_has_the_same_sum_everywhere(racks in 2usize..9, drawn in prop::collection::vec(0u64..60, 64)) {
            let demand: Vec<u64> = drawn[..racks * racks].iter().map(|&entry| entry.saturating_sub(30)).collect();
            let mut stuffed = demand.clone();
            let mut list: Vec<u32> = (0..).zip(&demand).filter(|&(_, &entry)| entry > 0).map(|(at, _)| at).collect();
            stuff(racks, &mut stuffed, &mut list);
            let ((rows, columns), (before, others)) = (sums(racks, &stuffed), sums(racks, &demand));
            let most = before.into_iter().chain(others).max().unwrap();
            prop_assert!(rows.into_iter().chain(columns).all(|sum| sum == most));
            prop_assert!(stuffed.iter().zip(&demand).all(|(with, without)| with >= without));
            list.sort_unstable();
            let listed: Vec<u32> = (0..).zip(&stuffed).filter(|&(_, &entry)| entry > 0).map(|(at, _)| at).collect();
            prop_assert_eq!(list, listed);
        }
    }
}
