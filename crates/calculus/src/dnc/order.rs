//! A topological order of queues.

/// The queues in an order in which every path passes them. Queues without a predecessor come first, by index; each
/// other queue follows after all its predecessors.
///
/// # Errors
/// A queue of a cycle, or one behind it: no such order exists.
///
/// # Panics
/// If a path names a queue that does not exist.
pub fn queue_order<'p>(
    queues: usize,
    paths: impl IntoIterator<Item = &'p [usize]>,
) -> Result<Vec<usize>, usize> {
    let mut next = vec![Vec::new(); queues];
    let mut waits = vec![0usize; queues];
    for pair in paths.into_iter().flat_map(|path| path.windows(2)) {
        next[pair[0]].push(pair[1]);
        waits[pair[1]] += 1;
    }
    let mut order: Vec<usize> = (0..queues).filter(|&queue| waits[queue] == 0).collect();
    let mut done = 0;
    while let Some(&queue) = order.get(done) {
        done += 1;
        for &after in &next[queue] {
            waits[after] -= 1;
            if waits[after] == 0 {
                order.push(after);
            }
        }
    }
    match waits.iter().position(|&left| left > 0) {
        Some(queue) => Err(queue),
        None => Ok(order),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_path_is_followed_or_a_cycle_is_named(
            paths in prop::collection::vec(prop::collection::vec(0usize..6, 0..5), 0..8),
        ) {
            let found = queue_order(6, paths.iter().map(Vec::as_slice));
            let leads = |from: usize, to: usize| {
                paths.iter().flat_map(|path| path.windows(2)).any(|pair| pair == [from, to])
            };
            match found {
                Ok(order) => {
                    let mut all = order.clone();
                    all.sort_unstable();
                    prop_assert_eq!(all, (0..6).collect::<Vec<_>>());
                    let place = |queue: usize| order.iter().position(|&of| of == queue).unwrap();
                    for pair in paths.iter().flat_map(|path| path.windows(2)) {
                        prop_assert!(place(pair[0]) < place(pair[1]), "{:?} of {:?}", order, paths);
                    }
                }
                Err(queue) => {
                    // Goes back from the queue while it has a predecessor; without a cycle, this ends.
                    let mut at: Vec<usize> = vec![queue];
                    for _ in 0..6 {
                        at = (0..6).filter(|&from| at.iter().any(|&to| leads(from, to))).collect();
                    }
                    prop_assert!(!at.is_empty(), "{} of {:?}", queue, paths);
                }
            }
        }
    }
}
