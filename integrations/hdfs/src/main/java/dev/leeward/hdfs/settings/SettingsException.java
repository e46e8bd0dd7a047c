package dev.leeward.hdfs.settings;

/** An unknown property, or a value out of its range. The message begins with the name of the property. */
public final class SettingsException extends Exception {

    /** An error of one property. */
    public SettingsException(String property, String value, String expected) {
        super(property + ": `" + shortened(value) + "`: expected " + expected);
    }

    /** An error without a value. */
    SettingsException(String message) {
        super(message);
    }

    private static String shortened(String value) {
        return value.length() > 80 ? value.substring(0, 80) + "..." : value;
    }
}
