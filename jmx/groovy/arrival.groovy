// Waits for the next arrival: requests start at a rate, whether the last are answered or not. One that is due while every
// thread waits for an answer is dropped. Notes when each was due, for a thread may start late.
//
// Not by jmeter-plugins' Arrivals Thread Group (casutg 2.10): a thread that goes back to its pool just as an arrival calls
// it does not hear the call and waits for ever. At 500/s that is every thread within seconds, and the run never ends.

import groovy.json.JsonOutput
import groovy.transform.CompileStatic
import java.lang.reflect.Field
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.SynchronousQueue
import java.util.concurrent.ThreadLocalRandom
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.locks.LockSupport
import org.apache.jmeter.samplers.SampleResult
import org.apache.jmeter.threads.AbstractThreadGroup
import org.apache.jmeter.threads.JMeterContext
import org.apache.jmeter.threads.JMeterThread
import org.apache.jmeter.threads.JMeterVariables
import org.slf4j.Logger

@CompileStatic
class Arrivals { // loaded anew for each run
    static final long LOOK_EVERY_NS = TimeUnit.MILLISECONDS.toNanos(200)
    static final long CLOCK_WITHIN_NS = TimeUnit.MILLISECONDS.toNanos(1)
    static final long READY_WITHIN_NS = TimeUnit.SECONDS.toNanos(30)
    // The thread that has waited least is taken, which keeps connections few.
    static final SynchronousQueue<Long> DUE = new SynchronousQueue<>()
    static final Long NONE = Long.MIN_VALUE // nothing is due any more
    static final Set<Integer> READY = ConcurrentHashMap.newKeySet()
    static final AtomicBoolean STARTED = new AtomicBoolean()
    static volatile boolean ended = false
    // JMeter has no other word for a Shutdown: it lets threads end by themselves, and each of those that wait here would
    // first have to take one more arrival.
    static final Field RUNNING = JMeterThread.getDeclaredField('running')
    static {
        RUNNING.accessible = true
    }

    final double ratePerS, rampS, holdS
    final AbstractThreadGroup group
    final File stop
    final JMeterThread any // of the group's threads, which are told to stop together
    final Logger log

    Arrivals(JMeterContext ctx, JMeterVariables vars, Logger log) {
        ratePerS = vars.get('rate_per_s') as double
        rampS = vars.get('ramp_s') as double
        holdS = vars.get('hold_s') as double
        group = ctx.threadGroup
        stop = new File(vars.get('stop'))
        any = ctx.thread
        this.log = log
    }

    // When the next is due, by System.nanoTime; null when there is none any more.
    static Long next(JMeterContext ctx, JMeterVariables vars, Logger log) {
        READY.add(ctx.threadNum)
        if (STARTED.compareAndSet(false, true)) {
            Thread.startDaemon('arrivals', new Arrivals(ctx, vars, log).&run)
        }
        try {
            // Without a time-out: a thread that came back for another turn would be the one that has waited least.
            Long dueNs = ended ? NONE : DUE.take()
            return dueNs == NONE ? null : dueNs
        } catch (InterruptedException ignored) { // the run is stopped at once
            return null
        }
    }

    void run() {
        try {
            callThreads()
        } finally {
            ended = true
            while (group.numberOfThreads > 0) { // those that still wait for an answer may come until then
                DUE.offer(NONE, 200, TimeUnit.MILLISECONDS)
            }
        }
    }

    void callThreads() {
        long deadlineNs = System.nanoTime() + READY_WITHIN_NS
        while (READY.size() < group.numThreads && !stopped() && System.nanoTime() < deadlineNs) {
            Thread.sleep(10)
        }
        long startNs = System.nanoTime()
        long all = (long) Math.ceil(ratePerS * (rampS / 2 + holdS) - 1e-9d)
        long dropped = 0
        long number = 0
        while (number < all && !stopped()) {
            long dueNs = startNs + dueNs(number)
            if (!waitUntil(dueNs)) {
                break
            }
            number++
            if (!DUE.offer(dueNs)) {
                dropped++
            }
        }
        // Read by framestorm/results/jmeter_log.py, which adds the slaves' counts up.
        log.info(JsonOutput.toJson([type: 'arrivals', due: number, dropped: dropped]))
    }

    // By the clock that samples are timed with, which is not quite the system's. Read again if something came between.
    static long sampleMs(long atNs) {
        long atMs = 0
        for (int attempt = 0; attempt < 5; attempt++) {
            long beforeNs = System.nanoTime()
            atMs = new SampleResult().currentTimeInMillis() - TimeUnit.NANOSECONDS.toMillis(beforeNs - atNs)
            if (System.nanoTime() - beforeNs < CLOCK_WITHIN_NS) {
                break
            }
        }
        return atMs
    }

    // Each at a random moment of its own millisecond. JMeter cuts the times of samples off at whole ms: at a rate whose
    // arrivals all came at the same place within theirs, a time of 0.6 ms would be told as 0 by all, or by none.
    long dueNs(long number) {
        double withinS = Math.min(1e-3d, 1 / ratePerS) * ThreadLocalRandom.current().nextDouble()
        return (long) ((dueAfterS(number) + withinS) * 1e9d)
    }

    // The rate rises evenly over the ramp, then holds.
    double dueAfterS(long number) {
        double inRamp = ratePerS * rampS / 2
        return number < inRamp ? Math.sqrt(2 * number * rampS / ratePerS) : rampS + (number - inRamp) / ratePerS
    }

    boolean stopped() {
        return stop.exists() || !RUNNING.getBoolean(any)
    }

    boolean waitUntil(long atNs) {
        long leftNs = atNs - System.nanoTime()
        while (leftNs > 0) {
            LockSupport.parkNanos(Math.min(leftNs, LOOK_EVERY_NS))
            leftNs = atNs - System.nanoTime()
            if (leftNs > 0 && stopped()) {
                return false
            }
        }
        return true
    }
}

Long dueNs = Arrivals.next(ctx, vars, log)
if (dueNs == null) {
    ctx.thread.stop() // before the sampler: nothing is sent
} else {
    vars.put('intended_ms', Arrivals.sampleMs(dueNs) as String)
}
