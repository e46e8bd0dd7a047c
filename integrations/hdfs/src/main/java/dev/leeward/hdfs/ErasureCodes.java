package dev.leeward.hdfs;

import dev.leeward.hdfs.placements.Coding;
import java.util.Set;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeDescriptor;
import org.apache.hadoop.hdfs.server.namenode.ErasureCodingPolicyManager;
import org.apache.hadoop.net.Node;

/**
 * The erasure codes of the NameNode. HDFS does not pass a stripe's code to its placement policy, so the number of
 * chunks identifies it.
 */
final class ErasureCodes {

    private ErasureCodes() {
    }

    /** The enabled code with a number of chunks; null if there is none, or several. */
    static Coding withChunks(int chunks) {
        // Null in a process without a NameNode.
        ErasureCodingPolicy[] enabled = ErasureCodingPolicyManager.getInstance().getEnabledPolicies();
        ErasureCodingPolicy only = null;
        for (int i = 0; enabled != null && i < enabled.length; i++) {
            ErasureCodingPolicy policy = enabled[i];
            if (policy.getNumDataUnits() + policy.getNumParityUnits() != chunks) {
                continue;
            }
            if (only != null && only.getNumDataUnits() != policy.getNumDataUnits()) {
                return null;
            }
            only = policy;
        }
        return only == null ? null : new Coding(only.getNumDataUnits(), only.getNumParityUnits());
    }

    /**
     * True if a DataNode leaves. Of a damaged stripe, HDFS then copies the chunk of this DataNode, and rebuilds none.
     *
     * @param holders DataNodes with chunks of the stripe, or null
     */
    static boolean anyLeaves(Set<Node> holders) {
        if (holders == null) {
            return false;
        }
        for (Node holder : holders) {
            if (holder instanceof DatanodeDescriptor node
                    && (node.isDecommissionInProgress() || node.isEnteringMaintenance())) {
                return true;
            }
        }
        return false;
    }
}
