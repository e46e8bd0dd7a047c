package dev.leeward.hdfs.policies;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.leeward.hdfs.placements.LocalLoads;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class NetworkViewTest {

    private final Scene scene = new Scene(2, 2);

    /** The snapshot of a scene arrives at 0. */
    @ParameterizedTest
    @CsvSource({"0, true", "5000999999, true", "5001000000, false"})
    void loadsCountUntilTheLargestAge(long nano, boolean fresh) {
        assertEquals(fresh, scene.view().isFresh(nano, 5_000));
        assertTrue(scene.view().isFresh(nano, Long.MAX_VALUE));
    }

    @Test
    void loadsDoNotCountWithoutASnapshotOrOnTheLinksOfAnotherOne() {
        NetworkView view = scene.view();
        NetworkView without = NetworkView.of(
                view.topology(), view.network(), view.storage(), view.classes(), null, view.expected(), view.loads());
        assertFalse(without.isFresh(0, 5_000));
        NetworkView other = NetworkView.of(
                view.topology(), view.network(), view.storage(), view.classes(), view.snapshot(), view.expected(),
                new LocalLoads("other", 1));
        assertFalse(other.isFresh(0, 5_000));
    }

    @Test
    void aRackIsReportedIfTheLinkIntoAnyHostOfItIs() {
        scene.network.measure("r0h0:ingress", null).measure("r0h1:ingress", null).measure("r1h0:ingress", null);
        boolean[] reported = scene.view().rackReported();
        assertFalse(reported[0]);
        assertTrue(reported[1]);
    }
}
