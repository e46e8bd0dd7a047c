package dev.leeward.hdfs.snapshot;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import dev.leeward.hdfs.testing.FakeNetwork;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** The network of the other tests answers differences as a controller does. */
class FakeNetworkTest {

    private final FakeNetwork network = new FakeNetwork(3, 2, 1000, 2000).addDevice("r0h0:sda", 0.5);
    private Snapshot followed;

    private void follow() throws InvalidSnapshotException {
        followed = SnapshotReader.read(network.since(followed == null ? null : followed.id()), followed, 0);
    }

    /** True, false or unknown. */
    private static Boolean state(Random random) {
        int state = random.nextInt(3);
        return state == 2 ? null : Boolean.valueOf(state == 1);
    }

    @Test
    void differencesAddUpToTheWholeSnapshotOfTheSameState() throws Exception {
        Random random = new Random(11);
        follow();
        int differences = 0;
        for (int step = 0; step < 300; step++) {
            String link = "r" + random.nextInt(3) + (random.nextBoolean() ? ":downlink" : "h1:ingress");
            switch (random.nextInt(9)) {
                case 0 -> network.measure(link, (long) random.nextInt(1500));
                case 1 -> network.measure(link, null);
                case 2 -> network.pend(link, random.nextInt(500));
                case 3 -> network.advance(1_000);
                case 4 -> network.count("nn" + random.nextInt(3), step);
                case 5 -> network.addDevice("r0h0:sda", random.nextInt(100) / 100.0);
                case 6 -> network.setUp("r1h1", state(random));
                case 7 -> network.setDraining("r2h0", state(random));
                default -> network.pass(10);
            }
            follow();
            differences += followed.isDifference() ? 1 : 0;
            Snapshot whole = SnapshotReader.read(network.whole(), null, 0);
            assertEquals(whole.clients(), followed.clients());
            for (Columns columns : Columns.values()) {
                columns.kinds().forEach((column, kind) -> {
                    if (kind == Table.Kind.NAME) {
                        assertArrayEquals(whole.table(columns).names(column), followed.table(columns).names(column));
                    } else {
                        assertArrayEquals(
                                whole.table(columns).values(column), followed.table(columns).values(column), column);
                    }
                });
            }
        }
        assertEquals(300, differences);
    }

    @Test
    void aChangeThatNoDifferenceCanExpressIsAWholeSnapshot() throws Exception {
        follow();
        network.setClusterVersion("2");
        follow();
        assertFalse(followed.isDifference());
        network.rename("r0", "other");
        follow();
        assertFalse(followed.isDifference());
        network.measure("r1:downlink", Long.MAX_VALUE);
        follow();
        network.measure("r1:downlink", -Long.MAX_VALUE);
        follow();
        assertFalse(followed.isDifference());
        followed = SnapshotReader.read(network.since("of another controller"), followed, 0);
        assertFalse(followed.isDifference());
    }
}
