package dev.leeward.hdfs.snapshot;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class ResultsReaderTest {

    private static int[] read(String json) throws IOException {
        return ResultsReader.statuses(json.getBytes(StandardCharsets.UTF_8));
    }

    static Stream<Arguments> answers() {
        return Stream.of(
                Arguments.of("{\"results\": []}", new int[] {}),
                Arguments.of(
                        "{\"results\": [{\"status\": 201, \"decision\": {\"status\": 7}, \"problem\": null},"
                                + " {\"decision\": null, \"problem\": {\"status\": 8}, \"status\": 409}]}",
                        new int[] {201, 409}),
                Arguments.of("{\"results\": [{}, {\"status\": \"201\"}, {\"status\": 200}]}", new int[] {0, 0, 200}),
                Arguments.of("{\"results\": [{\"status\": 20100000000000000000000}]}", new int[] {0}),
                Arguments.of("{\"others\": [{\"status\": 201}], \"results\": 1}", new int[] {}),
                Arguments.of("{\"a\": {\"results\": [{\"status\": 201}]}}", new int[] {}),
                Arguments.of("[[{\"status\": 201}]]", new int[] {}),
                Arguments.of("", new int[] {}));
    }

    @ParameterizedTest
    @MethodSource("answers")
    void statusesAreThoseOfTheResultsAndOfNothingElse(String json, int[] statuses) throws IOException {
        assertArrayEquals(statuses, read(json));
    }

    @ParameterizedTest
    @ValueSource(strings = {"<html>a proxy</html>", "{\"results\": [{\"status\": 201}", "{\"results\": [}]", "\u0000"})
    void anotherAnswerIsAnError(String text) {
        assertThrows(IOException.class, () -> read(text));
    }

    @Test
    void manyLevelsAreAnError() {
        assertThrows(IOException.class, () -> read("[".repeat(1 << 20)));
    }

    @Test
    void noChangeOfAnAnswerEscapesAsAnotherException() {
        byte[] answer = "{\"results\": [{\"status\": 201, \"decision\": {\"id\": \"7\"}}, {\"status\": 409}]}"
                .getBytes(StandardCharsets.UTF_8);
        Random random = new Random(7);
        for (int run = 0; run < 20_000; run++) {
            byte[] changed = answer.clone();
            for (int change = 0; change <= run % 4; change++) {
                changed[random.nextInt(changed.length)] = (byte) "[]{},:\"019-n".charAt(random.nextInt(12));
            }
            try {
                ResultsReader.statuses(changed);
            } catch (IOException e) {
                continue;
            }
        }
    }
}
