package dev.leeward.hdfs.settings;

import static dev.leeward.hdfs.settings.Property.PREFIX;

import java.io.IOException;
import java.net.InetAddress;
import java.net.URI;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;

/** Reads {@link Settings} from the configuration of Hadoop. */
public final class SettingsReader {

    private final Configuration conf;

    private SettingsReader(Configuration conf) {
        this.conf = conf;
    }

    /**
     * The settings of a configuration.
     *
     * @throws SettingsException if a property is unknown or its value invalid; the message names it
     */
    public static Settings read(Configuration conf) throws SettingsException {
        return new SettingsReader(conf).settings();
    }

    /** True if invalid settings stop the NameNode. An invalid value of this setting counts as true. */
    public static boolean isStrict(Configuration conf) {
        String text = conf.getTrimmed(Property.STRICT.key(), Property.STRICT.standard());
        return !text.equalsIgnoreCase("false");
    }

    private Settings settings() throws SettingsException {
        rejectUnknown();
        flag(Property.STRICT);
        Settings.PolicyName policy = choice(Property.POLICY, Settings.PolicyName.values());
        Settings.Connection connection = connection();
        if (connection.controllers().isEmpty()
                && policy != Settings.PolicyName.DEFAULT && policy != Settings.PolicyName.REHDFS) {
            throw new SettingsException(Property.CONTROLLER.key()
                    + ": missing: policy " + policy.text() + " needs the address of a controller, such as "
                    + "http://leeward:7600");
        }
        return new Settings(
                policy,
                Quantities.count(Property.REMOTE_RACKS, text(Property.REMOTE_RACKS), 1, 2),
                rateOr(Property.DISK_WRITE_RATE, "none"),
                oneOf(Property.EXPECTED_SIZE, "full", "mean"),
                connection,
                report(),
                sinbad(),
                ccp(),
                rehdfs(),
                Quantities.number(Property.LEEWARD_HEADROOM, text(Property.LEEWARD_HEADROOM), 1, 1000),
                new Settings.Explain(
                        Quantities.number(Property.EXPLAIN_SAMPLE, text(Property.EXPLAIN_SAMPLE), 0, 1),
                        Quantities.count(Property.EXPLAIN_STORED, text(Property.EXPLAIN_STORED), 1, 4_096)));
    }

    private void rejectUnknown() throws SettingsException {
        List<String> known = Property.keys();
        for (Map.Entry<String, String> entry : conf.getPropsWithPrefix(PREFIX).entrySet()) {
            String key = PREFIX + entry.getKey();
            if (!known.contains(key)) {
                throw new SettingsException(key + ": unknown property; the nearest is " + nearest(key, known));
            }
        }
    }

    private static String nearest(String key, List<String> known) {
        return known.stream()
                .min((a, b) -> Integer.compare(distance(key, a), distance(key, b)))
                .orElseThrow();
    }

    /** Number of single changes from one text to another (Levenshtein). */
    private static int distance(String a, String b) {
        int[] row = new int[b.length() + 1];
        Arrays.setAll(row, i -> i);
        for (int i = 1; i <= a.length(); i++) {
            int diagonal = row[0];
            row[0] = i;
            for (int j = 1; j <= b.length(); j++) {
                int change = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
                diagonal = row[j];
                row[j] = Math.min(change, 1 + Math.min(row[j], row[j - 1]));
            }
        }
        return row[b.length()];
    }

    private Settings.Connection connection() throws SettingsException {
        List<URI> controllers = new ArrayList<>();
        for (String address : text(Property.CONTROLLER).split(",")) {
            if (!address.isBlank()) {
                controllers.add(controller(address.strip()));
            }
        }
        long interval = Quantities.time(Property.SNAPSHOT_INTERVAL, text(Property.SNAPSHOT_INTERVAL), 100, 60_000);
        long age = Quantities.time(Property.SNAPSHOT_MAX_AGE, text(Property.SNAPSHOT_MAX_AGE), 200, 3_600_000);
        // In a network without any change, a snapshot comes after the interval and the wait, which is as long.
        if (age <= 2 * interval) {
            throw new SettingsException(Property.SNAPSHOT_MAX_AGE.key(), text(Property.SNAPSHOT_MAX_AGE),
                    "more than twice the " + interval + " ms of " + Property.SNAPSHOT_INTERVAL.key());
        }
        String tokenFile = text(Property.TOKEN_FILE);
        String authority = text(Property.TLS_CA);
        return new Settings.Connection(
                List.copyOf(controllers),
                client(),
                tokenFile.isEmpty() ? token() : tokenIn(tokenFile),
                tokenFile.isEmpty() ? null : tokenFile,
                authority.isEmpty() ? null : readable(Property.TLS_CA, authority),
                interval,
                Quantities.time(Property.SNAPSHOT_DEADLINE, text(Property.SNAPSHOT_DEADLINE), 10, 60_000),
                age);
    }

    private static URI controller(String address) throws SettingsException {
        String expected = "the address of a controller, such as http://leeward:7600 or https://leeward:7600";
        try {
            URI uri = URI.create(address);
            boolean http = "http".equals(uri.getScheme()) || "https".equals(uri.getScheme());
            boolean bare = uri.getPath() == null || uri.getPath().isEmpty() || uri.getPath().equals("/");
            if (http && bare && uri.getHost() != null && uri.getUserInfo() == null && uri.getQuery() == null) {
                return URI.create(uri.getScheme() + "://" + uri.getRawAuthority());
            }
        } catch (IllegalArgumentException e) {
            // The message below says it better.
        }
        // A name and a password before the host are a secret.
        throw new SettingsException(Property.CONTROLLER.key(), address.replaceAll("//.*@", "//...@"), expected);
    }

    private String client() throws SettingsException {
        String client = text(Property.CLIENT);
        if (client.isEmpty()) {
            client = "hdfs-" + hostName();
        }
        if (client.length() > 128 || client.chars().anyMatch(Character::isISOControl)) {
            throw new SettingsException(Property.CLIENT.key(), client, "at most 128 printable characters");
        }
        return client;
    }

    private static String hostName() {
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException e) {
            return "namenode";
        }
    }

    /** Token from a credential provider or the configuration. */
    private String token() throws SettingsException {
        try {
            char[] token = conf.getPassword(Property.TOKEN.key());
            return token == null || token.length == 0 ? null : checkedToken(Property.TOKEN, new String(token).strip());
        } catch (IOException e) {
            throw new SettingsException(
                    Property.TOKEN.key() + ": the credential provider cannot be read: " + e.getMessage());
        }
    }

    /**
     * The token in a file.
     *
     * @throws SettingsException if the file cannot be read or has no token; the message never has the token
     */
    public static String tokenIn(String file) throws SettingsException {
        readable(Property.TOKEN_FILE, file);
        try {
            return checkedToken(Property.TOKEN_FILE, Files.readString(Path.of(file)).strip());
        } catch (IOException e) {
            throw new SettingsException(Property.TOKEN_FILE.key(), file, "a file of text: " + e.getMessage());
        }
    }

    private static String checkedToken(Property property, String token) throws SettingsException {
        if (token.isEmpty() || token.length() > 4096 || token.chars().anyMatch(c -> c <= ' ' || c > '~')) {
            // The value is a secret.
            throw new SettingsException(property.key() + ": expected a token of printable characters");
        }
        return token;
    }

    private static String readable(Property property, String file) throws SettingsException {
        try {
            if (Files.isReadable(Path.of(file)) && Files.isRegularFile(Path.of(file))) {
                return file;
            }
        } catch (IllegalArgumentException e) {
            // The message below says it better.
        }
        throw new SettingsException(property.key(), file, "a file that the NameNode can read");
    }

    private Settings.Report report() throws SettingsException {
        return new Settings.Report(
                flag(Property.REPORT),
                Quantities.count(Property.REPORT_QUEUE, text(Property.REPORT_QUEUE), 1, 1_000_000),
                Quantities.time(Property.REPORT_LASTS, text(Property.REPORT_LASTS), 1_000, 86_400_000));
    }

    private Settings.Sinbad sinbad() throws SettingsException {
        if (Quantities.time(Property.SINBAD_Q, text(Property.SINBAD_Q), 0, 60_000) != 0) {
            throw new SettingsException(Property.SINBAD_Q.key(), text(Property.SINBAD_Q),
                    "0s: HDFS cannot let a block wait; the caller of addBlock holds a handler of the NameNode");
        }
        return new Settings.Sinbad(
                Quantities.bytes(Property.SINBAD_THRESHOLD, text(Property.SINBAD_THRESHOLD)),
                choice(Property.SINBAD_HYSTERESIS, Settings.Hysteresis.values()),
                oneOf(Property.SINBAD_MISSING, "strict", "sinbad"),
                oneOf(Property.SINBAD_INITIAL, "first", "zero"),
                Quantities.number(Property.SINBAD_ALPHA, text(Property.SINBAD_ALPHA), 0.001, 1),
                Quantities.time(
                        Property.SINBAD_TELEMETRY_INTERVAL, text(Property.SINBAD_TELEMETRY_INTERVAL), 10, 3_600_000));
    }

    private Settings.Ccp ccp() throws SettingsException {
        return new Settings.Ccp(
                rateOr(Property.CCP_UPLINK_PER_TB, "mean"),
                Quantities.count(Property.CCP_SAMPLE, text(Property.CCP_SAMPLE), 1, 10_000),
                Quantities.number(Property.CCP_BALANCE, text(Property.CCP_BALANCE), 0, 1),
                oneOf(Property.CCP_WITHIN, "uniform", "free"));
    }

    private Settings.ReHdfs rehdfs() throws SettingsException {
        List<Integer> offsets = new ArrayList<>();
        for (String offset : text(Property.REHDFS_OFFSETS).split(",")) {
            offsets.add(Quantities.count(Property.REHDFS_OFFSETS, offset.strip(), 0, 1_000_000));
        }
        return new Settings.ReHdfs(
                List.copyOf(offsets),
                Quantities.time(Property.REHDFS_PERIOD, text(Property.REHDFS_PERIOD), 1, 86_400_000));
    }

    // ---- values ---------------------------------------------------------------------------------------------

    private String text(Property property) {
        return conf.getTrimmed(property.key(), property.standard());
    }

    private boolean flag(Property property) throws SettingsException {
        return oneOf(property, "false", "true");
    }

    /** True for the second word, false for the first. */
    private boolean oneOf(Property property, String first, String second) throws SettingsException {
        String text = text(property).toLowerCase(Locale.ROOT);
        if (text.equals(first) || text.equals(second)) {
            return text.equals(second);
        }
        throw new SettingsException(property.key(), text(property), first + " or " + second);
    }

    private <E extends Enum<E>> E choice(Property property, E[] values) throws SettingsException {
        List<String> words = new ArrayList<>();
        for (E value : values) {
            String word = value.name().toLowerCase(Locale.ROOT);
            if (word.equals(text(property).toLowerCase(Locale.ROOT))) {
                return value;
            }
            words.add(word);
        }
        throw new SettingsException(property.key(), text(property), "one of " + String.join(", ", words));
    }

    /** A positive rate in bit/s, or 0 for a word. */
    private long rateOr(Property property, String word) throws SettingsException {
        String text = text(property);
        if (text.equals(word)) {
            return 0;
        }
        long rate = Quantities.rate(property, text);
        if (rate == 0) {
            throw new SettingsException(property.key(), text, "a positive rate such as 400Mbps, or " + word);
        }
        return rate;
    }
}
