package dev.leeward.hdfs.testing;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;

/** A controller on the loopback interface that shows a {@link FakeNetwork}, and misbehaves on request. */
public final class FakeController implements AutoCloseable {

    /** Answer of the controller. */
    public enum Behavior {
        /** A whole snapshot, and then differences. */
        WELL,
        /** Nothing, ever. */
        HANGS,
        /** The beginning of an answer, and then nothing. */
        DRIPS,
        /** A page of a proxy. */
        GARBAGE,
        /** A status of 503. */
        BUSY,
        /** The same snapshot again and again, at once. */
        REPEATS,
        /** The same snapshot again and again, after a status of 503 each time. */
        STUCK,
        /** An answer without an end. */
        FLOODS,
        /** A status of 503 for every second request. */
        FLAPS,
        /** A page of a proxy that repeats the headers of the request. */
        ECHOES,
        /** Snapshots, but no placement is accepted. */
        REFUSES,
        /** As a follower: snapshots, and the leader takes placements. */
        FOLLOWS
    }

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String PAGE = "<html>a proxy</html>";
    private static final Pattern SINCE = Pattern.compile("since=([^&]+)");
    private static final Pattern INTERVAL = Pattern.compile("interval=([0-9]+)ms");

    private final FakeNetwork network;
    private final HttpServer server;
    private final ExecutorService threads = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "fake-controller");
        thread.setDaemon(true);
        return thread;
    });
    private final List<JsonNode> commitments = new CopyOnWriteArrayList<>();
    private final AtomicInteger requests = new AtomicInteger();
    private volatile Behavior behavior = Behavior.WELL;
    private volatile String token;
    private volatile boolean counts = true;
    private volatile byte[] repeated;
    private long lastSequence;

    /** A controller at a free port. */
    public FakeController(FakeNetwork network) throws IOException {
        this(network, 0, null);
    }

    /**
     * A controller.
     *
     * @param port port, or 0 for a free one
     * @param tls context for HTTPS, or null for HTTP
     */
    public FakeController(FakeNetwork network, int port, SSLContext tls) throws IOException {
        this.network = network;
        InetSocketAddress address = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
        if (tls == null) {
            server = HttpServer.create(address, 0);
        } else {
            HttpsServer https = HttpsServer.create(address, 0);
            https.setHttpsConfigurator(new HttpsConfigurator(tls));
            server = https;
        }
        server.setExecutor(threads);
        server.createContext("/v1/snapshot", this::onSnapshot);
        server.createContext("/v1/commitments/batch", this::onCommitments);
        server.start();
    }

    /** Port of the controller. */
    public int port() {
        return server.getAddress().getPort();
    }

    /** Address for {@code dfs.leeward.controller}. */
    public String address() {
        String scheme = server instanceof HttpsServer ? "https" : "http";
        return scheme + "://localhost:" + port();
    }

    /** The network that it shows. */
    public FakeNetwork network() {
        return network;
    }

    /** Changes what it answers. */
    public void behave(Behavior next) {
        repeated = network.whole();
        behavior = next;
    }

    /** Requires a token. */
    public void requireToken(String required) {
        token = required;
    }

    /** True if snapshots count the reported placements. */
    public void setCounts(boolean counts) {
        this.counts = counts;
    }

    /** Sets the last sequence of the client: reports with lower ones are rejected. */
    public synchronized void setLastSequence(long sequence) {
        lastSequence = sequence;
    }

    /** Bodies of the reported placements. */
    public List<JsonNode> commitments() {
        return commitments;
    }

    /** Number of requests for a snapshot. */
    public int requestCount() {
        return requests.get();
    }

    private void onSnapshot(HttpExchange exchange) throws IOException {
        requests.incrementAndGet();
        if (refuses(exchange)) {
            return;
        }
        Matcher interval = INTERVAL.matcher(exchange.getRequestURI().getQuery());
        int wait = interval.find() ? Integer.parseInt(interval.group(1)) : 0;
        switch (behavior) {
            case WELL, REFUSES, FOLLOWS -> {
                pause(wait);
                network.pass(Math.max(wait, 1));
                Matcher since = SINCE.matcher(exchange.getRequestURI().getQuery());
                answer(exchange, 200, network.since(since.find() ? since.group(1) : null));
            }
            case REPEATS -> answer(exchange, 200, repeated);
            case GARBAGE -> answer(exchange, 200, text(PAGE));
            case BUSY -> answer(exchange, 503, text("{}"));
            case STUCK, FLAPS -> {
                boolean fails = requests.get() % 2 == 0;
                network.pass(1);
                byte[] shown = behavior == Behavior.STUCK ? repeated : network.whole();
                answer(exchange, fails ? 503 : 200, fails ? text("{}") : shown);
            }
            case FLOODS -> {
                exchange.sendResponseHeaders(200, 0);
                // Ends when the client closes the connection.
                for (byte[] part = new byte[1 << 20]; behavior == Behavior.FLOODS; ) {
                    exchange.getResponseBody().write(part);
                }
            }
            case ECHOES -> {
                String token = exchange.getRequestHeaders().getFirst("authorization");
                answer(exchange, 502, ("\u001b[31mno\r\nroute: " + token).getBytes(StandardCharsets.UTF_8));
            }
            case HANGS -> pause(60_000);
            case DRIPS -> {
                byte[] whole = network.whole();
                exchange.sendResponseHeaders(200, whole.length);
                exchange.getResponseBody().write(whole, 0, whole.length / 2);
                exchange.getResponseBody().flush();
                pause(60_000);
            }
        }
    }

    private void onCommitments(HttpExchange exchange) throws IOException {
        JsonNode body = JSON.readTree(exchange.getRequestBody());
        if (behavior == Behavior.HANGS) {
            pause(60_000);
        }
        if (refuses(exchange)) {
            return;
        }
        switch (behavior) {
            case REFUSES -> answer(exchange, 403, text("{}"));
            case FOLLOWS -> answer(exchange, 503, text("{}"));
            case ECHOES -> answer(exchange, 502, text("no route"));
            case GARBAGE -> answer(exchange, 200, text(PAGE));
            default -> {
                ArrayNode results = JSON.createArrayNode();
                body.get("commitments").forEach(item -> results.addObject().put("status", commit(item)));
                answer(exchange, 200, JSON.writeValueAsBytes(JSON.createObjectNode().set("results", results)));
            }
        }
    }

    /** Takes a placement. Returns its status. */
    private int commit(JsonNode item) {
        JsonNode replicas = item.get("replicas");
        long sequence = replicas.get("sequence").asLong();
        synchronized (this) {
            if (sequence <= lastSequence) {
                return 409;
            }
            lastSequence = sequence;
        }
        commitments.add(item);
        if (counts) {
            network.count(replicas.get("client").asText(), sequence);
        }
        return 201;
    }

    private boolean refuses(HttpExchange exchange) throws IOException {
        String given = exchange.getRequestHeaders().getFirst("authorization");
        if (token == null || ("Bearer " + token).equals(given)) {
            return false;
        }
        answer(exchange, 401, "{\"type\": \"urn:leeward:problem:unauthorized\"}".getBytes(StandardCharsets.UTF_8));
        return true;
    }

    private static byte[] text(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static void answer(HttpExchange exchange, int status, byte[] body) throws IOException {
        exchange.sendResponseHeaders(status, body.length);
        try (OutputStream out = exchange.getResponseBody()) {
            out.write(body);
        }
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }
}
