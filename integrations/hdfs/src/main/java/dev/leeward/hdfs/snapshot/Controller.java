package dev.leeward.hdfs.snapshot;

import dev.leeward.hdfs.settings.Settings;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.SSLException;

/**
 * The HTTP client of a controller, by the JDK alone. Every request has a deadline for its whole answer. After a failure
 * the next request goes to the next address.
 */
public final class Controller {

    /** Largest answer; a snapshot of 100,000 hosts has about 20 MB. */
    private static final int MOST_BYTES = 64 << 20;
    /** Largest answer that is no snapshot. */
    private static final int MOST_ANSWER = 1 << 20;
    /** Time for a whole snapshot, which is longer than a difference, as a multiple of the deadline. */
    private static final int WHOLE = 10;

    private final Settings.Connection connection;
    private final HttpClient client;
    private final AtomicInteger current = new AtomicInteger();

    /**
     * A client.
     *
     * @throws ControllerException if the file of certificates cannot be used
     */
    public Controller(Settings.Connection connection) throws ControllerException {
        this.connection = connection;
        HttpClient.Builder builder = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .followRedirects(HttpClient.Redirect.NEVER)
                .connectTimeout(Duration.ofMillis(connection.deadlineMs()));
        if (connection.authority() != null) {
            try {
                builder.sslContext(Trust.in(connection.authority()));
            } catch (IOException | GeneralSecurityException e) {
                throw new ControllerException(Failure.TLS, connection.authority() + ": " + e.getMessage());
            }
        }
        client = builder.build();
    }

    /** The address to which the next request goes. */
    public URI address() {
        return connection.controllers().get(Math.floorMod(current.get(), connection.controllers().size()));
    }

    /** Time between two snapshots, in ms. */
    long intervalMs() {
        return connection.intervalMs();
    }

    /**
     * The next snapshot: the difference from {@code base} if there is one, at the end of the interval.
     *
     * @throws ControllerException if the answer is late, an error, or no snapshot
     */
    Snapshot snapshot(Snapshot base) throws ControllerException, InterruptedException {
        String path = "/v1/snapshot?" + Columns.query();
        long deadline = WHOLE * connection.deadlineMs();
        if (base != null) {
            String interval = connection.intervalMs() + "ms";
            path += "&since=" + URLEncoder.encode(base.id(), StandardCharsets.UTF_8)
                    + "&interval=" + interval + "&wait=" + interval;
            // The answer comes after the interval, and in a network without any change after the wait.
            deadline = 2 * connection.intervalMs() + connection.deadlineMs();
        }
        HttpResponse<byte[]> answer = send(request(path).GET().build(), MOST_BYTES, deadline);
        check(answer, 200);
        try {
            return SnapshotReader.read(answer.body(), base, System.nanoTime());
        } catch (InvalidSnapshotException e) {
            current.incrementAndGet();
            throw new ControllerException(Failure.INVALID, e.getMessage());
        }
    }

    /**
     * Reports a placement.
     *
     * @param body JSON of {@code POST /v1/commitments}
     * @return the status of the answer
     */
    public int commit(byte[] body) throws ControllerException, InterruptedException {
        HttpRequest request = request("/v1/commitments")
                .header("content-type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofByteArray(body))
                .build();
        // A commitment is durable when it is answered, so its deadline leaves time for a disk.
        return send(request, MOST_ANSWER, WHOLE * connection.deadlineMs()).statusCode();
    }

    private HttpRequest.Builder request(String path) {
        HttpRequest.Builder builder = HttpRequest.newBuilder(URI.create(address() + path));
        if (connection.token() != null) {
            builder.header("authorization", "Bearer " + connection.token());
        }
        return builder;
    }

    private HttpResponse<byte[]> send(HttpRequest request, int most, long deadlineMs)
            throws ControllerException, InterruptedException {
        CompletableFuture<HttpResponse<byte[]>> answer =
                client.sendAsync(request, info -> new LimitedBody(most));
        try {
            return answer.get(deadlineMs, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            answer.cancel(true);
            current.incrementAndGet();
            throw new ControllerException(
                    Failure.TIMEOUT, request.uri().getAuthority() + ": no answer within " + deadlineMs + " ms");
        } catch (ExecutionException e) {
            current.incrementAndGet();
            throw failed(request, e.getCause());
        } catch (InterruptedException e) {
            answer.cancel(true);
            throw e;
        }
    }

    private static ControllerException failed(HttpRequest request, Throwable cause) {
        for (Throwable at = cause; at != null; at = at.getCause()) {
            if (at instanceof SSLException) {
                return new ControllerException(Failure.TLS, request.uri().getAuthority() + ": " + at.getMessage());
            }
        }
        Failure failure = cause instanceof HttpTimeoutException ? Failure.TIMEOUT : Failure.UNREACHABLE;
        return new ControllerException(failure, request.uri().getAuthority() + ": " + cause);
    }

    private void check(HttpResponse<byte[]> answer, int expected) throws ControllerException {
        int status = answer.statusCode();
        if (status == expected) {
            return;
        }
        current.incrementAndGet();
        boolean refused = status == 401 || status == 403 || status == 421;
        String body = new String(answer.body(), StandardCharsets.UTF_8).replaceAll("\\s+", " ");
        String start = body.length() > 200 ? body.substring(0, 200) + "..." : body;
        throw new ControllerException(
                refused ? Failure.UNAUTHORIZED : Failure.STATUS,
                answer.uri().getAuthority() + ": status " + status + ": " + start);
    }
}
