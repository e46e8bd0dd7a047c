package dev.leeward.hdfs;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.leeward.hdfs.policies.Explanation;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/** An explained decision: what was asked, what the policy compared for each copy, and what HDFS took. */
final class DecisionRecord {

    private static final JsonFactory JSON = new JsonFactory();
    /** Largest number of stored choices. A block may have hundreds of copies, and HDFS may reject hosts for each. */
    private static final int MOST_STEPS = 64;

    /** One choice of the policy. HDFS may have rejected it and asked again. */
    private record Step(String scope, String host, Reason reason, Explanation why) {
    }

    private final Instant time;
    private final String path;
    private final String writer;
    private final long bytes;
    private final String policy;
    private final String mode;
    private final List<Step> steps = new ArrayList<>();
    private int omitted;
    private List<String> hosts = List.of();
    private List<String> existing = List.of();
    private Reason reason = Reason.RANKED;

    /**
     * A decision without any choice yet.
     *
     * @param path file of the block, or null
     * @param writer name of the machine that writes, or null
     * @param mode mode of the controller, or null without a snapshot
     */
    DecisionRecord(Instant time, String path, String writer, long bytes, String policy, String mode) {
        this.time = time;
        this.path = path == null ? "" : path;
        this.writer = writer;
        this.bytes = bytes;
        this.policy = policy;
        this.mode = mode;
    }

    /** True if further choices are only counted. */
    boolean isFull() {
        return steps.size() == MOST_STEPS;
    }

    void addStep(String scope, String host, Reason why, Explanation explanation) {
        if (isFull()) {
            omitted++;
        } else {
            steps.add(new Step(scope, host, why, explanation));
        }
    }

    /**
     * Takes in the result.
     *
     * @param chosen names of the hosts for new copies
     * @param earlier names of the hosts with earlier copies
     */
    void finish(List<String> chosen, List<String> earlier, Reason result) {
        hosts = chosen;
        existing = earlier;
        reason = result;
    }

    String path() {
        return path;
    }

    /** The record as JSON on one line. */
    String json() {
        StringWriter out = new StringWriter();
        try (JsonGenerator json = JSON.createGenerator(out)) {
            json.writeStartObject();
            json.writeStringField("time", time.toString());
            json.writeStringField("path", path);
            json.writeStringField("writer", writer);
            json.writeNumberField("bytes", bytes);
            json.writeStringField("policy", policy);
            if (mode != null) {
                json.writeStringField("mode", mode);
            }
            json.writeStringField("reason", reason.text());
            writeNames(json, "hosts", hosts);
            writeNames(json, "existing", existing);
            json.writeArrayFieldStart("steps");
            for (Step step : steps) {
                write(json, step);
            }
            json.writeEndArray();
            json.writeNumberField("steps_omitted", omitted);
            json.writeEndObject();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return out.toString();
    }

    private static void writeNames(JsonGenerator json, String field, List<String> names) throws IOException {
        json.writeArrayFieldStart(field);
        for (String name : names) {
            json.writeString(name);
        }
        json.writeEndArray();
    }

    private static void write(JsonGenerator json, Step step) throws IOException {
        json.writeStartObject();
        json.writeStringField("scope", step.scope);
        json.writeStringField("host", step.host);
        json.writeStringField("reason", step.reason.text());
        if (step.why != null) {
            if (!step.why.note().isEmpty()) {
                json.writeStringField("note", step.why.note());
            }
            write(json, "racks", step.why.racks());
            write(json, "hosts", step.why.hosts());
        }
        json.writeEndObject();
    }

    private static void write(JsonGenerator json, String field, List<Explanation.Considered> list)
            throws IOException {
        json.writeArrayFieldStart(field);
        for (Explanation.Considered considered : list) {
            json.writeStartObject();
            json.writeStringField("name", considered.name());
            json.writeNumberField("value", considered.value());
            json.writeStringField("unit", considered.unit());
            if (!considered.detail().isEmpty()) {
                json.writeStringField("detail", considered.detail());
            }
            json.writeEndObject();
        }
        json.writeEndArray();
    }
}
