package framestorm;

import java.util.concurrent.TimeUnit;
import org.apache.jmeter.engine.StandardJMeterEngine;
import org.apache.jmeter.threads.JMeterThread;
import org.apache.jmeter.threads.ListenerNotifier;
import org.apache.jmeter.util.JMeterUtils;
import org.apache.jorphan.collections.ListedHashTree;

/**
 * The Concurrency Thread Group of jmeter-plugins with a number of users that changes as a load in words asks for, as
 * Elements puts it in place of the plan's. A user that is too many ends once it is done with what it does.
 */
public final class Users extends Concurrency {
    private static final long serialVersionUID = 1L;
    private static final long LOOK_EVERY_MS = 10;

    private final Load load = asked();
    private final Object ended = new Object();
    private long startNs;
    private int leaving; // users that were told to end and are still among the threads
    private volatile boolean isOver;

    /** Whether the run has a load of users in words. */
    static boolean isAsked() {
        return JMeterUtils.getProperty(Load.PROPERTY) != null && asked().isOfUsers;
    }

    private static Load asked() {
        return new Load(JMeterUtils.getProperty(Load.PROPERTY));
    }

    private int own(double users) {
        // Of n JMeters, each has every n-th user.
        return (int) Math.max(0, Math.floorDiv(Math.round(users) - load.first + load.step - 1, load.step));
    }

    @Override
    protected Thread getThreadStarter(int number, ListenerNotifier notifier, ListedHashTree tree,
            StandardJMeterEngine engine) {
        startNs = System.nanoTime();
        return super.getThreadStarter(number, notifier, tree, engine);
    }

    @Override
    public double getTargetLevelAsDouble() {
        return startNs == 0 ? own(load.most()) : own(load.at((System.nanoTime() - startNs) / 1e9));
    }

    /** Start nobody any more, whatever the load still asks for. */
    public void end() {
        isOver = true;
    }

    // Asked once, whether there is anything to do.
    @Override
    public int getTargetLevelAsInt() {
        return own(load.most());
    }

    @Override
    public int getNumThreads() {
        return own(load.most());
    }

    @Override
    public long getRampUpSeconds() {
        return 0;
    }

    // Asked at each look.
    @Override
    public long getHoldSeconds() {
        return isOver ? 0 : (long) Math.ceil(load.lengthS());
    }

    @Override
    public long getStepsAsLong() {
        return 0;
    }

    /** Called where the group would start users: until the next look, or until one has ended. */
    @Override
    public void waitThreadStopped() {
        synchronized (ended) {
            try {
                TimeUnit.MILLISECONDS.timedWait(ended, LOOK_EVERY_MS);
            } catch (InterruptedException stopped) { // the test ends
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Whether a user that asks has to end; of several that ask at once, no more than are too many. */
    @Override
    public synchronized boolean tooMuchConcurrency() {
        boolean isOne = getConcurrency() - leaving > getTargetLevelAsDouble();
        if (isOne) {
            leaving++;
        }
        return isOne;
    }

    @Override
    public void threadFinished(JMeterThread thread) {
        synchronized (this) {
            super.threadFinished(thread);
            leaving = Math.max(0, leaving - 1);
        }
        synchronized (ended) {
            ended.notifyAll();
        }
    }
}
