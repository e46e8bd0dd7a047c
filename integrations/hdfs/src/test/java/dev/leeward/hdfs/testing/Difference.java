package dev.leeward.hdfs.testing;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** The difference between two whole snapshots, as a controller answers it. */
final class Difference {

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<String> TABLES = List.of("links", "racks", "hosts", "devices");
    private static final Set<String> NUMBERS = Set.of(
            "capacity_bps", "measured_bps", "residual_bps", "expected_capacity_bps", "residual_steps");
    /** Columns whose values differences replace: times and flags. */
    private static final Set<String> REPLACED = Set.of("until", "up", "draining");

    private Difference() {
    }

    /** The difference; null if only a whole snapshot can say it, because rows or versions differ. */
    static ObjectNode between(ObjectNode before, ObjectNode now) {
        boolean same = before.get("cluster_version").equals(now.get("cluster_version"));
        ObjectNode top = JSON.createObjectNode();
        now.fields().forEachRemaining(field -> top.set(field.getKey(), field.getValue()));
        top.set("since", before.get("id"));
        try {
            for (String table : TABLES) {
                same = same && hasSameRows(before.get(table), now.get(table));
                if (same) {
                    top.set(table, changes(before.get(table), now.get(table)));
                }
            }
        } catch (ArithmeticException e) {
            // A change of more than 64 bits.
            return null;
        }
        Set<JsonNode> known = new HashSet<>();
        before.get("clients").forEach(known::add);
        ArrayNode clients = top.putArray("clients");
        now.get("clients").forEach(client -> {
            if (!known.contains(client)) {
                clients.add(client);
            }
        });
        return same ? top : null;
    }

    private static boolean isValue(String column) {
        return NUMBERS.contains(column) || REPLACED.contains(column);
    }

    private static boolean hasSameRows(JsonNode before, JsonNode now) {
        boolean same = true;
        for (var fields = now.fields(); fields.hasNext() && before != now; ) {
            var column = fields.next();
            same &= isValue(column.getKey()) || column.getValue().equals(before.get(column.getKey()));
        }
        return same;
    }

    private static ObjectNode changes(JsonNode before, JsonNode now) {
        ObjectNode table = JSON.createObjectNode();
        ArrayNode rows = table.putArray("rows");
        List<String> columns = new ArrayList<>();
        now.fieldNames().forEachRemaining(column -> {
            if (isValue(column)) {
                columns.add(column);
                table.putArray(column);
            }
        });
        if (before == now || columns.isEmpty()) {
            return table;
        }
        int last = 0;
        for (int row = 0; row < now.get(columns.get(0)).size(); row++) {
            int at = row;
            if (columns.stream().allMatch(name -> now.get(name).get(at).equals(before.get(name).get(at)))) {
                continue;
            }
            rows.add(row - last);
            last = row;
            for (String name : columns) {
                add((ArrayNode) table.get(name), before.get(name).get(row), now.get(name).get(row));
            }
        }
        return table;
    }

    private static void add(ArrayNode column, JsonNode before, JsonNode now) {
        if (now.isNumber()) {
            long change = Math.subtractExact(now.asLong(), before.isNumber() ? before.asLong() : 0);
            // The smallest number stands for an unknown one in readers.
            column.add(Math.negateExact(Math.negateExact(change)));
        } else {
            column.add(now);
        }
    }
}
