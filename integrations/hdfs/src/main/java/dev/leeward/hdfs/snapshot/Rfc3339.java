package dev.leeward.hdfs.snapshot;

import java.time.DateTimeException;
import java.time.LocalDate;

/** Times in the form of RFC 3339. A snapshot has one for each link, so the parser is plain and allocates little. */
final class Rfc3339 {

    private static final long SECOND = 1_000_000_000L;

    private Rfc3339() {
    }

    /**
     * Nanoseconds since 1970 of a time such as {@code 2026-01-31T12:00:00.5Z}.
     *
     * @throws InvalidSnapshotException if the text is no such time between 1970 and 2261
     */
    static long parse(String text) throws InvalidSnapshotException {
        int length = text.length();
        if (length < 20 || length > 40 || text.charAt(4) != '-' || text.charAt(7) != '-' || text.charAt(13) != ':'
                || text.charAt(16) != ':') {
            throw invalid(text);
        }
        int year = digits(text, 0, 4);
        long seconds = day(text, year) * 86_400L
                + bounded(text, 11, 23) * 3_600L
                + bounded(text, 14, 59) * 60L
                + bounded(text, 17, 60);
        int at = 19;
        long fraction = 0;
        if (text.charAt(at) == '.') {
            long unit = SECOND / 10;
            for (at++; at < length && text.charAt(at) >= '0' && text.charAt(at) <= '9'; at++) {
                fraction += (text.charAt(at) - '0') * unit;
                unit /= 10;
            }
        }
        long nanoseconds = (seconds - offset(text, at)) * SECOND + fraction;
        if (year < 1970 || year > 2261 || nanoseconds < 0) {
            throw invalid(text);
        }
        return nanoseconds;
    }

    private static long day(String text, int year) throws InvalidSnapshotException {
        try {
            return LocalDate.of(year, digits(text, 5, 7), digits(text, 8, 10)).toEpochDay();
        } catch (DateTimeException e) {
            throw invalid(text);
        }
    }

    /** Seconds by which local time is ahead of UTC. */
    private static long offset(String text, int at) throws InvalidSnapshotException {
        if (at == text.length() - 1 && text.charAt(at) == 'Z') {
            return 0;
        }
        boolean signed = at == text.length() - 6 && (text.charAt(at) == '+' || text.charAt(at) == '-');
        if (!signed || text.charAt(at + 3) != ':') {
            throw invalid(text);
        }
        long ahead = bounded(text, at + 1, 23) * 3_600L + bounded(text, at + 4, 59) * 60L;
        return text.charAt(at) == '-' ? -ahead : ahead;
    }

    private static int bounded(String text, int from, int most) throws InvalidSnapshotException {
        int value = digits(text, from, from + 2);
        if (value > most) {
            throw invalid(text);
        }
        return value;
    }

    private static int digits(String text, int from, int until) throws InvalidSnapshotException {
        int value = 0;
        for (int at = from; at < until; at++) {
            char digit = text.charAt(at);
            if (digit < '0' || digit > '9') {
                throw invalid(text);
            }
            value = 10 * value + (digit - '0');
        }
        return value;
    }

    private static InvalidSnapshotException invalid(String text) {
        String start = text.length() > 40 ? text.substring(0, 40) + "..." : text;
        return new InvalidSnapshotException("`" + start + "`: expected a time such as 2026-01-31T12:00:00Z");
    }
}
