package dev.leeward.hdfs.snapshot;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.leeward.hdfs.testing.FakeNetwork;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The files in {@code recorded} are answers of a real controller. It had no modes then, and was not asked for the
 * column {@code draining}, which was added later: no host was draining.
 */
class SnapshotReaderTest {

    private static byte[] recorded(String name) throws IOException {
        try (InputStream in = SnapshotReaderTest.class.getResourceAsStream("/recorded/" + name + ".json")) {
            return in.readAllBytes();
        }
    }

    private static Snapshot follow(String... names) throws IOException, InvalidSnapshotException {
        Snapshot snapshot = null;
        for (String name : names) {
            snapshot = SnapshotReader.read(recorded(name), snapshot, 0);
        }
        return snapshot;
    }

    private static Snapshot read(String json) throws InvalidSnapshotException {
        return SnapshotReader.read(json.getBytes(StandardCharsets.UTF_8), null, 0);
    }

    @Test
    void aWholeSnapshotOfARealControllerHasItsLinksRacksHostsAndDevices() throws Exception {
        Snapshot snapshot = follow("1-whole");
        assertEquals(40, snapshot.linkCount());
        assertEquals(4, snapshot.rackCount());
        assertEquals(16, snapshot.hostCount());
        assertEquals("1", snapshot.clusterVersion());
        assertEquals(
                "r2:downlink", snapshot.table(Columns.LINKS).names("link")[snapshot.downlink(snapshot.rack("r2"))]);
        assertEquals(2_000_000_000L, snapshot.capacities()[snapshot.link("r2:uplink")]);
        assertEquals(Snapshot.UNKNOWN, snapshot.measured()[snapshot.link("r2:uplink")]);
        assertTrue(Double.isNaN(snapshot.unused()[snapshot.link("r2:uplink")]));
        assertTrue(Double.isNaN(snapshot.pending()[snapshot.link("r2:uplink")]));
        assertEquals(snapshot.rack("r3"), snapshot.rackOf(snapshot.host("r3h1")));
        assertNull(snapshot.podOf(0));
        assertTrue(Double.isNaN(snapshot.deviceFree(0)), "the disk was never reported");
    }

    @Test
    void differencesOfARealControllerAddUpToItsWholeSnapshotOfTheSameState() throws Exception {
        Snapshot followed = follow("1-whole", "2-difference-after-a-report", "3-difference-after-a-commitment",
                "4-difference-after-another-report", "5-difference-after-a-host-went-down",
                "6-difference-after-loads-became-unknown");
        Snapshot whole = follow("7-whole-of-the-same-state");
        assertEquals(whole.epoch(), followed.epoch());
        assertEquals(whole.clients(), followed.clients());
        for (Columns columns : Columns.values()) {
            columns.kinds().forEach((column, kind) -> {
                String where = columns.table() + "." + column;
                if (kind == Table.Kind.NAME) {
                    assertArrayEquals(
                            whole.table(columns).names(column), followed.table(columns).names(column), where);
                } else {
                    assertArrayEquals(
                            whole.table(columns).values(column), followed.table(columns).values(column), where);
                }
            });
        }
    }

    @Test
    void differencesOfARealControllerShowAReportAndACommitment() throws Exception {
        Snapshot reported = follow("1-whole", "2-difference-after-a-report");
        assertTrue(reported.isDifference());
        assertEquals(1_500_000_000L, reported.measured()[reported.link("r1:downlink")]);
        assertEquals(1_800_000_000L, reported.residual()[reported.link("r2:downlink")]);
        assertEquals(0.75, reported.deviceFree(0), 1e-9);
        assertEquals(-1, reported.counted("hdfs-test"));
        Snapshot committed = follow("1-whole", "2-difference-after-a-report", "3-difference-after-a-commitment");
        assertEquals(1_764_000_000_000_000L, committed.counted("hdfs-test"));
        int into = committed.link("r2:downlink");
        assertEquals(2e9 - committed.measured()[into], committed.unused()[into]);
        assertEquals(0.0, reported.pending()[into]);
        assertTrue(committed.pending()[into] > 0.0, "the block is pending on the link into its rack");
        assertEquals(committed.unused()[into] - committed.residual()[into], committed.pending()[into]);
        assertTrue(
                committed.expectedCapacity()[committed.link("r2:downlink")] < 1_800_000_000L,
                "the block presses on the link into its rack");
    }

    @Test
    void aHostThatARealControllerKnowsToBeDownIsClosedAlthoughItsLinksLookIdle() throws Exception {
        Snapshot before = follow("1-whole", "2-difference-after-a-report", "3-difference-after-a-commitment",
                "4-difference-after-another-report");
        Snapshot after = SnapshotReader.read(recorded("5-difference-after-a-host-went-down"), before, 0);
        int down = after.host("r3h3");
        assertTrue(before.isOpen(down));
        assertFalse(after.isOpen(down));
        assertEquals(1_000_000_000L, after.residual()[after.link("r3h3:ingress")]);
        for (int host = 0; host < after.hostCount(); host++) {
            assertTrue(host == down || after.isOpen(host), after.hostName(host));
        }
    }

    @ParameterizedTest
    @CsvSource({
        "true, false, true", "false, false, false", "true, true, false", "false, true, false", ", false, true",
        "true, , true", ", , true", ", true, false", "false, , false"})
    void aHostIsOpenUnlessItIsKnownToBeDownOrDraining(Boolean up, Boolean draining, boolean open) throws Exception {
        FakeNetwork network = new FakeNetwork(2, 2, 1000, 2000).setUp("r1h0", up).setDraining("r1h0", draining);
        Snapshot snapshot = SnapshotReader.read(network.whole(), null, 0);
        assertEquals(open, snapshot.isOpen(snapshot.host("r1h0")));
        assertTrue(snapshot.isOpen(snapshot.host("r1h1")));
    }

    @ParameterizedTest
    @ValueSource(strings = {"0", "1", "-1", "0.5", "\"true\"", "\"\"", "[true]", "[]", "{}"})
    void aStateOfAHostThatIsNeitherTrueNorFalseNorNullIsRejectedByItsColumn(String value) {
        String whole = new String(new FakeNetwork(2, 2, 1000, 2000).whole(), StandardCharsets.UTF_8);
        for (String column : List.of("up", "draining")) {
            String start = "\"" + column + "\":[";
            String json = whole.replaceFirst(
                    Pattern.quote(start) + "(true|false)", Matcher.quoteReplacement(start + value));
            assertNotEquals(whole, json);
            InvalidSnapshotException error = assertThrows(InvalidSnapshotException.class, () -> read(json));
            assertTrue(error.getMessage().startsWith(column + ": `"), error.getMessage());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"\"up\"", "\"draining\""})
    void withoutAColumnOfStatesASnapshotIsRejected(String column) {
        String json = new String(new FakeNetwork(2, 2, 1000, 2000).whole(), StandardCharsets.UTF_8)
                .replaceFirst(column, "\"other\"");
        InvalidSnapshotException error = assertThrows(InvalidSnapshotException.class, () -> read(json));
        assertTrue(error.getMessage().startsWith("hosts."), error.getMessage());
    }

    @Test
    void aControllerThatRestartedAnswersADifferenceWithAWholeSnapshot() throws Exception {
        Snapshot snapshot = follow("1-whole", "2-difference-after-a-report", "8-whole-after-a-restart");
        assertFalse(snapshot.isDifference());
        assertEquals(0, snapshot.epoch());
        assertEquals(Snapshot.UNKNOWN, snapshot.measured()[snapshot.link("r1:downlink")]);
    }

    @Test
    void aDifferenceFromAnotherSnapshotThanTheRequestedOneIsRejected() throws Exception {
        Snapshot base = follow("1-whole");
        InvalidSnapshotException error = assertThrows(InvalidSnapshotException.class,
                () -> SnapshotReader.read(recorded("3-difference-after-a-commitment"), base, 0));
        assertTrue(error.getMessage().startsWith("since: "), error.getMessage());
        assertThrows(InvalidSnapshotException.class,
                () -> SnapshotReader.read(recorded("2-difference-after-a-report"), null, 0));
    }

    @ParameterizedTest
    @CsvSource({"on, 1", "off, 0", "shadow, 0", "canary:10%, 0.1", "canary:2.5%:rack, 0.025", "canary:0.01%, 0.0001"})
    void theModeForReplicasIsAShareOfBlocks(String mode, double share) throws Exception {
        byte[] whole = new FakeNetwork(2, 2, 1000, 2000).setMode(mode).whole();
        assertEquals(share, SnapshotReader.read(whole, null, 0).share(), 1e-12);
    }

    @Test
    void aControllerWithoutModesLeavesAllBlocksToThePolicy() throws Exception {
        assertEquals(1.0, follow("1-whole", "2-difference-after-a-report").share());
    }

    @Test
    void aSnapshotThatRepeatsItsTimeDoesNotBecomeYounger() throws Exception {
        byte[] whole = recorded("7-whole-of-the-same-state");
        Snapshot first = SnapshotReader.read(whole, null, 1_000);
        Snapshot again = SnapshotReader.read(whole, first, 9_000);
        assertEquals(1_000, again.advancedNano());
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "", "null", "[]", "{}", "7", "\"text\"", "{\"id\": 3}", "{\"epoch\": 1e400}", "{\"epoch\": -1.5}",
        "{\"epoch\": 99999999999999999999}", "{\"time\": \"yesterday\"}", "{\"time\": \"2026-13-41T99:99:99Z\"}",
        "{\"resolution\": \"NaN\"}", "{\"resolution\": -1}", "{\"links\": []}", "{\"links\": {\"link\": 3}}",
        "{\"links\": {\"capacity_bps\": [true]}}", "{\"links\": {\"capacity_bps\": [[]]}}", "{\"clients\": {}}",
        "{\"clients\": [3]}", "{\"modes\": []}",
        "{\"modes\": {\"replicas\": \"fast\"}}", "{\"modes\": {\"replicas\": \"canary:100%\"}}",
        "{\"clients\": [{}]}", "<html>a proxy</html>", "{\"id\": \"a\"", "\0\0\0\0"})
    void otherInputIsRejectedWithAMessage(String input) {
        InvalidSnapshotException error = assertThrows(InvalidSnapshotException.class, () -> read(input));
        assertFalse(error.getMessage().isBlank());
    }

    @Test
    void columnsOfDifferentLengthAreRejectedByTheirName() {
        String json = new String(new FakeNetwork(2, 2, 1000, 2000).whole(), StandardCharsets.UTF_8)
                .replaceFirst("\"measured_bps\":\\[0,", "\"measured_bps\":[");
        InvalidSnapshotException error = assertThrows(InvalidSnapshotException.class, () -> read(json));
        assertTrue(error.getMessage().contains("links.measured_bps"), error.getMessage());
    }

    @Test
    void deepNestingInUnknownFieldsIsSkippedOrRejectedWithoutAnOverflow() {
        String deep = "[".repeat(200_000);
        assertThrows(InvalidSnapshotException.class, () -> read("{\"other\": " + deep));
    }

    @Test
    void fieldsOfLaterVersionsArePassedOverUpToADepth() throws Exception {
        String whole = new String(new FakeNetwork(2, 2, 1000, 2000).whole(), StandardCharsets.UTF_8);
        read(whole.replaceFirst("\\{", "{\"other\": {\"a\": [1, {\"b\": null}], \"c\": 2.5}, \"more\": [],"));
        String deep = "[".repeat(100) + "]".repeat(100);
        InvalidSnapshotException error = assertThrows(
                InvalidSnapshotException.class, () -> read(whole.replaceFirst("\\{", "{\"other\":" + deep + ",")));
        assertTrue(error.getMessage().contains("32 levels"), error.getMessage());
    }

    @Test
    void columnsOfLaterVersionsArePassedOver() throws Exception {
        String whole = new String(new FakeNetwork(2, 2, 1000, 2000).whole(), StandardCharsets.UTF_8);
        String later = whole.replaceFirst("\"links\":\\{", "\"links\":{\"latest_bps\":[7,null],\"from\":[null],");
        assertNotEquals(whole, later);
        assertArrayEquals(read(whole).measured(), read(later).measured());
    }

    @ParameterizedTest
    @ValueSource(strings = {"epoch", "resolution"})
    void aNumberOfMillionsOfDigitsIsRejectedAtOnce(String field) {
        String json = "{\"" + field + "\": " + "9".repeat(3_000_000) + "}";
        assertTimeoutPreemptively(
                Duration.ofSeconds(10), () -> assertThrows(InvalidSnapshotException.class, () -> read(json)));
    }

    /** A difference without a change of a table. */
    private static byte[] difference(Snapshot base, String clients) {
        String json = "{\"id\":\"next\",\"since\":\"" + base.id() + "\",\"epoch\":2,"
                + "\"time\":\"2026-01-31T12:00:01Z\",\"cluster_version\":\"1\",\"resolution\":0.01,"
                + "\"links\":{\"rows\":[],\"capacity_bps\":[],\"measured_bps\":[],\"until\":[],\"residual_bps\":[],"
                + "\"expected_capacity_bps\":[]},\"racks\":{\"rows\":[]},"
                + "\"hosts\":{\"rows\":[],\"up\":[],\"draining\":[]},"
                + "\"devices\":{\"rows\":[],\"until\":[],\"residual_steps\":[]},\"clients\":[" + clients + "]}";
        return json.getBytes(StandardCharsets.UTF_8);
    }

    @Test
    void clientsOfDifferencesDoNotAddUpWithoutAnEnd() throws Exception {
        Snapshot base = SnapshotReader.read(new FakeNetwork(2, 2, 1000, 2000).whole(), null, 0);
        String clients = IntStream.range(0, 66_000)
                .mapToObj(client -> "{\"client\":\"c" + client + "\",\"sequence\":1}")
                .collect(Collectors.joining(","));
        assertTrue(SnapshotReader.read(difference(base, ""), base, 0).isDifference());
        assertThrows(InvalidSnapshotException.class, () -> SnapshotReader.read(difference(base, clients), base, 0));
        String longName = "{\"client\":\"" + "c".repeat(129) + "\",\"sequence\":1}";
        assertThrows(InvalidSnapshotException.class, () -> SnapshotReader.read(difference(base, longName), base, 0));
    }

    @Test
    void theNumberingIsThatOfTheNamesAndNotOnlyOfTheVersion() throws Exception {
        Snapshot base = SnapshotReader.read(new FakeNetwork(2, 2, 1000, 2000).whole(), null, 0);
        FakeNetwork loaded = new FakeNetwork(2, 2, 1000, 9000).measure("r0:uplink", 7L);
        assertEquals(base.numbering(), SnapshotReader.read(loaded.whole(), null, 0).numbering());
        assertEquals(base.numbering(), SnapshotReader.read(difference(base, ""), base, 0).numbering());
        for (FakeNetwork other : List.of(
                new FakeNetwork(2, 3, 1000, 2000), new FakeNetwork(1, 4, 1000, 2000),
                new FakeNetwork(2, 2, 1000, 2000).rename("r1h1", "x"),
                new FakeNetwork(2, 2, 1000, 2000).addDevice("r0h0:sda", null),
                new FakeNetwork(2, 2, 1000, 2000).setClusterVersion("2"))) {
            assertNotEquals(base.numbering(), SnapshotReader.read(other.whole(), null, 0).numbering());
        }
    }

    @Test
    void noChangeOfARealAnswerEscapesAsAnotherException() throws Exception {
        byte[][] answers = {recorded("1-whole"), recorded("2-difference-after-a-report"),
            recorded("5-difference-after-a-host-went-down")};
        Snapshot base = follow("1-whole");
        Random random = new Random(7);
        int rejected = 0;
        for (int run = 0; run < 20_000; run++) {
            byte[] answer = answers[run % answers.length].clone();
            for (int change = 0; change <= run % 4; change++) {
                answer[random.nextInt(answer.length)] = (byte) (run % 2 == 0 ? random.nextInt(256) : "[]{},:\"019-n"
                        .charAt(random.nextInt(12)));
            }
            try {
                SnapshotReader.read(answer, base, 0);
            } catch (InvalidSnapshotException e) {
                rejected++;
            }
        }
        assertTrue(rejected > 5_000, rejected + " of 20000 were rejected");
    }

    @ParameterizedTest
    @CsvSource({
        "1970-01-01T00:00:00Z, 0",
        "2026-01-31T12:00:00Z, 1769860800000000000",
        "2026-01-31T12:00:00.5Z, 1769860800500000000",
        "2026-01-31T12:00:00.123456789Z, 1769860800123456789",
        "2026-01-31T14:30:00+02:30, 1769860800000000000",
        "2026-01-31T07:00:00-05:00, 1769860800000000000"})
    void timesAreNanosecondsSince1970(String text, long expected) throws Exception {
        assertEquals(expected, Rfc3339.parse(text));
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "2026-01-31", "2026-02-30T00:00:00Z", "2026-01-31T24:00:00Z", "2026-01-31T12:60:00Z", "2026-01-31T12:00:00",
        "2026-01-31T12:00:00+2:00", "1969-12-31T23:59:59Z", "2300-01-01T00:00:00Z", "2026-01-31T12:00:00.5",
        "2026-01-31t12.00.00Zzzzz", "2026-01-31T12:00:00.\u0665Z", "                    "})
    void otherTimesAreRejected(String text) {
        assertThrows(InvalidSnapshotException.class, () -> Rfc3339.parse(text));
    }
}
