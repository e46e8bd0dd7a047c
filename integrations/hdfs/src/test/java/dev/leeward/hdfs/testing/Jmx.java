package dev.leeward.hdfs.testing;

import dev.leeward.hdfs.LeewardMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.List;
import javax.management.JMException;
import javax.management.JMX;
import javax.management.MBeanAttributeInfo;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;

/** The bean of this process, as an operator reads it. */
public final class Jmx {

    private Jmx() {
    }

    /** The bean of the policy for replicated blocks. */
    public static LeewardMXBean bean() {
        return bean("LeewardInfo");
    }

    /** True if the bean of the policy for replicated blocks exists. */
    public static boolean hasBean() {
        return ManagementFactory.getPlatformMBeanServer().isRegistered(name("LeewardInfo"));
    }

    /** True if decisions read a snapshot. */
    public static boolean hasSnapshot(String bean) {
        return bean(bean).getSnapshotEpoch() >= 0;
    }

    /** A metric of the source {@code Leeward}, as the web page of the NameNode shows it. */
    public static long metric(String name) throws JMException {
        Object value = ManagementFactory.getPlatformMBeanServer().getAttribute(name("Leeward"), name);
        return ((Number) value).longValue();
    }

    /** An attribute of the bean of the policy for replicated blocks, by its name. */
    public static Object attribute(String name) throws JMException {
        return ManagementFactory.getPlatformMBeanServer().getAttribute(name("LeewardInfo"), name);
    }

    /** Names of all attributes that a collector of the whole bean reads. */
    public static List<String> attributes() throws JMException {
        return Arrays.stream(
                ManagementFactory.getPlatformMBeanServer().getMBeanInfo(name("LeewardInfo")).getAttributes())
                .map(MBeanAttributeInfo::getName).toList();
    }

    /** A bean by its name. */
    public static LeewardMXBean bean(String name) {
        return JMX.newMXBeanProxy(ManagementFactory.getPlatformMBeanServer(), name(name), LeewardMXBean.class);
    }

    private static ObjectName name(String name) {
        try {
            return new ObjectName("Hadoop:service=NameNode,name=" + name);
        } catch (MalformedObjectNameException e) {
            throw new AssertionError(e);
        }
    }
}
