//! Reader of Prometheus responses without a service, for fuzzing.

use std::sync::Arc;

use leeward_fabric::input::InputError;
use leeward_fabric::{Capacities, Cluster, Fabric, Load, Nanos, ResourceId};

use super::answer::Answer;
use super::map::Map;
use super::meter::{Meter, PortReadings, Topology, Window};
use super::plan::{SeriesKind, series_queries};

/// Reader of rounds of responses. The first round is one interval after the Unix epoch.
pub struct PrometheusReader {
    meter: Meter,
    kinds: Vec<SeriesKind>,
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
        let kinds = series_queries(&map.metrics).map(|(kind, _)| kind).collect();
        let (fabric, capacities) = (cluster.fabric.clone(), cluster.capacities.clone());
        Ok(PrometheusReader {
            meter: Meter::new(map, interval),
            kinds,
            fabric,
            capacities,
            interval,
            now: Nanos(0),
        })
    }

    /// Number of queries in a round.
    pub fn query_count(&self) -> usize {
        self.kinds.len()
    }

    /// Reads the responses of the next round, in the order of the queries. Returns the start and the end of
    /// each window, with the average load of each link in it.
    ///
    /// # Errors
    /// Returns a message about an invalid response.
    pub fn read_round(
        &mut self,
        responses: &[&[u8]],
    ) -> Result<Vec<(ResourceId, Nanos, Nanos, Load)>, String> {
        self.now = self.now.plus(self.interval);
        let mut readings = PortReadings::default();
        for (kind, text) in self.kinds.iter().zip(responses) {
            kind.store(Answer::read(text)?.series, &mut readings);
        }
        let topology = Topology { fabric: &self.fabric, capacities: &self.capacities };
        let time = |ms: i64| u64::try_from(ms).ok()?.checked_mul(1_000_000).map(Nanos);
        let windows = self.meter.process(&topology, self.now, readings, time).windows;
        let loads = |Window { from, until, loads }: Window| {
            loads.into_iter().map(move |(link, load)| (link, from, until, load))
        };
        Ok(windows.into_iter().flat_map(loads).collect())
    }
}

#[cfg(test)]
mod tests {
    use leeward_testing::clusters::cluster;

    use super::*;

    const SEED: &str = include_str!("../../../fuzz/seeds/answer/rounds");
    const CLUSTER: &str = "{racks: 3, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 10}";

    #[test]
    fn each_round_gives_the_loads_since_the_previous_round() {
        let cluster = cluster(CLUSTER);
        let (map, responses) = SEED.trim_end().split_once("\n\n").expect("a map");
        let mut reader =
            PrometheusReader::new("map", map, &cluster, Nanos(15 * Nanos::SECOND.0)).expect("a valid map");
        let responses: Vec<&[u8]> = responses.split("\n\n").map(str::as_bytes).collect();
        let rounds = responses
            .chunks(reader.query_count())
            .map(|round| reader.read_round(round).expect("valid responses"));
        let loads = |round: Vec<(_, _, _, Load)>| round.into_iter().map(|(.., load)| load.0).collect();
        let actual: Vec<Vec<i64>> = rounds.map(loads).collect();
        // One link has two ports with 1 and 2 MB/s, and the other link has one port with 3 MB/s.
        assert_eq!(actual, [vec![], vec![24_000_000, 24_000_000]]);
        assert!(reader.read_round(&[b"[]"]).is_err());
    }
}
