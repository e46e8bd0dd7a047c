package dev.leeward.hdfs.placements;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;

/**
 * A placement for {@code POST /v1/commitments}.
 *
 * @param placement the placement as it counts locally
 * @param client name of this client
 * @param writer name of the writing host, or null for one outside the cluster
 * @param hosts names of the hosts of new copies, in the order of the pipeline
 * @param isStripe whether the writer sends to each host by itself, as the chunks of a stripe
 * @param existing names of the hosts of earlier copies
 * @param bytes size of the block
 * @param lastsMs time after which the controller forgets it
 */
public record Report(
        Placement placement,
        String client,
        String writer,
        List<String> hosts,
        boolean isStripe,
        List<String> existing,
        long bytes,
        long lastsMs) {

    private static final JsonFactory JSON = new JsonFactory();

    /** Hosts of each request: the controller counts one as a pipeline, so each chunk of a stripe needs its own. */
    List<List<String>> requests() {
        return isStripe ? hosts.stream().map(List::of).toList() : List.of(hosts);
    }

    /** The body of a request. */
    byte[] body(List<String> copies, long sequence) {
        ByteArrayOutputStream out = new ByteArrayOutputStream(256);
        try (JsonGenerator json = JSON.createGenerator(out)) {
            json.writeStartObject();
            writeNames(json, "hosts", copies);
            json.writeObjectFieldStart("replicas");
            json.writeStringField("size", bytes + "B");
            if (writer != null) {
                json.writeStringField("writer", writer);
            }
            json.writeNumberField("replicas", copies.size());
            if (!existing.isEmpty()) {
                writeNames(json, "existing", existing);
            }
            json.writeStringField("client", client);
            json.writeNumberField("sequence", sequence);
            json.writeStringField("lasts", lastsMs + "ms");
            json.writeEndObject();
            json.writeEndObject();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return out.toByteArray();
    }

    private static void writeNames(JsonGenerator json, String field, List<String> names) throws IOException {
        json.writeArrayFieldStart(field);
        for (String name : names) {
            json.writeString(name);
        }
        json.writeEndArray();
    }
}
