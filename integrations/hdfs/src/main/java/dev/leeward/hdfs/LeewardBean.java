package dev.leeward.hdfs;

import javax.management.AttributeNotFoundException;
import javax.management.MBeanException;
import javax.management.ReflectionException;
import javax.management.StandardMBean;

/**
 * The bean, with the operations as attributes too: {@code Explain,WRITER,BYTES,COPIES} answers as
 * {@link LeewardMXBean#explain}, and {@code Decisions,TEXT} as {@link LeewardMXBean#findDecisions}. The page
 * {@code /jmx} of the NameNode reads any attribute by its name, and calls no operation. The list of attributes does not
 * have these, so collectors that read all of the page do not read the stored decisions.
 */
final class LeewardBean extends StandardMBean {

    private static final String EXPLAIN = "Explain";
    private static final String DECISIONS = "Decisions,";
    private static final int PARTS = 4;
    /** Largest number of copies: {@code dfs.replication.max} of HDFS by default. */
    private static final int MOST_COPIES = 512;

    private final LeewardMXBean state;

    LeewardBean(LeewardMXBean state) {
        super(state, LeewardMXBean.class, true);
        this.state = state;
    }

    @Override
    public Object getAttribute(String attribute)
            throws AttributeNotFoundException, MBeanException, ReflectionException {
        if (attribute.startsWith(DECISIONS)) {
            return state.findDecisions(attribute.substring(DECISIONS.length())).toArray(new String[0]);
        }
        String[] parts = attribute.split(",", -1);
        if (!parts[0].equals(EXPLAIN)) {
            return super.getAttribute(attribute);
        }
        try {
            long bytes = parts.length == PARTS ? Long.parseLong(parts[2]) : -1;
            int copies = parts.length == PARTS ? Integer.parseInt(parts[3]) : -1;
            if (bytes >= 0 && copies > 0 && copies <= MOST_COPIES) {
                return state.explain(parts[1], bytes, copies);
            }
        } catch (NumberFormatException e) {
            // The message below says it better.
        }
        throw new AttributeNotFoundException(
                attribute + ": expected Explain,WRITER,BYTES,COPIES with at most " + MOST_COPIES + " copies");
    }
}
