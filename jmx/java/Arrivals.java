package framestorm;

import com.blazemeter.jmeter.threads.DynamicThread;
import com.blazemeter.jmeter.threads.arrivals.ArrivalsThreadGroup;
import com.blazemeter.jmeter.threads.arrivals.ArrivalsThreadStarter;
import com.blazemeter.jmeter.threads.arrivals.FreeFormArrivalsThreadGroup;
import com.blazemeter.jmeter.threads.arrivals.FreeFormArrivalsThreadStarter;
import groovy.json.JsonOutput;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.apache.jmeter.engine.StandardJMeterEngine;
import org.apache.jmeter.threads.ListenerNotifier;
import org.apache.jmeter.threads.ThreadCountsAccessor;
import org.apache.jorphan.collections.ListedHashTree;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The Arrivals Thread Groups of jmeter-plugins, as Elements puts them in place of the plan's. A rate that is no whole
 * number and a ramp without steps are kept, for which the plug-in sends nothing; dropped arrivals are counted; a group
 * ends, which the plug-in's does not if a notification comes before a thread waits for it; and a Shutdown lets its threads
 * finish, as in Concurrency.
 */
final class Arrivals {
    private static final Logger LOG = LoggerFactory.getLogger(Arrivals.class);
    private static final long LOOK_EVERY_MS = 1000;

    /** An Arrivals Thread Group that starts 2.5 arrivals per second where these are asked for, not none. */
    public static class Group extends ArrivalsThreadGroup {
        private static final long serialVersionUID = 1L;

        @Override
        public double getTargetLevelAsDouble() {
            try {
                return Double.parseDouble(getTargetLevel().trim());
            } catch (NumberFormatException error) {
                return super.getTargetLevelAsDouble();
            }
        }

        /** Wait for the first arrival, or for the end of all: neither can be told before this thread waits. */
        @Override
        public synchronized void start(int number, ListenerNotifier notifier, ListedHashTree tree,
                StandardJMeterEngine engine) {
            super.start(number, notifier, tree, engine);
        }

        @Override
        protected Thread getThreadStarter(int number, ListenerNotifier notifier, ListedHashTree tree,
                StandardJMeterEngine engine) {
            return new Starter(number, notifier, tree, engine, this);
        }

        @Override
        public boolean movedToPool(DynamicThread thread) {
            threads.remove(thread);
            return isReleased(thread, poolThreads, () -> running);
        }

        @Override
        public void stop() {
            running = false;
            Concurrency.end(threadStarter, threads);
        }

        @Override
        public void tellThreadsToStop() {
            super.stop();
        }

        @Override
        public void waitThreadsStopped() {
            super.waitThreadsStopped();
            while (!threads.isEmpty()) {
                joinThreadFrom(threads);
            }
        }
    }

    /** A Free-Form Arrivals Thread Group. */
    public static final class FreeFormGroup extends FreeFormArrivalsThreadGroup {
        private static final long serialVersionUID = 1L;

        @Override
        public synchronized void start(int number, ListenerNotifier notifier, ListedHashTree tree,
                StandardJMeterEngine engine) {
            super.start(number, notifier, tree, engine);
        }

        @Override
        protected Thread getThreadStarter(int number, ListenerNotifier notifier, ListedHashTree tree,
                StandardJMeterEngine engine) {
            return new FreeFormStarter(number, notifier, tree, engine, this);
        }

        @Override
        public boolean movedToPool(DynamicThread thread) {
            threads.remove(thread);
            return isReleased(thread, poolThreads, () -> running);
        }

        @Override
        public void stop() {
            running = false;
            Concurrency.end(threadStarter, threads);
        }

        @Override
        public void tellThreadsToStop() {
            super.stop();
        }

        @Override
        public void waitThreadsStopped() {
            super.waitThreadsStopped();
            while (!threads.isEmpty()) {
                joinThreadFrom(threads);
            }
        }
    }

    /** Its arrivals: in a ramp without steps, the plug-in's rate stays 0 until the ramp is over, as nothing has arrived. */
    private static final class Starter extends ArrivalsThreadStarter {
        private final ArrivalsThreadGroup group;

        Starter(int number, ListenerNotifier notifier, ListedHashTree tree, StandardJMeterEngine engine,
                ArrivalsThreadGroup group) {
            super(number, notifier, tree, engine, group);
            this.group = group;
        }

        @Override
        protected double getCurrentRate() {
            double rampS = group.getRampUpSeconds();
            double most = group.getTargetLevelFactored();
            if (rampS > 0 && most > 0 && group.getStepsAsLong() <= 0 && rollingTime / 1000.0 - startTime < rampS) {
                // Number k is due after sqrt(2 k ramp / most).
                double untilNext = Math.sqrt(scheduledCount + 1) - Math.sqrt(scheduledCount);
                return Math.min(most, 1 / (untilNext * Math.sqrt(2 * rampS / most)));
            }
            return super.getCurrentRate();
        }

        @Override
        protected void supplyActiveThreads() throws InterruptedException {
            tell(group, supply(group, this, this::addActiveThread), scheduledCount);
        }
    }

    private static final class FreeFormStarter extends FreeFormArrivalsThreadStarter {
        private final ArrivalsThreadGroup group;

        FreeFormStarter(int number, ListenerNotifier notifier, ListedHashTree tree, StandardJMeterEngine engine,
                FreeFormArrivalsThreadGroup group) {
            super(number, notifier, tree, engine, group);
            this.group = group;
        }

        @Override
        protected void supplyActiveThreads() throws InterruptedException {
            tell(group, supply(group, this, this::addActiveThread), scheduledCount);
        }
    }

    /** Give each arrival a thread until the schedule is over; returns how many were dropped, as no thread was left. */
    private static long supply(ArrivalsThreadGroup group, ArrivalsThreadStarter starter, Runnable addThread)
            throws InterruptedException {
        long dropped = 0;
        try {
            while (starter.needMoreArrivals()) {
                if (!group.releasedPoolThread()) {
                    if (group.canCreateMoreThreads()) {
                        addThread.run();
                    } else {
                        dropped++;
                    }
                }
            }
        } finally {
            synchronized (group) {
                group.notifyAll(); // a schedule may be over without an arrival
            }
        }
        return dropped;
    }

    /** As plan/Pacer.java says it; the plug-in keeps to itself what it drops. */
    private static void tell(ArrivalsThreadGroup group, long dropped, long due) {
        LOG.info("{\"type\":\"arrivals\",\"due\":{},\"dropped\":{},\"group\":{}}", due, dropped,
            JsonOutput.toJson(group.getName()));
    }

    /** Have a thread wait in the pool of its group for an arrival; returns whether there is more to do. */
    private static boolean isReleased(DynamicThread thread, Set<DynamicThread> pool, BooleanSupplier running) {
        if (thread.isStopping()) {
            return false;
        }
        ThreadCountsAccessor.decrNumberOfThreads();
        synchronized (thread) {
            pool.add(thread);
            try {
                while (running.getAsBoolean() && pool.contains(thread)) {
                    thread.wait(LOOK_EVERY_MS);
                }
            } catch (InterruptedException stopped) { // by the end of the group
                LOG.debug("{} waits no longer", thread);
            }
        }
        ThreadCountsAccessor.incrNumberOfThreads();
        return running.getAsBoolean();
    }

    private Arrivals() {
    }
}
