package dev.leeward.hdfs.settings;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class SettingsTest {

    private static Configuration conf(String... pairs) {
        Configuration conf = new Configuration(false);
        conf.set("dfs.leeward.controller", "http://leeward:7600");
        for (int i = 0; i < pairs.length; i += 2) {
            conf.set("dfs.leeward." + pairs[i], pairs[i + 1]);
        }
        return conf;
    }

    private static String error(Configuration conf) {
        return assertThrows(SettingsException.class, () -> SettingsReader.read(conf)).getMessage();
    }

    @Test
    void anAddressIsEnough() throws Exception {
        Settings settings = SettingsReader.read(conf());
        assertEquals(Settings.PolicyName.LEEWARD, settings.policy());
        assertEquals("http://leeward:7600", settings.connection().controllers().get(0).toString());
        assertEquals(1000, settings.connection().intervalMs());
        assertEquals(200, settings.connection().deadlineMs());
        assertNull(settings.connection().token());
        assertEquals(64 << 20, settings.sinbad().threshold());
        assertEquals(List.of(1), settings.rehdfs().offsets());
    }

    @ParameterizedTest
    @EnumSource(Property.class)
    void everyPropertyAcceptsItsDefault(Property property) throws Exception {
        Configuration conf = conf();
        if (property != Property.CONTROLLER) {
            conf.set(property.key(), property.standard());
        }
        SettingsReader.read(conf);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "policy | fastest | dfs.leeward.policy: `fastest`: expected one of sinbad, ccp, rehdfs, leeward, default",
        "remote-racks | 3 | dfs.leeward.remote-racks: `3`",
        "remote-racks | 1.5 | dfs.leeward.remote-racks: `1.5`",
        "strict | maybe | dfs.leeward.strict: `maybe`: expected false or true",
        "controller | leeward:7600 | dfs.leeward.controller: `leeward:7600`",
        "controller | ftp://leeward | dfs.leeward.controller: `ftp://leeward`",
        "controller | http://leeward/x | dfs.leeward.controller: `http://leeward/x`",
        "controller | http://me:secret@leeward | dfs.leeward.controller",
        "controller | http://[ | dfs.leeward.controller",
        "snapshot.interval | 1ms | dfs.leeward.snapshot.interval: `1ms`",
        "snapshot.interval | soon | dfs.leeward.snapshot.interval: `soon`",
        "snapshot.interval | -1s | dfs.leeward.snapshot.interval: `-1s`",
        "snapshot.interval | 10s | dfs.leeward.snapshot.max-age",
        "snapshot.interval | 2500ms | dfs.leeward.snapshot.max-age",
        "expected-size | 1MiB | dfs.leeward.expected-size: `1MiB`",
        "snapshot.deadline | 1e9s | dfs.leeward.snapshot.deadline: `1e9s`",
        "disk-write-rate | 400 | dfs.leeward.disk-write-rate: `400`",
        "disk-write-rate | 0Mbps | dfs.leeward.disk-write-rate: `0Mbps`",
        "disk-write-rate | 400MB | dfs.leeward.disk-write-rate: `400MB`",
        "sinbad.threshold | 64 | dfs.leeward.sinbad.threshold: `64`",
        "sinbad.hysteresis | on | dfs.leeward.sinbad.hysteresis: `on`: expected one of paper, rate, off",
        "sinbad.missing | full | dfs.leeward.sinbad.missing: `full`: expected strict or sinbad",
        "sinbad.alpha | NaN | dfs.leeward.sinbad.alpha: `NaN`",
        "sinbad.alpha | 0 | dfs.leeward.sinbad.alpha: `0`",
        "sinbad.q | 1s | dfs.leeward.sinbad.q: `1s`: expected 0s: HDFS cannot let a block wait",
        "ccp.sample | 0 | dfs.leeward.ccp.sample: `0`",
        "ccp.within | any | dfs.leeward.ccp.within: `any`: expected uniform or free",
        "rehdfs.offsets | 1;2 | dfs.leeward.rehdfs.offsets: `1;2`",
        "rehdfs.period | 0s | dfs.leeward.rehdfs.period: `0s`",
        "leeward.headroom | 0.5 | dfs.leeward.leeward.headroom: `0.5`",
        "explain.sample | 2 | dfs.leeward.explain.sample: `2`",
        "explain.stored | 4097 | dfs.leeward.explain.stored: `4097`: expected a number from 1 to 4096",
        "report | yes | dfs.leeward.report: `yes`: expected false or true",
        "token.file | /nowhere/token | dfs.leeward.token.file: `/nowhere/token`",
        "tls.ca | /nowhere/ca.pem | dfs.leeward.tls.ca: `/nowhere/ca.pem`"})
    void anInvalidValueIsRejectedWithItsProperty(String property, String value, String message) {
        String error = error(conf(property, value));
        assertTrue(error.startsWith(message), error);
    }

    @Test
    void anUnknownPropertyIsRejectedWithTheNearestOne() {
        assertEquals("dfs.leeward.polcy: unknown property; the nearest is dfs.leeward.policy",
                error(conf("polcy", "sinbad")));
    }

    @Test
    void policiesThatReadTheNetworkNeedAController() throws Exception {
        Configuration conf = new Configuration(false);
        assertTrue(error(conf).startsWith("dfs.leeward.controller: missing"), error(conf));
        conf.set("dfs.leeward.policy", "rehdfs");
        assertTrue(SettingsReader.read(conf).connection().controllers().isEmpty());
    }

    @Test
    void aTokenComesFromAFileOrTheConfigurationAndNeverShows(@TempDir Path folder) throws Exception {
        Path file = folder.resolve("token");
        Files.writeString(file, "lw_secret\n");
        Settings settings = SettingsReader.read(conf("token.file", file.toString()));
        assertEquals("lw_secret", settings.connection().token());
        assertFalse(settings.toString().contains("lw_secret"), settings.toString());
        assertEquals("lw_other", SettingsReader.read(conf("token", "lw_other")).connection().token());
        String error = error(conf("token", "lw secret\u0001"));
        assertFalse(error.contains("secret"), error);
    }

    @Test
    void aPasswordInAnAddressNeverShows() {
        for (String address : List.of("http://me:secret@leeward:7600", "http://me:se/secret@leeward", "//secret@[")) {
            String error = error(conf("controller", address));
            assertFalse(error.contains("secret"), error);
            assertTrue(error.startsWith("dfs.leeward.controller: `"), error);
        }
    }

    @Test
    void anInvalidValueOfStrictCountsAsStrict() {
        assertFalse(SettingsReader.isStrict(conf()));
        assertTrue(SettingsReader.isStrict(conf("strict", "true")));
        assertTrue(SettingsReader.isStrict(conf("strict", "ture")));
    }

    @Test
    void quantitiesHaveUnits() throws Exception {
        Settings settings = SettingsReader.read(conf(
                "disk-write-rate", "0.4Gbps", "sinbad.threshold", "1.5GiB", "snapshot.interval", "500 ms",
                "rehdfs.offsets", "1, 2,5", "ccp.uplink-per-tb", "100Mbps", "report.lasts", "2min"));
        assertEquals(400_000_000L, settings.diskWriteRate());
        assertEquals(3L << 29, settings.sinbad().threshold());
        assertEquals(500, settings.connection().intervalMs());
        assertEquals(List.of(1, 2, 5), settings.rehdfs().offsets());
        assertEquals(100_000_000L, settings.ccp().uplinkPerTb());
        assertEquals(120_000, settings.report().lastsMs());
    }
}
