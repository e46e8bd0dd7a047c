package dev.leeward.hdfs.snapshot;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads an answer of {@code GET /v1/snapshot}: a whole snapshot, or a difference that it applies to the snapshot
 * before. Any other input is an {@link InvalidSnapshotException}; nothing is half read.
 */
final class SnapshotReader {

    /** Largest number of rows of a table, against answers that fill the memory. */
    private static final int MOST_ROWS = 1 << 20;
    /** Largest number of clients, and of characters of their names. Differences add to them without an end. */
    private static final int MOST_CLIENTS = 1 << 16;
    private static final int MOST_CLIENT = 128;
    /** Largest depth of fields that are passed over. The parser remembers each open level. */
    private static final int MOST_LEVELS = 32;
    /** Largest number of characters of a number. The time for more grows with their square. */
    private static final int MOST_DIGITS = 32;

    private static final Pattern CANARY = Pattern.compile("canary:([0-9]{1,2}(?:\\.[0-9]{1,2})?)%(?::[a-z]{1,16})?");

    private static final JsonFactory JSON = new JsonFactory();

    private final JsonParser parser;
    private final Snapshot base;
    private final Snapshot.Head head = new Snapshot.Head();
    private final Map<Columns, Map<String, Object>> read = new EnumMap<>(Columns.class);
    private final Map<String, Long> clients = new HashMap<>();

    private SnapshotReader(JsonParser parser, Snapshot base) {
        this.parser = parser;
        this.base = base;
    }

    /**
     * Reads a snapshot.
     *
     * @param body the answer
     * @param base the last snapshot, from which the answer may be a difference, or null
     * @param receivedNano local monotonic time of the answer, in ns
     */
    static Snapshot read(byte[] body, Snapshot base, long receivedNano) throws InvalidSnapshotException {
        try (JsonParser parser = JSON.createParser(body)) {
            SnapshotReader reader = new SnapshotReader(parser, base);
            reader.readTop();
            return reader.build(receivedNano);
        } catch (IOException e) {
            throw new InvalidSnapshotException("not JSON: " + firstLine(e.getMessage()));
        }
    }

    private static String firstLine(String message) {
        String line = message == null ? "" : message.lines().findFirst().orElse("");
        return line.length() > 160 ? line.substring(0, 160) + "..." : line;
    }

    // ---- parsing --------------------------------------------------------------------------------------------

    private void readTop() throws IOException, InvalidSnapshotException {
        expect(JsonToken.START_OBJECT, parser.nextToken(), "snapshot");
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            expect(JsonToken.FIELD_NAME, parser.currentToken(), "snapshot");
            String field = parser.currentName();
            parser.nextToken();
            switch (field) {
                case "id" -> head.id = text(field);
                case "since" -> head.since = textOrNull(field);
                case "epoch" -> head.epoch = whole(field);
                case "time" -> head.timeNs = Rfc3339.parse(text(field));
                case "cluster_version" -> head.clusterVersion = text(field);
                case "resolution" -> head.resolution = resolution();
                case "modes" -> readModes();
                case "clients" -> readClients();
                default -> {
                    Columns columns = Columns.of(field);
                    if (columns == null) {
                        // Later versions of the controller may add fields.
                        skip();
                    } else {
                        readTable(columns);
                    }
                }
            }
        }
    }

    private void readModes() throws IOException, InvalidSnapshotException {
        expect(JsonToken.START_OBJECT, parser.currentToken(), "modes");
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            expect(JsonToken.FIELD_NAME, parser.currentToken(), "modes");
            String kind = parser.currentName();
            parser.nextToken();
            if (kind.equals("replicas")) {
                head.mode = text(kind);
                head.share = share(head.mode);
            } else {
                skip();
            }
        }
    }

    /**
     * Share of blocks that the policy places in a mode. A canary of the NameNode draws each block, whatever the
     * property by which the controller draws its requests.
     */
    private double share(String mode) throws IOException, InvalidSnapshotException {
        Matcher canary = CANARY.matcher(mode);
        return switch (mode) {
            case "on" -> 1.0;
            case "off", "shadow" -> 0.0;
            default -> {
                if (!canary.matches()) {
                    throw invalid("modes.replicas", "off, shadow, on, or canary with a share");
                }
                yield Double.parseDouble(canary.group(1)) / 100.0;
            }
        };
    }

    private void readTable(Columns columns) throws IOException, InvalidSnapshotException {
        expect(JsonToken.START_OBJECT, parser.currentToken(), columns.table());
        Map<String, Object> table = new LinkedHashMap<>();
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            expect(JsonToken.FIELD_NAME, parser.currentToken(), columns.table());
            String column = parser.currentName();
            JsonToken start = parser.nextToken();
            Table.Kind kind = column.equals("rows") ? Table.Kind.NUMBER : columns.kinds().get(column);
            if (kind == null) {
                skip();
                continue;
            }
            expect(JsonToken.START_ARRAY, start, column);
            table.put(column, kind == Table.Kind.NAME ? readNames(column) : readValues(column, kind));
        }
        read.put(columns, table);
    }

    private String[] readNames(String column) throws IOException, InvalidSnapshotException {
        String[] names = new String[16];
        int rows = 0;
        while (parser.nextToken() != JsonToken.END_ARRAY) {
            if (rows == names.length) {
                names = Arrays.copyOf(names, grown(rows, column));
            }
            names[rows++] = textOrNull(column);
        }
        return Arrays.copyOf(names, rows);
    }

    private long[] readValues(String column, Table.Kind kind) throws IOException, InvalidSnapshotException {
        long[] values = new long[16];
        int rows = 0;
        while (parser.nextToken() != JsonToken.END_ARRAY) {
            if (rows == values.length) {
                values = Arrays.copyOf(values, grown(rows, column));
            }
            values[rows++] = readValue(column, kind);
        }
        return Arrays.copyOf(values, rows);
    }

    private static int grown(int rows, String column) throws InvalidSnapshotException {
        if (rows >= MOST_ROWS) {
            throw new InvalidSnapshotException(column + ": more than " + MOST_ROWS + " rows");
        }
        return 2 * rows;
    }

    private long readValue(String column, Table.Kind kind) throws IOException, InvalidSnapshotException {
        if (parser.currentToken() == JsonToken.VALUE_NULL) {
            return Table.UNKNOWN;
        }
        return switch (kind) {
            case TIME -> Rfc3339.parse(text(column));
            case FLAG -> flag(column) ? 1 : 0;
            default -> whole(column);
        };
    }

    private boolean flag(String column) throws IOException, InvalidSnapshotException {
        JsonToken token = parser.currentToken();
        if (token != JsonToken.VALUE_TRUE && token != JsonToken.VALUE_FALSE) {
            throw invalid(column, "true or false");
        }
        return token == JsonToken.VALUE_TRUE;
    }

    private void readClients() throws IOException, InvalidSnapshotException {
        expect(JsonToken.START_ARRAY, parser.currentToken(), "clients");
        while (parser.nextToken() != JsonToken.END_ARRAY) {
            expect(JsonToken.START_OBJECT, parser.currentToken(), "clients");
            String client = null;
            Long sequence = null;
            while (parser.nextToken() != JsonToken.END_OBJECT) {
                String field = parser.currentName();
                parser.nextToken();
                switch (field) {
                    case "client" -> client = text(field);
                    case "sequence" ->
                            sequence = parser.currentToken() == JsonToken.VALUE_NULL ? null : whole(field);
                    default -> skip();
                }
            }
            if (client == null || client.length() > MOST_CLIENT) {
                throw new InvalidSnapshotException(
                        "clients: `client` is missing or has more than " + MOST_CLIENT + " characters");
            }
            clients.put(client, sequence);
        }
    }

    /** Passes over a value. */
    private void skip() throws IOException, InvalidSnapshotException {
        int depth = 0;
        for (JsonToken token = parser.currentToken(); ; token = parser.nextToken()) {
            if (token == null) {
                throw new InvalidSnapshotException("the end is missing");
            }
            depth += token.isStructStart() ? 1 : 0;
            depth -= token.isStructEnd() ? 1 : 0;
            if (depth == 0) {
                return;
            }
            if (depth > MOST_LEVELS) {
                throw new InvalidSnapshotException("more than " + MOST_LEVELS + " levels in one another");
            }
        }
    }

    private void expect(JsonToken expected, JsonToken actual, String where) throws InvalidSnapshotException {
        if (actual != expected) {
            throw new InvalidSnapshotException(where + ": expected " + expected + ", not " + actual);
        }
    }

    private String text(String field) throws IOException, InvalidSnapshotException {
        if (parser.currentToken() != JsonToken.VALUE_STRING) {
            throw invalid(field, "a text");
        }
        return parser.getText();
    }

    private String textOrNull(String field) throws IOException, InvalidSnapshotException {
        return parser.currentToken() == JsonToken.VALUE_NULL ? null : text(field);
    }

    private long whole(String field) throws IOException, InvalidSnapshotException {
        if (parser.currentToken() != JsonToken.VALUE_NUMBER_INT
                || parser.getTextLength() > MOST_DIGITS
                || parser.getNumberType() == JsonParser.NumberType.BIG_INTEGER
                || parser.getLongValue() == Table.UNKNOWN) {
            throw invalid(field, "a whole number of 64 bits");
        }
        return parser.getLongValue();
    }

    private double resolution() throws IOException, InvalidSnapshotException {
        boolean numeric = parser.currentToken() != null
                && parser.currentToken().isNumeric()
                && parser.getTextLength() <= MOST_DIGITS;
        double value = numeric ? parser.getDoubleValue() : Double.NaN;
        if (!(value > 0.0 && value <= 1.0)) {
            throw invalid("resolution", "a share above 0, at most 1");
        }
        return value;
    }

    private InvalidSnapshotException invalid(String field, String expected) throws IOException {
        String value = parser.getText();
        String start = value != null && value.length() > 40 ? value.substring(0, 40) + "..." : value;
        return new InvalidSnapshotException(field + ": `" + start + "`: expected " + expected);
    }

    // ---- building -------------------------------------------------------------------------------------------

    private Snapshot build(long receivedNano) throws InvalidSnapshotException {
        if (head.id == null || head.clusterVersion == null || head.timeNs == 0 || head.resolution == 0.0) {
            throw new InvalidSnapshotException("`id`, `time`, `resolution` or `cluster_version` is missing");
        }
        boolean difference = head.since != null;
        if (difference && (base == null || !head.since.equals(base.id()))) {
            throw new InvalidSnapshotException(
                    "since: a difference from `" + head.since + "`, which was not requested");
        }
        if (difference && !head.clusterVersion.equals(base.clusterVersion())) {
            throw new InvalidSnapshotException("cluster_version: a difference between two versions of the cluster");
        }
        Map<Columns, Table> tables = new EnumMap<>(Columns.class);
        for (Columns columns : Columns.values()) {
            Map<String, Object> table = read.get(columns);
            if (table == null) {
                throw new InvalidSnapshotException(columns.table() + ": the table is missing");
            }
            tables.put(columns, difference ? changed(columns, table) : whole(columns, table));
        }
        return new Snapshot(head, tables, mergedClients(difference), base, receivedNano);
    }

    private Map<String, Long> mergedClients(boolean difference) throws InvalidSnapshotException {
        Map<String, Long> merged = difference ? new HashMap<>(base.clients()) : new HashMap<>();
        clients.forEach((client, sequence) -> {
            if (sequence == null) {
                merged.remove(client);
            } else {
                merged.put(client, sequence);
            }
        });
        if (merged.size() > MOST_CLIENTS) {
            throw new InvalidSnapshotException("clients: more than " + MOST_CLIENTS);
        }
        return merged;
    }

    private static Table whole(Columns columns, Map<String, Object> read) throws InvalidSnapshotException {
        Table table = null;
        for (Map.Entry<String, Table.Kind> column : columns.kinds().entrySet()) {
            Object cells = read.get(column.getKey());
            if (cells == null) {
                throw new InvalidSnapshotException(columns.table() + "." + column.getKey() + ": the column is missing");
            }
            int rows = column.getValue() == Table.Kind.NAME ? ((String[]) cells).length : ((long[]) cells).length;
            table = table == null ? new Table(rows) : table;
            checkLength(columns, column.getKey(), rows, table.rows());
            if (column.getValue() == Table.Kind.NAME) {
                table.put(column.getKey(), (String[]) cells);
            } else {
                table.put(column.getKey(), (long[]) cells);
            }
        }
        return table;
    }

    private Table changed(Columns columns, Map<String, Object> read) throws InvalidSnapshotException {
        Table before = base.table(columns);
        int[] rows = rows(columns, (long[]) read.get("rows"), before.rows());
        Table table = new Table(before.rows());
        for (Map.Entry<String, Table.Kind> column : columns.kinds().entrySet()) {
            String name = column.getKey();
            if (column.getValue() == Table.Kind.NAME) {
                table.put(name, before.names(name));
                continue;
            }
            long[] values = before.values(name);
            long[] changes = (long[]) read.get(name);
            if (changes == null) {
                throw new InvalidSnapshotException(columns.table() + "." + name + ": the column is missing");
            }
            checkLength(columns, name, changes.length, rows.length);
            table.put(name, rows.length == 0 ? values : apply(values, rows, changes, column.getValue()));
        }
        return table;
    }

    private static long[] apply(long[] before, int[] rows, long[] changes, Table.Kind kind) {
        long[] values = before.clone();
        for (int i = 0; i < rows.length; i++) {
            boolean adds = kind == Table.Kind.NUMBER && changes[i] != Table.UNKNOWN;
            // A number counts as 0 before, if it was unknown.
            long start = adds && before[rows[i]] != Table.UNKNOWN ? before[rows[i]] : 0;
            values[rows[i]] = adds ? start + changes[i] : changes[i];
        }
        return values;
    }

    private static int[] rows(Columns columns, long[] distances, int most) throws InvalidSnapshotException {
        if (distances == null) {
            throw new InvalidSnapshotException(columns.table() + ".rows: the column is missing");
        }
        int[] rows = new int[distances.length];
        long row = 0;
        for (int i = 0; i < distances.length; i++) {
            row += distances[i];
            boolean rises = i == 0 ? distances[i] >= 0 : distances[i] > 0;
            if (!rises || distances[i] > most || row >= most) {
                throw new InvalidSnapshotException(
                        columns.table() + ".rows: " + distances[i] + ": expected rising rows below " + most);
            }
            rows[i] = (int) row;
        }
        return rows;
    }

    private static void checkLength(Columns columns, String column, int length, int expected)
            throws InvalidSnapshotException {
        if (length != expected) {
            throw new InvalidSnapshotException(
                    columns.table() + "." + column + ": " + length + " rows: expected " + expected);
        }
    }
}
