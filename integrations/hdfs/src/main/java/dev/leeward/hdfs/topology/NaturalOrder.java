package dev.leeward.hdfs.topology;

import java.util.Comparator;

/** Order of names in which numbers count as numbers: {@code /r2} is before {@code /r10}. */
final class NaturalOrder implements Comparator<String> {

    @Override
    public int compare(String a, String b) {
        int i = 0;
        int j = 0;
        while (i < a.length() && j < b.length()) {
            int endA = numberEnd(a, i);
            int endB = numberEnd(b, j);
            int order;
            if (endA > i && endB > j) {
                order = compareNumbers(a, i, endA, b, j, endB);
                i = endA;
                j = endB;
            } else {
                order = Character.compare(a.charAt(i++), b.charAt(j++));
            }
            if (order != 0) {
                return order;
            }
        }
        int rest = Integer.compare(a.length() - i, b.length() - j);
        return rest != 0 ? rest : a.compareTo(b);
    }

    private static int numberEnd(String text, int from) {
        int end = from;
        while (end < text.length() && text.charAt(end) >= '0' && text.charAt(end) <= '9') {
            end++;
        }
        return end;
    }

    /** Order of two numbers of any length: that of their digits without leading zeros. */
    private static int compareNumbers(String a, int fromA, int endA, String b, int fromB, int endB) {
        int i = digitsStart(a, fromA, endA);
        int j = digitsStart(b, fromB, endB);
        int order = Integer.compare(endA - i, endB - j);
        while (order == 0 && i < endA) {
            order = Character.compare(a.charAt(i++), b.charAt(j++));
        }
        return order;
    }

    private static int digitsStart(String text, int from, int end) {
        int start = from;
        while (start < end && text.charAt(start) == '0') {
            start++;
        }
        return start;
    }
}
