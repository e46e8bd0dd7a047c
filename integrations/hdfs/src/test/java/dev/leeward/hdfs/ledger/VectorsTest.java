package dev.leeward.hdfs.ledger;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Replays every published conformance vector against the ledger. */
class VectorsTest {

    private static final Path FILE = Path.of("../../docs/reference/ledger-vectors.json");

    @TestFactory
    Stream<DynamicTest> theLedgerAgreesWithEveryPublishedVector() throws IOException {
        JsonNode vectors = new ObjectMapper().readTree(FILE.toFile()).get("vectors");
        assertTrue(vectors.size() >= 20, "the file has " + vectors.size() + " vectors");
        return elements(vectors).map(vector ->
                DynamicTest.dynamicTest(vector.get("name").asText(), () -> new Replay(vector).run()));
    }

    private static Stream<JsonNode> elements(JsonNode list) {
        return StreamSupport.stream(list.spliterator(), false);
    }

    /** One vector with the ledger that it drives. */
    private static final class Replay {
        private final JsonNode vector;
        private final Ledger ledger;
        private final Map<String, Long> entries = new HashMap<>();

        Replay(JsonNode vector) {
            this.vector = vector;
            ledger = new Ledger(fabric(vector.get("cluster")), settings(vector.get("settings")));
        }

        void run() {
            int number = 0;
            for (JsonNode step : vector.get("steps")) {
                long now = step.get("at_ns").asLong();
                View view = apply(step.get("op"), now);
                for (JsonNode expected : step.get("expect")) {
                    compare("step " + number + ", link " + expected.get("resource"), expected, view);
                }
                number++;
            }
        }

        private View apply(JsonNode operation, long now) {
            String name = operation.fieldNames().next();
            JsonNode body = operation.get(name);
            switch (name) {
                case "report" -> ledger.report(elements(body).map(Replay::sample).toList(), now);
                case "commit" -> commit(body, now);
                case "started" ->
                        ledger.markStarted(entries.get(body.get("entry").asText()), body.get("start_ns").asLong(), now);
                case "believe" ->
                        ledger.setCapacity(body.get("resource").asInt(), body.get("capacity_bps").asLong(), now);
                case "health" -> ledger.setHealth(body.get("host").asInt(), body.get("up").asBoolean(), now);
                case "advance" -> ledger.advance(now);
                case "view" -> {
                    ledger.advance(now);
                    View view = ledger.view(now);
                    elements(body.get("without")).map(Replay::owner).forEach(view::without);
                    elements(body.get("add")).map(Replay::entry).forEach(view::add);
                    return view;
                }
                default -> throw new AssertionError("unknown operation " + name);
            }
            return ledger.view(now);
        }

        private void commit(JsonNode change, long now) {
            List<Entry> add = elements(change.get("add")).map(Replay::entry).toList();
            List<Long> release = elements(change.get("release")).map(name -> entries.get(name.asText())).toList();
            List<Long> ids = ledger.commit(add, release, now);
            for (int i = 0; i < ids.size(); i++) {
                entries.put(change.get("add").get(i).get("entry").asText(), ids.get(i));
            }
        }

        private void compare(String where, JsonNode expected, View view) {
            int link = expected.get("resource").asInt();
            assertRate(where, expected, "measured_bps", view.measured(link));
            assertEquals(expected.get("derived").asBoolean(), view.isDerived(link), where + ": derived");
            assertRate(where, expected, "expected_capacity_bps", view.expectedCapacity(link));
            assertRate(where, expected, "residual_bps", OptionalLong.of(view.residual(link)));
            assertRate(where, expected, "share_bps", OptionalLong.of(view.share(link, 1)));
            assertRate(where, expected, "unreserved_bps", view.unreserved(link));
            assertEquals(
                    expected.get("utilization").asDouble(Double.NaN),
                    view.utilizationWith(link, 0).orElse(Double.NaN),
                    1e-9,
                    where + ": utilization");
            JsonNode since = expected.get("hot_since_ns");
            assertEquals(
                    since.isNull() ? OptionalLong.empty() : OptionalLong.of(since.asLong()),
                    view.hotSince(link),
                    where + ": hot_since");
        }

        private void assertRate(String where, JsonNode expected, String field, OptionalLong actual) {
            JsonNode rate = expected.get(field);
            assertEquals(!rate.isNull(), actual.isPresent(), where + ": " + field + " is known");
            if (actual.isPresent()) {
                double tolerance = vector.get("tolerance_bps").asDouble();
                assertEquals(rate.asLong(), actual.getAsLong(), tolerance, where + ": " + field);
            }
        }

        private static Fabric fabric(JsonNode cluster) {
            List<Fabric.Sum> sums = elements(cluster.get("sums"))
                    .map(sum -> new Fabric.Sum(sum.get("resource").asInt(), numbers(sum.get("of"))))
                    .toList();
            return new Fabric(
                    elements(cluster.get("capacities_bps")).map(JsonNode::asLong).toList(),
                    elements(cluster.get("hosts")).map(Replay::numbers).toList(),
                    sums,
                    cluster.get("promises").asBoolean());
        }

        private static int[] numbers(JsonNode list) {
            return elements(list).mapToInt(JsonNode::asInt).toArray();
        }

        private static LedgerSettings settings(JsonNode settings) {
            LedgerSettings standard = LedgerSettings.DEFAULT;
            return new LedgerSettings(
                    settings.get("interval_ns").asLong(),
                    settings.get("alpha").asDouble(),
                    LedgerSettings.Missing.valueOf(settings.get("missing").asText().toUpperCase()),
                    LedgerSettings.Initial.valueOf(settings.get("initial").asText().toUpperCase()),
                    settings.get("grace_ns").asLong(),
                    settings.get("unknown_after").asDouble(),
                    settings.get("hold_peak").asBoolean(),
                    standard.limit(),
                    standard.reservable(),
                    standard.hot());
        }

        private static Sample sample(JsonNode sample) {
            JsonNode guaranteed = sample.get("guaranteed_bps");
            return new Sample(
                    sample.get("resource").asInt(),
                    sample.get("from_ns").asLong(),
                    sample.get("until_ns").asLong(),
                    sample.get("load_bps").asLong(),
                    guaranteed == null || guaranteed.isNull() ? null : guaranteed.asLong());
        }

        private static Entry.Owner owner(JsonNode owner) {
            return new Entry.Owner(owner.get("kind").asText(), owner.get("id").asLong());
        }

        private static Entry entry(JsonNode entry) {
            List<Entry.Hop> hops = new ArrayList<>();
            entry.get("hops").forEach(hop ->
                    hops.add(new Entry.Hop(hop.get("resource").asInt(), hop.get("work").asDouble())));
            JsonNode starts = entry.get("starts_ns");
            return new Entry(
                    owner(entry.get("owner")),
                    hops,
                    demand(entry.get("demand")),
                    entry.get("sign").asText().equals("relieves"),
                    fade(entry.get("fade")),
                    starts == null || starts.isNull() ? null : starts.asLong());
        }

        private static Entry.Demand demand(JsonNode demand) {
            if (demand.has("elastic")) {
                JsonNode body = demand.get("elastic");
                Long cap = body.get("cap_bps").isNull() ? null : body.get("cap_bps").asLong();
                return new Entry.Demand.Elastic(body.get("bytes").asLong(), body.get("flows").asInt(), cap);
            }
            if (demand.has("stream")) {
                JsonNode body = demand.get("stream");
                return new Entry.Demand.Stream(body.get("mean_bps").asLong(), body.get("peak_bps").asLong());
            }
            JsonNode body = demand.get("envelope");
            return new Entry.Demand.Envelope(body.get("mean_bps").asLong(), body.get("rate_bps").asLong());
        }

        private static Entry.Fade fade(JsonNode fade) {
            if (fade.isObject()) {
                return new Entry.Fade.After(fade.get("after").get("ttl_ns").asLong());
            }
            return switch (fade.asText()) {
                case "at_next_window" -> new Entry.Fade.AtNextWindow();
                case "with_estimator" -> new Entry.Fade.WithEstimator();
                default -> new Entry.Fade.Held();
            };
        }
    }
}
