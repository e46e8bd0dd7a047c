package dev.leeward.hdfs.settings;

import java.util.ArrayList;
import java.util.List;

/** The properties of {@code hdfs-site.xml}, with their defaults. The operator's page has a row for each. */
public enum Property {
    CONTROLLER("controller", ""),
    POLICY("policy", "leeward"),
    STRICT("strict", "false"),
    CLIENT("client", ""),
    TOKEN("token", ""),
    TOKEN_FILE("token.file", ""),
    TLS_CA("tls.ca", ""),
    SNAPSHOT_INTERVAL("snapshot.interval", "1s"),
    SNAPSHOT_DEADLINE("snapshot.deadline", "200ms"),
    SNAPSHOT_MAX_AGE("snapshot.max-age", "5s"),
    REMOTE_RACKS("remote-racks", "1"),
    DISK_WRITE_RATE("disk-write-rate", "none"),
    EXPECTED_SIZE("expected-size", "mean"),
    REPORT("report", "true"),
    REPORT_QUEUE("report.queue", "1000"),
    REPORT_LASTS("report.lasts", "1m"),
    SINBAD_THRESHOLD("sinbad.threshold", "64MiB"),
    SINBAD_HYSTERESIS("sinbad.hysteresis", "rate"),
    SINBAD_MISSING("sinbad.missing", "strict"),
    SINBAD_INITIAL("sinbad.initial", "first"),
    SINBAD_ALPHA("sinbad.alpha", "0.2"),
    SINBAD_TELEMETRY_INTERVAL("sinbad.telemetry-interval", "1s"),
    SINBAD_Q("sinbad.q", "0s"),
    CCP_UPLINK_PER_TB("ccp.uplink-per-tb", "mean"),
    CCP_SAMPLE("ccp.sample", "16"),
    CCP_BALANCE("ccp.balance", "0.1"),
    CCP_WITHIN("ccp.within", "uniform"),
    REHDFS_OFFSETS("rehdfs.offsets", "1"),
    REHDFS_PERIOD("rehdfs.period", "10s"),
    LEEWARD_HEADROOM("leeward.headroom", "2"),
    EXPLAIN_SAMPLE("explain.sample", "0.001"),
    EXPLAIN_STORED("explain.stored", "256");

    /** Start of the names of all properties. */
    public static final String PREFIX = "dfs.leeward.";

    private final String key;
    private final String standard;

    Property(String name, String standard) {
        this.key = PREFIX + name;
        this.standard = standard;
    }

    /** Name in the configuration. */
    public String key() {
        return key;
    }

    /** Value if the configuration has none. */
    public String standard() {
        return standard;
    }

    /** Names of all properties. */
    static List<String> keys() {
        List<String> keys = new ArrayList<>();
        for (Property property : values()) {
            keys.add(property.key);
        }
        return keys;
    }
}
