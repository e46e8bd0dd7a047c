package dev.leeward.hdfs.testing;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A network as a controller would show it: racks {@code r0}, {@code r1}, ... with hosts {@code r0h0}, ... and their
 * links. Loads are bit/s. Names of hosts and racks can be replaced, for DataNodes that have other ones.
 */
public final class FakeNetwork {

    /** Time at the start of a network. */
    public static final Instant START = Instant.parse("2026-01-31T12:00:00Z");

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int MOST_ANSWERED = 8;
    /** Number of snapshots of all networks: a snapshot of one has an id that no other network knows. */
    private static final AtomicLong NUMBER = new AtomicLong();

    private final int racks;
    private final int hostsPerRack;
    private final Map<String, Long> capacities = new LinkedHashMap<>();
    private final Map<String, Long> measured = new HashMap<>();
    private final Map<String, Long> pending = new HashMap<>();
    private final Map<String, Double> devices = new TreeMap<>();
    /** States of hosts that are not up, or may drain. */
    private final Map<String, Boolean> ups = new HashMap<>();
    private final Map<String, Boolean> drains = new HashMap<>();
    private final Map<String, Long> clients = new TreeMap<>();
    private final Map<String, String> otherNames = new HashMap<>();
    private Instant time = START;
    private Instant until = START;
    private String clusterVersion = "1";
    private String mode = "on";
    private int racksPerPod;
    private long epoch = 1;
    /** The tables of snapshots; null after a change. */
    private ObjectNode tables;
    /** The last snapshots from which differences were answered, by id. */
    private final Map<String, ObjectNode> answered = new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, ObjectNode> eldest) {
            return size() > MOST_ANSWERED;
        }
    };

    /** A network whose links are all measured as idle. */
    public FakeNetwork(int racks, int hostsPerRack, long nicBps, long rackBps) {
        this.racks = racks;
        this.hostsPerRack = hostsPerRack;
        for (int rack = 0; rack < racks; rack++) {
            for (int host = 0; host < hostsPerRack; host++) {
                add(host(rack, host) + ":egress", nicBps);
                add(host(rack, host) + ":ingress", nicBps);
            }
            add("r" + rack + ":uplink", rackBps);
            add("r" + rack + ":downlink", rackBps);
        }
    }

    /** Puts racks into pods {@code p0}, {@code p1}, ... with links of a capacity. */
    public synchronized FakeNetwork addPods(int size, long podBps) {
        racksPerPod = size;
        tables = null;
        for (int pod = 0; pod * size < racks; pod++) {
            add("p" + pod + ":uplink", podBps);
            add("p" + pod + ":downlink", podBps);
        }
        return this;
    }

    private void add(String link, long bps) {
        capacities.put(link, bps);
        measured.put(link, 0L);
    }

    private static String host(int rack, int host) {
        return "r" + rack + "h" + host;
    }

    /** Sets the measured load of a link; null for an unknown one. */
    public synchronized FakeNetwork measure(String link, Long bps) {
        if (!capacities.containsKey(link)) {
            throw new IllegalArgumentException(link);
        }
        measured.put(link, bps);
        tables = null;
        epoch++;
        return this;
    }

    /** Sets the measured loads of all links to unknown, as before the first report. */
    public synchronized FakeNetwork forgetAll() {
        measured.replaceAll((link, load) -> null);
        tables = null;
        until = null;
        epoch++;
        return this;
    }

    /** Sets the rate of placed work on a link that its measured load does not show. */
    public synchronized FakeNetwork pend(String link, long bps) {
        pending.put(link, bps);
        tables = null;
        epoch++;
        return this;
    }

    /** Sets the capacity of a link. */
    public synchronized FakeNetwork setCapacity(String link, long bps) {
        capacities.put(link, bps);
        tables = null;
        epoch++;
        return this;
    }

    /** Adds a device with the free share of its time; null for one without a report. */
    public synchronized FakeNetwork addDevice(String device, Double free) {
        devices.put(device, free);
        tables = null;
        return this;
    }

    /** Sets whether a host is up; null for an unknown state. */
    public synchronized FakeNetwork setUp(String host, Boolean isUp) {
        ups.put(host, isUp);
        tables = null;
        epoch++;
        return this;
    }

    /** Sets whether a host is draining; null for an unknown state. */
    public synchronized FakeNetwork setDraining(String host, Boolean isDraining) {
        drains.put(host, isDraining);
        tables = null;
        epoch++;
        return this;
    }

    /** Sets the last counted sequence of a client. */
    public synchronized FakeNetwork count(String client, long sequence) {
        clients.put(client, sequence);
        epoch++;
        return this;
    }

    /** Replaces the name of a host or rack. */
    public synchronized FakeNetwork rename(String part, String name) {
        otherNames.put(part, name);
        tables = null;
        return this;
    }

    /** Advances the time, and with it the windows of all links and devices. */
    public synchronized FakeNetwork advance(long ms) {
        time = time.plusMillis(ms);
        until = until == null ? null : time;
        tables = null;
        epoch++;
        return this;
    }

    /** Sets the time, and with it the windows of all links and devices. */
    public synchronized FakeNetwork setTime(Instant now) {
        time = now;
        return advance(0);
    }

    /** Advances the time without new windows. */
    public synchronized FakeNetwork pass(long ms) {
        time = time.plusMillis(ms);
        return this;
    }

    /** Makes all later snapshots those of another version of the cluster. */
    public synchronized FakeNetwork setClusterVersion(String version) {
        clusterVersion = version;
        return this;
    }

    /** Sets the controller's mode for replicas. */
    public synchronized FakeNetwork setMode(String mode) {
        this.mode = mode;
        return this;
    }

    /** A whole snapshot as JSON. */
    public byte[] whole() {
        return json().toString().getBytes(StandardCharsets.UTF_8);
    }

    /** The difference from a snapshot that this method returned; a whole one if there is none, or it is long ago. */
    public synchronized byte[] since(String id) {
        ObjectNode before = id == null ? null : answered.get(id);
        ObjectNode now = json();
        answered.put(now.get("id").asText(), now);
        ObjectNode difference = before == null ? null : Difference.between(before, now);
        return (difference == null ? now : difference).toString().getBytes(StandardCharsets.UTF_8);
    }

    private synchronized ObjectNode json() {
        if (tables == null) {
            tables = JSON.createObjectNode();
            putLinks(tables.putObject("links"));
            putRacks(tables.putObject("racks"));
            putHosts(tables.putObject("hosts"));
            putDevices(tables.putObject("devices"));
        }
        ObjectNode top = JSON.createObjectNode();
        top.put("id", "fake-" + NUMBER.getAndIncrement());
        top.putNull("since");
        top.put("epoch", epoch);
        top.put("time", time.toString());
        top.put("telemetry", until == null ? null : until.toString());
        top.put("cluster_version", clusterVersion);
        top.putObject("modes").put("replicas", mode).put("moves", "canary:10%:rack");
        top.put("resolution", 0.01);
        top.setAll(tables);
        ArrayNode list = top.putArray("clients");
        clients.forEach((client, sequence) -> list.addObject().put("client", client).put("sequence", sequence));
        return top;
    }

    private void putLinks(ObjectNode links) {
        ArrayNode names = links.putArray("link");
        ArrayNode capacity = links.putArray("capacity_bps");
        ArrayNode load = links.putArray("measured_bps");
        ArrayNode window = links.putArray("until");
        ArrayNode residual = links.putArray("residual_bps");
        ArrayNode expected = links.putArray("expected_capacity_bps");
        capacities.forEach((link, bps) -> {
            Long known = measured.get(link);
            names.add(namedLink(link));
            capacity.add(bps);
            load.add(known);
            window.add(known == null ? null : until.toString());
            residual.add(known == null ? 0 : Math.max(0, bps - known - pending.getOrDefault(link, 0L)));
            expected.add(known == null ? null : Long.valueOf(Math.max(0, bps - known)));
        });
    }

    private String named(String part) {
        return otherNames.getOrDefault(part, part);
    }

    private String namedLink(String link) {
        int colon = link.indexOf(':');
        return named(link.substring(0, colon)) + link.substring(colon);
    }

    private void putRacks(ObjectNode table) {
        ArrayNode names = table.putArray("rack");
        ArrayNode pods = table.putArray("pod");
        ArrayNode uplinks = table.putArray("uplink");
        ArrayNode downlinks = table.putArray("downlink");
        for (int rack = 0; rack < racks; rack++) {
            String name = named("r" + rack);
            names.add(name);
            pods.add(racksPerPod == 0 ? null : "p" + rack / racksPerPod);
            uplinks.add(name + ":uplink");
            downlinks.add(name + ":downlink");
        }
    }

    private void putHosts(ObjectNode table) {
        ArrayNode names = table.putArray("host");
        ArrayNode inRack = table.putArray("rack");
        ArrayNode up = table.putArray("up");
        ArrayNode draining = table.putArray("draining");
        for (int rack = 0; rack < racks; rack++) {
            for (int host = 0; host < hostsPerRack; host++) {
                names.add(named(host(rack, host)));
                inRack.add(named("r" + rack));
                up.add(ups.getOrDefault(host(rack, host), true));
                draining.add(drains.getOrDefault(host(rack, host), false));
            }
        }
    }

    private void putDevices(ObjectNode table) {
        ArrayNode names = table.putArray("device");
        ArrayNode window = table.putArray("until");
        ArrayNode free = table.putArray("residual_steps");
        devices.forEach((device, share) -> {
            names.add(device);
            window.add(share == null ? null : (until == null ? START : until).toString());
            free.add(share == null ? 0 : Math.round(share * 100));
        });
    }
}
