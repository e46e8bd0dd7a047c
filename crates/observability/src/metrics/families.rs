//! Registration of metrics.

use prometheus_client::registry::{Metric, Registry};

/// Registers a metric that begins at zero.
pub fn family<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    register(registry, name, help, M::default())
}

/// Registers a metric.
pub fn register<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}
