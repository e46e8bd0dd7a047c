package dev.leeward.hdfs;

import org.apache.hadoop.metrics2.AbstractMetric;
import org.apache.hadoop.metrics2.impl.MetricsCollectorImpl;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;

/** Values of the source of Metrics2. */
final class Metric {

    private Metric() {
    }

    /** True if the source exists. */
    static boolean isRegistered() {
        return DefaultMetricsSystem.instance().getSource("Leeward") != null;
    }

    /** The value of a metric. */
    static long of(String name) {
        MetricsCollectorImpl collector = new MetricsCollectorImpl();
        DefaultMetricsSystem.instance().getSource("Leeward").getMetrics(collector, true);
        for (AbstractMetric metric : collector.getRecords().get(0).metrics()) {
            if (metric.name().equals(name)) {
                return metric.value().longValue();
            }
        }
        throw new AssertionError("no metric " + name);
    }
}
