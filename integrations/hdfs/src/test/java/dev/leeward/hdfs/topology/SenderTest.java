package dev.leeward.hdfs.topology;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.leeward.hdfs.snapshot.Snapshot;
import dev.leeward.hdfs.snapshot.Snapshots;
import dev.leeward.hdfs.testing.FakeNetwork;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.apache.hadoop.net.NodeBase;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Writers on a network of three racks in pods of two; the last rack has no DataNodes. */
class SenderTest {

    private static final long GBPS = 1_000_000_000L;

    private final FakeDataNodes nodes = new FakeDataNodes(2, 2);
    private final Snapshot snapshot = Snapshots.read(
            new FakeNetwork(3, 2, GBPS, 2 * GBPS).addPods(2, 3 * GBPS).whole(), 0);
    private final Network network = Network.of(Topology.of(nodes.map()), snapshot);

    private Sender client(String path) {
        return network.sender(new NodeBase(path), snapshot);
    }

    @Test
    void aDataNodeHasItsNumbersAndLinks() {
        Sender sender = network.sender(nodes.node("r1h0"), snapshot);
        assertEquals(2, sender.host());
        assertEquals(1, sender.rack());
        assertEquals(snapshot.link("r1h0:egress"), sender.egress());
        assertEquals(snapshot.link("r1:uplink"), sender.uplink());
        assertEquals(snapshot.link("p0:uplink"), sender.podUplink());
        assertSame(sender, network.sender(2));
    }

    @Test
    void aClientThatTheSnapshotHasAsAHostHasTheLinksOutOfIt() {
        Sender sender = client("/r2/r2h1");
        assertEquals(-1, sender.host());
        assertEquals(-1, sender.rack());
        assertEquals("r2h1", snapshot.hostName(sender.row()));
        assertEquals(snapshot.link("r2h1:egress"), sender.egress());
        assertEquals(snapshot.link("r2:uplink"), sender.uplink());
        assertEquals(snapshot.link("p1:uplink"), sender.podUplink());
        assertTrue(sender.isPlaced());
        assertTrue(network.crossesPods(sender, 0));
    }

    @Test
    void aClientOfWhichTheRackAloneIsKnownHasTheLinksOutOfTheRack() {
        Sender sender = client("/r1/10.9.9.9");
        assertEquals(1, sender.rack());
        assertEquals(-1, sender.row());
        assertEquals(-1, sender.egress());
        assertEquals(snapshot.link("r1:uplink"), sender.uplink());
        assertFalse(network.crossesPods(sender, 0));
        // A host of this name is in another rack, so it is another machine.
        assertEquals(-1, client("/r1/r2h1").row());
    }

    /** Racks of the controller {@code r1}, {@code dc1.r0} and {@code dc1.row3.r2}. */
    @ParameterizedTest
    @CsvSource({
        "/r1, r1", "/dc1/r1, r1", "/dc1/row3/r1, r1",
        "/dc1/r0, dc1.r0", "/dc2/dc1/r0, dc1.r0", "/dc1.r0, dc1.r0", "/dc2/r0, ", "/r0, ", "/dc1/row3/r0, ",
        "/dc1/row3/r2, dc1.row3.r2", "/row3/r2, ", "/dc1/r2, "})
    void aRackIsFoundByItsLastNameOrElseByItsLastNamesJoinedByDots(String location, String rack) {
        Snapshot renamed = Snapshots.read(new FakeNetwork(3, 2, GBPS, 2 * GBPS)
                .rename("r0", "dc1.r0").rename("r2", "dc1.row3.r2").whole(), 0);
        int uplink = rack == null ? -1 : renamed.link(rack + ":uplink");
        FakeDataNodes one = new FakeDataNodes(0, 0);
        one.add(location, "r" + (rack == null ? "0" : rack.substring(rack.length() - 1)) + "h0");
        Network joined = Network.of(Topology.of(one.map()), renamed);
        assertEquals(uplink, joined.uplink(0));
        assertEquals(rack != null, joined.isKnown(0));
        Sender client = joined.sender(new NodeBase(location + "/10.9.9.9"), renamed);
        assertEquals(uplink, client.uplink());
    }

    @Test
    void aClientOfAnUnknownRackIsUnknown() {
        for (String path : new String[] {"/default-rack/10.9.9.9", "/10.9.9.9"}) {
            assertEquals(Sender.UNKNOWN, client(path));
            assertTrue(network.crossesPods(client(path), 0));
        }
        assertEquals(Sender.UNKNOWN, network.sender(null, snapshot));
    }

    @Test
    void withoutASnapshotAClientHasItsRackAlone() {
        Network blind = Network.of(Topology.of(nodes.map()), null);
        assertEquals(new Sender(-1, 1, -1, -1, -1, -1), blind.sender(new NodeBase("/r1/10.9.9.9"), null));
    }
}
