package dev.leeward.hdfs.snapshot;

import java.util.LinkedHashMap;
import java.util.Map;

/** The tables and columns that the daemon asks for. */
enum Columns {
    LINKS("links"),
    RACKS("racks"),
    HOSTS("hosts"),
    DEVICES("devices");

    static {
        LINKS.with("link", Table.Kind.NAME)
                .with("capacity_bps", Table.Kind.NUMBER)
                .with("measured_bps", Table.Kind.NUMBER)
                .with("until", Table.Kind.TIME)
                .with("residual_bps", Table.Kind.NUMBER)
                .with("expected_capacity_bps", Table.Kind.NUMBER);
        RACKS.with("rack", Table.Kind.NAME)
                .with("pod", Table.Kind.NAME)
                .with("uplink", Table.Kind.NAME)
                .with("downlink", Table.Kind.NAME);
        HOSTS.with("host", Table.Kind.NAME)
                .with("rack", Table.Kind.NAME)
                .with("up", Table.Kind.FLAG)
                .with("draining", Table.Kind.FLAG);
        DEVICES.with("device", Table.Kind.NAME)
                .with("until", Table.Kind.TIME)
                .with("residual_steps", Table.Kind.NUMBER);
    }

    private final String table;
    private final Map<String, Table.Kind> kinds = new LinkedHashMap<>();

    Columns(String table) {
        this.table = table;
    }

    private Columns with(String column, Table.Kind kind) {
        kinds.put(column, kind);
        return this;
    }

    String table() {
        return table;
    }

    Map<String, Table.Kind> kinds() {
        return kinds;
    }

    /** Columns of a table by its name in the protocol, or null. */
    static Columns of(String table) {
        for (Columns columns : values()) {
            if (columns.table.equals(table)) {
                return columns;
            }
        }
        return null;
    }

    /** Parameters of {@code GET /v1/snapshot} for these columns. */
    static String query() {
        StringBuilder query = new StringBuilder();
        for (Columns columns : values()) {
            query.append(query.length() == 0 ? "" : "&").append(columns.table).append('=');
            query.append(String.join(",", columns.kinds.keySet()));
        }
        return query.toString();
    }
}
