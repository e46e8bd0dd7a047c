package dev.leeward.hdfs.snapshot;

import java.util.HashMap;
import java.util.Map;

/** A table of a snapshot: columns of equal length. Instances do not change after they are read. */
final class Table {

    /** Stands for an unknown number, time or flag. */
    static final long UNKNOWN = Long.MIN_VALUE;

    /** Kinds of values in a column. */
    enum Kind {
        /** A name; differences leave it out. */
        NAME,
        /** A whole number; a difference is added. */
        NUMBER,
        /** True or false, stored as 1 or 0; a difference replaces it. */
        FLAG,
        /** A time in nanoseconds since 1970; a difference replaces it. */
        TIME
    }

    private final int rows;
    private final Map<String, String[]> names = new HashMap<>();
    private final Map<String, long[]> values = new HashMap<>();

    Table(int rows) {
        this.rows = rows;
    }

    int rows() {
        return rows;
    }

    void put(String column, String[] cells) {
        names.put(column, cells);
    }

    void put(String column, long[] cells) {
        values.put(column, cells);
    }

    String[] names(String column) {
        return names.get(column);
    }

    long[] values(String column) {
        return values.get(column);
    }
}
