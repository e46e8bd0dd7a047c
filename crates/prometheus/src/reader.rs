//! Parser of Prometheus answers without a service, for fuzzing.

use std::sync::Arc;

use leeward_fabric::input::InputError;
use leeward_fabric::{Capacities, Cluster, Fabric, Load, Nanos, ResourceId};

use super::answer::Answer;
use super::map::Map;
use super::meter::{Meter, PortReadings, Topology, Window};
use super::plan::{SeriesKind, series_queries};

/// Reads rounds of answers, one per interval, starting in 1970.
pub struct PrometheusReader {
    meter: Meter,
    asked: Vec<SeriesKind>,
    fabric: Arc<Fabric>,
    capacities: Capacities,
    interval: Nanos,
    now: Nanos,
}

impl PrometheusReader {
    /// Creates a reader from the text of a map file.
    ///
    /// # Errors
    /// [`InputError`] with line and field.
    pub fn new(
        file: &str,
        text: &str,
        cluster: &Cluster,
        interval: Nanos,
    ) -> Result<PrometheusReader, InputError> {
        let map = Map::from_text(file, text)?;
        let asked = series_queries(&map.metrics).map(|(asked, _)| asked).collect();
        let (fabric, capacities) = (cluster.fabric.clone(), cluster.capacities.clone());
        Ok(PrometheusReader {
            meter: Meter::new(map, interval),
            asked,
            fabric,
            capacities,
            interval,
            now: Nanos(0),
        })
    }

    /// Number of queries in a round.
    pub fn questions(&self) -> usize {
        self.asked.len()
    }

    /// Reads the answers of a round, in the order of the queries. Returns links with the start, end and
    /// average of their loads.
    ///
    /// # Errors
    /// A message about an invalid Prometheus answer.
    pub fn hear(&mut self, answers: &[&[u8]]) -> Result<Vec<(ResourceId, Nanos, Nanos, Load)>, String> {
        self.now = self.now.plus(self.interval);
        let mut heard = PortReadings::default();
        for (asked, text) in self.asked.iter().zip(answers) {
            asked.put(Answer::read(text)?.series, &mut heard);
        }
        let topology = Topology { fabric: &self.fabric, capacities: &self.capacities };
        let time = |ms: i64| u64::try_from(ms).ok()?.checked_mul(1_000_000).map(Nanos);
        let windows = self.meter.take(&topology, self.now, heard, time).windows;
        let loads = |Window { from, until, loads }: Window| {
            loads.into_iter().map(move |(link, load)| (link, from, until, load))
        };
        Ok(windows.into_iter().flat_map(loads).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: &str = include_str!("../../../fuzz/seeds/answer/rounds");
    const CLUSTER: &str = "{racks: 3, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 10}";

    #[test]
    fn each_round_of_answers_gives_the_loads_since_the_previous_one() {
        let cluster = Cluster::from_text("cluster", CLUSTER).expect("a good cluster");
        let (map, answers) = SEED.trim_end().split_once("\n\n").expect("a map");
        let mut ear =
            PrometheusReader::new("map", map, &cluster, Nanos(15 * Nanos::SECOND.0)).expect("a good map");
        let answers: Vec<&[u8]> = answers.split("\n\n").map(str::as_bytes).collect();
        let rounds = answers.chunks(ear.questions()).map(|round| ear.hear(round).expect("good answers"));
        let loads = |round: Vec<(_, _, _, Load)>| round.into_iter().map(|(.., load)| load.0).collect();
        let heard: Vec<Vec<i64>> = rounds.map(loads).collect();
        // Two ports of one link, 1 and 2 MB/s, and one port of the other, 3 MB/s.
        assert_eq!(heard, [vec![], vec![24_000_000, 24_000_000]]);
        assert!(ear.hear(&[b"[]"]).is_err());
    }
}
