package dev.leeward.hdfs.placements;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A placement for {@code POST /v1/commitments/batch}.
 *
 * @param placement the placement as it counts locally
 * @param client name of this client
 * @param writer name of the writing host, or null for one outside the cluster
 * @param hosts names of the hosts of new copies, in the order of the pipeline, or of new chunks
 * @param isSeparate whether the writer sends to each host by itself, as the chunks of a stripe whose code is unknown
 * @param coding code of the stripe that the hosts write or rebuild; null for copies of blocks or chunks
 * @param existing names of the hosts of earlier copies or chunks
 * @param bytes size of each copy or chunk
 * @param lastsMs time after which the controller forgets it
 */
public record Report(
        Placement placement,
        String client,
        String writer,
        List<String> hosts,
        boolean isSeparate,
        Coding coding,
        List<String> existing,
        long bytes,
        long lastsMs) {

    private static final JsonFactory JSON = new JsonFactory();

    /** Hosts of each commitment: without a code, the controller counts hosts as a pipeline, so each needs its own. */
    List<List<String>> commitments() {
        return isSeparate ? hosts.stream().map(List::of).toList() : List.of(hosts);
    }

    /**
     * The body of a request with reports.
     *
     * @param reports reports whose placements get the number of their last commitment
     * @param sequences next number of a commitment; only one thread takes numbers, so they rise in this order
     */
    static byte[] body(List<Report> reports, AtomicLong sequences) {
        ByteArrayOutputStream out = new ByteArrayOutputStream(256 * reports.size());
        try (JsonGenerator json = JSON.createGenerator(out)) {
            json.writeStartObject();
            json.writeArrayFieldStart("commitments");
            for (Report report : reports) {
                long sequence = 0;
                for (List<String> copies : report.commitments()) {
                    sequence = sequences.getAndIncrement();
                    report.write(json, copies, sequence);
                }
                report.placement.setSequence(sequence);
            }
            json.writeEndArray();
            json.writeEndObject();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return out.toByteArray();
    }

    private void write(JsonGenerator json, List<String> copies, long sequence) throws IOException {
        json.writeStartObject();
        writeNames(json, "hosts", copies);
        json.writeObjectFieldStart("replicas");
        json.writeStringField("size", (coding == null ? bytes : coding.blockOf(bytes)) + "B");
        if (writer != null) {
            json.writeStringField("writer", writer);
        }
        if (coding == null) {
            json.writeNumberField("replicas", copies.size());
        } else {
            json.writeStringField("coding", coding.text());
        }
        if (!existing.isEmpty()) {
            writeNames(json, "existing", existing);
        }
        json.writeStringField("client", client);
        json.writeNumberField("sequence", sequence);
        json.writeStringField("lasts", lastsMs + "ms");
        json.writeEndObject();
        json.writeEndObject();
    }

    private static void writeNames(JsonGenerator json, String field, List<String> names) throws IOException {
        json.writeArrayFieldStart(field);
        for (String name : names) {
            json.writeString(name);
        }
        json.writeEndArray();
    }
}
