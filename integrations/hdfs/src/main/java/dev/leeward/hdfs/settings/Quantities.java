package dev.leeward.hdfs.settings;

import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Numbers with units, as in the files of Leeward: {@code 64MiB}, {@code 10Gbps}, {@code 200ms}. */
final class Quantities {

    private static final Pattern FORM = Pattern.compile("([0-9]{1,15}(?:\\.[0-9]{1,9})?)\\s*([A-Za-z]*)");
    private static final Map<String, Double> BYTES = Map.of(
            "B", 1.0, "kB", 1e3, "MB", 1e6, "GB", 1e9, "TB", 1e12,
            "KiB", 0x1p10, "MiB", 0x1p20, "GiB", 0x1p30, "TiB", 0x1p40);
    private static final Map<String, Double> RATES =
            Map.of("bps", 1.0, "kbps", 1e3, "Mbps", 1e6, "Gbps", 1e9, "Tbps", 1e12);
    private static final Map<String, Double> TIMES =
            Map.of("ms", 1.0, "s", 1e3, "m", 60e3, "min", 60e3, "h", 3600e3);

    private Quantities() {
    }

    /** Bytes of a text such as {@code 64MiB}. */
    static long bytes(Property property, String text) throws SettingsException {
        return whole(property, text, BYTES, "a size such as 64MiB");
    }

    /** Bits per second of a text such as {@code 10Gbps}. */
    static long rate(Property property, String text) throws SettingsException {
        return whole(property, text, RATES, "a rate such as 400Mbps");
    }

    /** Milliseconds of a text such as {@code 200ms}, within limits. */
    static long time(Property property, String text, long least, long most) throws SettingsException {
        String expected = "a time such as 500ms or 2s, from " + least + " ms to " + most + " ms";
        long time = whole(property, text, TIMES, expected);
        if (time < least || time > most) {
            throw new SettingsException(property.key(), text, expected);
        }
        return time;
    }

    /** A number within limits. */
    static double number(Property property, String text, double least, double most) throws SettingsException {
        Matcher matcher = FORM.matcher(text);
        double value = matcher.matches() && matcher.group(2).isEmpty()
                ? Double.parseDouble(matcher.group(1))
                : Double.NaN;
        if (!(value >= least && value <= most)) {
            throw new SettingsException(property.key(), text, "a number from " + plain(least) + " to " + plain(most));
        }
        return value;
    }

    /** A whole number within limits. */
    static int count(Property property, String text, int least, int most) throws SettingsException {
        double value = number(property, text, least, most);
        if (value != Math.rint(value)) {
            throw new SettingsException(property.key(), text, "a whole number from " + least + " to " + most);
        }
        return (int) value;
    }

    private static String plain(double value) {
        return value == Math.rint(value) ? Long.toString((long) value) : Double.toString(value);
    }

    private static long whole(Property property, String text, Map<String, Double> units, String expected)
            throws SettingsException {
        Matcher matcher = FORM.matcher(text);
        Double unit = matcher.matches() ? units.get(matcher.group(2)) : null;
        double value = unit == null ? Double.NaN : Double.parseDouble(matcher.group(1)) * unit;
        if (!(value <= 1e18)) {
            throw new SettingsException(property.key(), text, expected);
        }
        return Math.round(value);
    }
}
