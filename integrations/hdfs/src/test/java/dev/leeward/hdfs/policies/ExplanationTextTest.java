package dev.leeward.hdfs.policies;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ExplanationTextTest {

    @ParameterizedTest
    @CsvSource({
        "0, 0 bps", "999, 999 bps", "1250, 1.25 kbps", "4e8, 400 Mbps", "2.5e10, 25 Gbps", "3e15, 3000 Tbps",
        "1e18, without limit", "NaN, unknown"})
    void aRateHasAUnit(double bps, String text) {
        assertEquals(text, Explanation.rate(bps));
    }
}
