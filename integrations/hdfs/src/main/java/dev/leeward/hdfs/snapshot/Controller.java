package dev.leeward.hdfs.snapshot;

import dev.leeward.hdfs.settings.Settings;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.SSLException;

/**
 * The HTTP client of a controller, by the JDK alone. Every request has a deadline for its whole answer. After a failure
 * the next request goes to the next address. Snapshots and reports have addresses of their own: a follower answers
 * snapshots, and only the leader takes placements. Several threads may use it.
 */
public final class Controller {

    /** Largest answer; a snapshot of 100,000 hosts has about 20 MB. */
    private static final int MOST_BYTES = 64 << 20;
    /** Largest answer that is no snapshot. */
    private static final int MOST_ANSWER = 1 << 20;
    /** Time for a report, or a whole snapshot, which is longer than a difference: a multiple of the deadline. */
    static final int WHOLE = 10;
    /** Bytes of an error that are read, and characters of it that are shown. */
    private static final int MOST_ERROR = 4096;
    private static final int MOST_SHOWN = 200;
    /** Status of a service that takes no placement now: a follower, or one that is busy. */
    private static final int UNAVAILABLE = 503;
    private static final String AUTHORIZATION = "authorization";
    private static final String BEARER = "Bearer ";

    private final Settings.Connection connection;
    private final Credentials credentials;
    private final AtomicInteger forSnapshots = new AtomicInteger();
    private final AtomicInteger forReports = new AtomicInteger();

    /**
     * A client.
     *
     * @throws ControllerException if the file of certificates cannot be used
     */
    public Controller(Settings.Connection connection) throws ControllerException {
        this.connection = connection;
        credentials = new Credentials(connection);
    }

    /** The address of the next request for a snapshot. */
    public URI address() {
        return address(forSnapshots);
    }

    private URI address(AtomicInteger number) {
        return connection.controllers().get(Math.floorMod(number.get(), connection.controllers().size()));
    }

    /** Makes the next request go to the next address, unless another request has already left this one. */
    private void leave(AtomicInteger number, URI failed) {
        int before = number.get();
        int size = connection.controllers().size();
        URI address = connection.controllers().get(Math.floorMod(before, size));
        if (address.getRawAuthority().equals(failed.getRawAuthority())) {
            number.compareAndSet(before, before + 1);
        }
    }

    /** Time between two snapshots, in ms. */
    long intervalMs() {
        return connection.intervalMs();
    }

    /**
     * The next snapshot: the difference from the last one, at the end of the interval, or a whole one at once.
     *
     * @param last the last snapshot, or null
     * @param whole whether the snapshot shall be whole; true without a last one
     * @throws ControllerException if the answer is late, an error, or no snapshot
     */
    Snapshot snapshot(Snapshot last, boolean whole) throws ControllerException, InterruptedException {
        String path = "/v1/snapshot?" + Columns.query();
        long deadline = WHOLE * connection.deadlineMs();
        if (!whole) {
            String interval = connection.intervalMs() + "ms";
            path += "&since=" + URLEncoder.encode(last.id(), StandardCharsets.UTF_8)
                    + "&interval=" + interval + "&wait=" + interval;
            // The answer comes after the interval, and in a network without any change after the wait.
            deadline = 2 * connection.intervalMs() + connection.deadlineMs();
        }
        HttpRequest request = request(address(), path).GET().build();
        HttpResponse<byte[]> answer = send(request, forSnapshots, MOST_BYTES, deadline);
        check(answer);
        try {
            return SnapshotReader.read(answer.body(), last, System.nanoTime());
        } catch (InvalidSnapshotException e) {
            leave(forSnapshots, answer.uri());
            throw new ControllerException(Failure.INVALID, excerpt(answer, e.getMessage()));
        }
    }

    /**
     * Reports placements. An address that does not take them is left for the next one. While it is unavailable, the
     * next one gets this request too: the leader has another address.
     *
     * @param body JSON of {@code POST /v1/commitments/batch}; its sequences make it safe to send again
     * @return the status of each commitment, in the order of the body
     * @throws ControllerException if the answer is late, an error, or no list of results
     */
    public int[] commit(byte[] body) throws ControllerException, InterruptedException {
        HttpResponse<byte[]> answer;
        int tried = 0;
        do {
            HttpRequest request = request(address(forReports), "/v1/commitments/batch")
                    .header("content-type", "application/json")
                    .POST(HttpRequest.BodyPublishers.ofByteArray(body))
                    .build();
            // A commitment is durable when it is answered, so its deadline leaves time for a disk.
            answer = send(request, forReports, MOST_ANSWER, WHOLE * connection.deadlineMs());
            if (answer.statusCode() != 200) {
                leave(forReports, request.uri());
            }
            tried++;
        } while (answer.statusCode() == UNAVAILABLE && tried < connection.controllers().size());
        if (answer.statusCode() != 200) {
            throw failed(answer);
        }
        try {
            return ResultsReader.statuses(answer.body());
        } catch (IOException e) {
            leave(forReports, answer.uri());
            throw new ControllerException(
                    Failure.INVALID, answer.uri().getAuthority() + ": no results: " + excerpt(answer, e.getMessage()));
        }
    }

    private HttpRequest.Builder request(URI address, String path) {
        HttpRequest.Builder builder = HttpRequest.newBuilder(URI.create(address + path));
        String token = credentials.token();
        if (token != null) {
            builder.header(AUTHORIZATION, BEARER + token);
        }
        return builder;
    }

    private HttpResponse<byte[]> send(HttpRequest request, AtomicInteger number, int most, long deadlineMs)
            throws ControllerException, InterruptedException {
        CompletableFuture<HttpResponse<byte[]>> answer =
                credentials.client().sendAsync(
                        request, info -> new LimitedBody(info.statusCode() == 200 ? most : MOST_ANSWER));
        try {
            return answer.get(deadlineMs, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            answer.cancel(true);
            leave(number, request.uri());
            throw new ControllerException(
                    Failure.TIMEOUT, request.uri().getAuthority() + ": no answer within " + deadlineMs + " ms");
        } catch (ExecutionException e) {
            leave(number, request.uri());
            throw failed(request, e.getCause());
        } catch (InterruptedException e) {
            answer.cancel(true);
            throw e;
        }
    }

    private ControllerException failed(HttpRequest request, Throwable cause) {
        for (Throwable at = cause; at != null; at = at.getCause()) {
            if (at instanceof SSLException) {
                return new ControllerException(
                        Failure.TLS,
                        request.uri().getAuthority() + ": " + at.getMessage() + credentials.readCertificatesAgain());
            }
            if (at instanceof LimitedBody.TooLongException) {
                return new ControllerException(Failure.INVALID, request.uri().getAuthority() + ": " + at.getMessage());
            }
        }
        Failure failure = cause instanceof HttpTimeoutException ? Failure.TIMEOUT : Failure.UNREACHABLE;
        return new ControllerException(failure, request.uri().getAuthority() + ": " + cause);
    }

    private void check(HttpResponse<byte[]> answer) throws ControllerException {
        if (answer.statusCode() != 200) {
            leave(forSnapshots, answer.uri());
            throw failed(answer);
        }
    }

    private ControllerException failed(HttpResponse<byte[]> answer) {
        int status = answer.statusCode();
        boolean refused = status == 401 || status == 403 || status == 421;
        int length = Math.min(answer.body().length, MOST_ERROR);
        String message = answer.uri().getAuthority() + ": status " + status + ": "
                + excerpt(answer, new String(answer.body(), 0, length, StandardCharsets.UTF_8));
        return refused
                ? new ControllerException(Failure.UNAUTHORIZED, message + credentials.readTokenAgain())
                : new ControllerException(Failure.STATUS, message);
    }

    /** A part of an answer for logs: on one line, short, and without the token, which a proxy may repeat. */
    private static String excerpt(HttpResponse<?> answer, String text) {
        String line = text.replaceAll("[\\s\\p{Cntrl}]+", " ");
        // That of the request: the file may have another one now.
        String sent = answer.request().headers().firstValue(AUTHORIZATION).orElse("");
        if (sent.startsWith(BEARER)) {
            line = line.replace(sent.substring(BEARER.length()), "...");
        }
        return line.length() > MOST_SHOWN ? line.substring(0, MOST_SHOWN) + "..." : line;
    }
}
