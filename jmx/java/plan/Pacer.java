package framestorm.plan;

import framestorm.DueTimes;
import framestorm.Load;
import framestorm.Running;
import java.io.File;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.jmeter.samplers.SampleResult;
import org.apache.jmeter.threads.JMeterContext;
import org.apache.jmeter.threads.JMeterThread;
import org.apache.jmeter.threads.JMeterVariables;
import org.apache.jmeter.util.JMeterUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Has threads wait for the next arrival: requests start at a rate, whether the last are answered or not. One that is due
 * while every thread waits for an answer is dropped. Notes when each was due, for a thread may start late.
 *
 * Not by jmeter-plugins' Arrivals Thread Group (casutg 2.10): a thread that goes back to its pool just as an arrival calls
 * it does not hear the call and waits for ever. At 500/s that is every thread within seconds, and the run never ends.
 */
public final class Pacer {
    private static final Logger LOG = LoggerFactory.getLogger(Pacer.class);
    private static final PerTest<Pacer> OF_TEST = new PerTest<>();
    // So many threads wait until an arrival of their own is due. A thread that is done with its request is mostly the next of
    // them, so nobody need wake it. The others wait unused, which keeps connections few.
    private static final int AHEAD = 2;
    private static final long LOOK_EVERY_MS = 100;
    private static final long SAY_EVERY_NS = 1_000_000_000;
    private static final long CLOCK_WITHIN_NS = 1_000_000;
    private static final long READY_WITHIN_NS = 30_000_000_000L;
    private static final int ATTEMPTS = 5;
    private static final long NO_ARRIVAL = Long.MIN_VALUE; // nothing is due any more
    private static final long NOT_YET = Long.MIN_VALUE + 1; // until an arrival is a thread's own

    private final DueTimes due;
    private final long all; // of all arrivals, those that are this JMeter's own
    private final int threads; // read here: elsewhere than in a thread of JMeter's, a property of the plan has no value
    private final File stop;
    private final JMeterThread any; // of the group's threads, which are told to stop together
    private final Deque<Turn> ahead = new ArrayDeque<>();
    private final Deque<Turn> idle = new ArrayDeque<>(); // the one that has waited least is taken
    private final Set<Thread> sending = new HashSet<>(); // until they come back for the next arrival
    private long startNs; // of the run
    private long dueNs; // of the next arrival
    private long number; // of the next arrival
    private long sent;
    private long dropped;
    private long saidNs;
    private boolean isBegun;
    private volatile boolean isEnded;

    /** Called before each request: returns when it is due. */
    public static void await(JMeterContext ctx) throws Exception {
        long dueNs = NO_ARRIVAL;
        try {
            dueNs = OF_TEST.get(ctx, () -> begun(ctx)).next();
        } catch (IllegalArgumentException error) {
            Refusal.stop(ctx, LOG, error);
        }
        if (dueNs == NO_ARRIVAL) {
            ctx.getThread().stop(); // before the sampler: nothing is sent
        } else {
            ctx.getVariables().put("intended_ms", String.valueOf(sampleMs(dueNs)));
        }
    }

    private static Pacer begun(JMeterContext ctx) {
        Pacer pacer = new Pacer(ctx);
        Thread watch = new Thread(pacer::watch, "arrivals");
        watch.setDaemon(true);
        watch.start();
        return pacer;
    }

    private Pacer(JMeterContext ctx) {
        String load = JMeterUtils.getProperty(Load.PROPERTY);
        due = new DueTimes(new Load(load == null || load.isEmpty() ? ofProperties(ctx.getVariables()) : load));
        all = due.all;
        threads = ctx.getThreadGroup().getNumThreads();
        stop = new File(ctx.getVariables().get("stop"));
        any = ctx.getThread();
    }

    // The rate rises evenly over the ramp, then holds.
    private static String ofProperties(JMeterVariables vars) {
        Given.checkLoad(vars);
        double ratePerS = Double.parseDouble(vars.get("rate_per_s"));
        double rampS = Double.parseDouble(vars.get("ramp_s"));
        double overS = rampS + Double.parseDouble(vars.get("hold_s"));
        String seed = "poisson".equals(vars.get("arrivals")) ? "seed=" + vars.get("seed") + " " : "";
        String ramp = rampS + ":" + ratePerS;
        return "arrivals 0:0 " + ramp + " " + ramp + " " + overS + ":" + ratePerS + " " + seed + "0/1";
    }

    /** Wait for an arrival: when it was due, by System.nanoTime. */
    private long next() {
        Turn turn = new Turn();
        queue(turn);
        while (!Thread.interrupted()) { // interrupted: the run is stopped at once
            long ownNs = turn.dueNs;
            if (ownNs == NOT_YET) {
                LockSupport.park(this);
            } else if (ownNs == NO_ARRIVAL) {
                break;
            } else if (ownNs > System.nanoTime()) {
                LockSupport.parkNanos(this, ownNs - System.nanoTime());
            } else {
                return leave(turn, true) ? ownNs : NO_ARRIVAL;
            }
        }
        leave(turn, false);
        return NO_ARRIVAL;
    }

    private synchronized void queue(Turn turn) {
        sending.remove(turn.thread);
        drop();
        if (isEnded) {
            turn.give(NO_ARRIVAL);
        } else if (isBegun && number < all && ahead.size() < AHEAD) {
            assign(turn);
        } else {
            idle.push(turn);
        }
    }

    // True if its arrival is still its own, and so is sent.
    private synchronized boolean leave(Turn turn, boolean isDue) {
        boolean isSent = ahead.remove(turn) && isDue;
        if (isSent) {
            sent++;
            sending.add(turn.thread);
            endIfOver();
        } else {
            idle.remove(turn);
        }
        if (ahead.isEmpty() && !idle.isEmpty() && number < all) {
            assign(idle.pop());
        }
        return isSent;
    }

    private void assign(Turn turn) {
        ahead.add(turn);
        turn.give(dueNs);
        advance();
    }

    private void advance() {
        number++;
        dueNs = startNs + (number < all ? due.nextNs() : 0);
    }

    // Passes over those that were due while no thread waited.
    private synchronized void drop() {
        while (isBegun && !isEnded && idle.isEmpty() && number < all && dueNs < System.nanoTime()) {
            dropped++;
            advance();
        }
        endIfOver();
    }

    private void endIfOver() {
        if (isBegun && sent + dropped == all) {
            end();
        }
    }

    private synchronized void end() {
        if (isEnded) {
            return;
        }
        isEnded = true;
        // Read by framestorm/results/jmeter_log.py, which adds the slaves' counts up. Before the last threads end, and
        // JMeter with them.
        LOG.info("{\"type\":\"arrivals\",\"due\":{},\"dropped\":{}}", sent + dropped, dropped);
        for (Deque<Turn> waiting : List.of(ahead, idle)) {
            waiting.forEach(each -> each.give(NO_ARRIVAL));
            waiting.clear();
        }
    }

    private synchronized void begin() {
        isBegun = true;
        startNs = System.nanoTime();
        dueNs = startNs + (all > 0 ? due.nextNs() : 0);
        while (number < all && ahead.size() < AHEAD && !idle.isEmpty()) {
            assign(idle.pop());
        }
    }

    private void watch() {
        long deadlineNs = System.nanoTime() + READY_WITHIN_NS;
        while (!isReady() && !isStopped() && System.nanoTime() < deadlineNs) {
            pause(10);
        }
        if (!isStopped()) {
            begin();
        }
        while (!isEnded && !isStopped()) {
            drop();
            say();
            pause(LOOK_EVERY_MS);
        }
        end();
        while (isAwaited()) {
            say();
            pause(LOOK_EVERY_MS);
        }
        synchronized (this) {
            saidNs = 0;
        }
        say();
    }

    private static void pause(long ms) {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(ms));
    }

    // Once a second, read by framestorm/run/live while the run goes on.
    private synchronized void say() {
        if (System.nanoTime() - saidNs >= SAY_EVERY_NS || saidNs == 0) {
            saidNs = System.nanoTime();
            LOG.info("{\"type\":\"arrivals so far\",\"sent\":{},\"dropped\":{},\"in_flight\":{}}", sent, dropped,
                sending.size());
        }
    }

    // Whether requests are in flight after the last has been sent; a thread that was interrupted does not come back.
    private synchronized boolean isAwaited() {
        sending.removeIf(each -> !each.isAlive());
        return !sending.isEmpty();
    }

    private synchronized boolean isReady() {
        return idle.size() >= threads;
    }

    private boolean isStopped() {
        try {
            return stop.exists() || !Running.goesOn(any);
        } catch (IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
    }

    // By the clock that samples are timed with, which is not quite the system's. Read again if something came between.
    private static long sampleMs(long atNs) {
        long atMs = 0;
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            long beforeNs = System.nanoTime();
            atMs = new SampleResult().currentTimeInMillis() - TimeUnit.NANOSECONDS.toMillis(beforeNs - atNs);
            if (System.nanoTime() - beforeNs < CLOCK_WITHIN_NS) {
                break;
            }
        }
        return atMs;
    }

    /** The turn of a thread that waits. */
    private static final class Turn {
        final Thread thread = Thread.currentThread();
        volatile long dueNs = NOT_YET; // by System.nanoTime

        void give(long atNs) {
            dueNs = atNs;
            LockSupport.unpark(thread);
        }
    }
}
