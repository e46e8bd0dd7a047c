//! A topological order of queues.

/// Sorts the queues `0..queues` so that every path visits them in this order. Queues without a predecessor come first,
/// by index; each other queue comes after all its predecessors.
///
/// # Errors
/// If no such order exists, returns a queue on a cycle, or a queue after a cycle.
///
/// # Panics
/// If a path names a queue that does not exist.
pub fn queue_order<'p>(
    queues: usize,
    paths: impl IntoIterator<Item = &'p [usize]>,
) -> Result<Vec<usize>, usize> {
    let mut successors = vec![Vec::new(); queues];
    let mut predecessors = vec![0usize; queues];
    for pair in paths.into_iter().flat_map(|path| path.windows(2)) {
        successors[pair[0]].push(pair[1]);
        predecessors[pair[1]] += 1;
    }
    let mut order: Vec<usize> = (0..queues).filter(|&queue| predecessors[queue] == 0).collect();
    let mut visited = 0;
    while let Some(&queue) = order.get(visited) {
        visited += 1;
        for &successor in &successors[queue] {
            predecessors[successor] -= 1;
            if predecessors[successor] == 0 {
                order.push(successor);
            }
        }
    }
    match predecessors.iter().position(|&count| count > 0) {
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
        fn the_order_follows_every_path_or_the_error_names_a_queue_on_or_after_a_cycle(
            paths in prop::collection::vec(prop::collection::vec(0usize..6, 0..5), 0..8),
        ) {
            let is_edge = |from: usize, to: usize| {
                paths.iter().flat_map(|path| path.windows(2)).any(|pair| pair == [from, to])
            };
            match queue_order(6, paths.iter().map(Vec::as_slice)) {
                Ok(order) => {
                    let mut sorted = order.clone();
                    sorted.sort_unstable();
                    prop_assert_eq!(sorted, (0..6).collect::<Vec<_>>());
                    let position = |queue: usize| order.iter().position(|&other| other == queue).unwrap();
                    for pair in paths.iter().flat_map(|path| path.windows(2)) {
                        prop_assert!(position(pair[0]) < position(pair[1]), "{:?} of {:?}", order, paths);
                    }
                }
                Err(queue) => {
                    // Goes back to all predecessors six times. Without a cycle, no path through six queues has six
                    // steps, so no queue remains.
                    let mut queues: Vec<usize> = vec![queue];
                    for _ in 0..6 {
                        queues = (0..6).filter(|&from| queues.iter().any(|&to| is_edge(from, to))).collect();
                    }
                    prop_assert!(!queues.is_empty(), "{} of {:?}", queue, paths);
                }
            }
        }
    }
}
