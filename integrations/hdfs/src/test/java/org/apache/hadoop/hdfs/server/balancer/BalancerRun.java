package org.apache.hadoop.hdfs.server.balancer;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.util.ToolRunner;

/** Runs the balancer, whose command is visible in this package only. */
public final class BalancerRun {

    private BalancerRun() {
    }

    /** Exit status of a run with arguments. */
    public static int run(Configuration conf, String... arguments) throws Exception {
        return ToolRunner.run(conf, new Balancer.Cli(), arguments);
    }
}
