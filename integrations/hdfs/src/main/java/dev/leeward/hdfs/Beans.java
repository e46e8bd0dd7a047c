package dev.leeward.hdfs;

import java.util.EnumMap;
import java.util.Map;
import javax.management.ObjectName;
import org.apache.hadoop.metrics2.MetricsSystem;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.metrics2.util.MBeans;

/**
 * The bean and the source of metrics of each layout in this process. A NameNode may replace its policies while it runs,
 * and start again in one process: what is shown is always the state of the last policy.
 */
final class Beans {

    private static final Map<Engine.Layout, Shown> SHOWN = new EnumMap<>(Engine.Layout.class);

    /** Metrics that are shown, and the name of their bean; null if it could not be registered. */
    private record Shown(Metrics metrics, ObjectName bean) {
    }

    private Beans() {
    }

    /** Shows the state of a policy in place of an earlier one. A policy that is off has no source of metrics. */
    static synchronized void show(Engine.Layout layout, Metrics metrics) {
        remove(layout);
        if (!metrics.isOff()) {
            DefaultMetricsSystem.instance().register(name(layout), "Block placement by Leeward", metrics);
        }
        ObjectName bean = MBeans.register("NameNode", name(layout) + "Info", new LeewardBean(metrics));
        SHOWN.put(layout, new Shown(metrics, bean));
    }

    /** Removes what is shown of a policy, unless a later one has replaced it. */
    static synchronized void remove(Engine.Layout layout, Metrics metrics) {
        Shown shown = SHOWN.get(layout);
        if (shown != null && shown.metrics == metrics) {
            remove(layout);
        }
    }

    /** Removes what is shown of any policy. */
    static synchronized void remove(Engine.Layout layout) {
        MetricsSystem system = DefaultMetricsSystem.instance();
        if (system.getSource(name(layout)) != null) {
            system.unregisterSource(name(layout));
        }
        Shown shown = SHOWN.remove(layout);
        if (shown != null && shown.bean != null) {
            MBeans.unregister(shown.bean);
        }
    }

    private static String name(Engine.Layout layout) {
        return layout == Engine.Layout.CHAIN ? "Leeward" : "LeewardErasureCoded";
    }
}
