package dev.leeward.hdfs.snapshot;

/** A request to the controller failed. */
public final class ControllerException extends Exception {

    private final transient Failure failure;

    ControllerException(Failure failure, String message) {
        super(message);
        this.failure = failure;
    }

    /** Reason of the failure. */
    public Failure failure() {
        return failure;
    }
}
