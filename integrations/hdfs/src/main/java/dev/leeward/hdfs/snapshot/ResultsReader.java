package dev.leeward.hdfs.snapshot;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonStreamContext;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.stream.IntStream;

/** Reads an answer of {@code POST /v1/commitments/batch}: the status of each item. Its decisions are passed over. */
final class ResultsReader {

    /** Level of the fields of a result: the answer is an object, with a list of results, which are objects. */
    private static final int RESULT = 3;
    /** Largest level of fields. The parser remembers each open level. */
    private static final int MOST_LEVELS = 32;
    /** Number of digits of a status. */
    private static final int DIGITS = 3;

    private static final JsonFactory JSON = new JsonFactory();

    private ResultsReader() {}

    /**
     * Statuses of the items, in their order; 0 for an item without a status.
     *
     * @throws IOException if the answer is not JSON
     */
    static int[] statuses(byte[] body) throws IOException {
        IntStream.Builder statuses = IntStream.builder();
        int level = 0;
        int status = 0;
        try (JsonParser parser = JSON.createParser(body)) {
            for (JsonToken token = parser.nextToken(); token != null; token = parser.nextToken()) {
                level += token.isStructStart() ? 1 : 0;
                if (level > MOST_LEVELS) {
                    throw new IOException("more than " + MOST_LEVELS + " levels in one another");
                }
                if (level == RESULT && isIn(parser.getParsingContext())) {
                    boolean isStatus = token == JsonToken.VALUE_NUMBER_INT && "status".equals(parser.currentName());
                    status = isStatus && parser.getTextLength() == DIGITS ? parser.getIntValue() : status;
                }
                if (token.isStructEnd() && level-- == RESULT && isList(parser.getParsingContext())) {
                    statuses.add(status);
                    status = 0;
                }
            }
        }
        return statuses.build().toArray();
    }

    /** True for the fields of a result. */
    private static boolean isIn(JsonStreamContext context) {
        return context.inObject() && isList(context.getParent());
    }

    /** True for the list of results. */
    private static boolean isList(JsonStreamContext context) {
        return context.inArray() && "results".equals(context.getParent().getCurrentName());
    }
}
