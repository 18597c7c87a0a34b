// Waits for the next arrival: requests start at a rate, whether the last are answered or not. One that is due while every
// thread waits for an answer is dropped. Notes when each was due, for a thread may start late.
//
// Not by jmeter-plugins' Arrivals Thread Group (casutg 2.10): a thread that goes back to its pool just as an arrival calls
// it does not hear the call and waits for ever. At 500/s that is every thread within seconds, and the run never ends.

import framestorm.DueTimes
import framestorm.Load
import framestorm.Running
import groovy.json.JsonOutput
import groovy.transform.CompileStatic
import java.util.concurrent.TimeUnit
import java.util.concurrent.locks.LockSupport
import org.apache.jmeter.samplers.SampleResult
import org.apache.jmeter.threads.AbstractThreadGroup
import org.apache.jmeter.threads.JMeterContext
import org.apache.jmeter.threads.JMeterThread
import org.apache.jmeter.threads.JMeterVariables
import org.apache.jmeter.util.JMeterUtils
import org.slf4j.Logger

@CompileStatic
class Turn { // of a thread that waits
    static final Long NONE = Long.MIN_VALUE // nothing is due any more
    final Thread thread = Thread.currentThread()
    volatile Long dueNs // by System.nanoTime; null until an arrival is its own

    void give(Long dueNs) {
        this.dueNs = dueNs
        LockSupport.unpark(thread)
    }
}

@CompileStatic
class Arrivals { // loaded anew for each run
    // So many threads wait until an arrival of their own is due. A thread that is done with its request is mostly the next of
    // them, so nobody need wake it. The others wait unused, which keeps connections few.
    static final int AHEAD = 2
    static final long LOOK_EVERY_MS = 100, SAY_EVERY_NS = 1_000_000_000, CLOCK_WITHIN_NS = 1_000_000, READY_WITHIN_NS = 30_000_000_000
    static Arrivals only

    final DueTimes due
    final long all // of all arrivals, those that are this JMeter's own
    final int threads // read here: elsewhere than in a thread of JMeter's, a property of the plan has no value
    final File stop
    final JMeterThread any // of the group's threads, which are told to stop together
    final Logger log
    final Deque<Turn> ahead = new ArrayDeque<>()
    final Deque<Turn> idle = new ArrayDeque<>() // the one that has waited least is taken
    final Set<Thread> sending = new HashSet<>() // until they come back for the next arrival
    long startNs, dueNs // of the run, of the next arrival
    long number = 0 // of the next arrival
    long sent = 0
    long dropped = 0
    long saidNs = 0
    boolean begun = false
    volatile boolean ended = false

    Arrivals(JMeterContext ctx, JMeterVariables vars, Logger log) {
        due = new DueTimes(new Load(JMeterUtils.getProperty(Load.PROPERTY) ?: ofProperties(vars)))
        all = due.all
        threads = ((AbstractThreadGroup) ctx.threadGroup).numThreads
        stop = new File(vars.get('stop'))
        any = ctx.thread
        this.log = log
    }

    // The rate rises evenly over the ramp, then holds.
    static String ofProperties(JMeterVariables vars) {
        if (vars.get('load')) {
            throw new IllegalArgumentException('load: ./run.sh reads the words; JMeter alone takes rate_per_s, ramp_s and hold_s')
        }
        double ratePerS = vars.get('rate_per_s') as double
        double rampS = vars.get('ramp_s') as double
        double overS = rampS + (vars.get('hold_s') as double)
        String seed = vars.get('arrivals') == 'poisson' ? "seed=${vars.get('seed')} " : ''
        return "arrivals 0:0 $rampS:$ratePerS $rampS:$ratePerS $overS:$ratePerS ${seed}0/1"
    }

    static synchronized Arrivals of(JMeterContext ctx, JMeterVariables vars, Logger log) {
        if (only == null) {
            only = new Arrivals(ctx, vars, log)
            Thread.startDaemon('arrivals', only.&watch)
        }
        return only
    }

    // Waits for an arrival and returns when it was due, by System.nanoTime; null when there is none any more.
    Long next() {
        Turn turn = new Turn()
        queue(turn)
        while (!Thread.interrupted()) { // interrupted: the run is stopped at once
            Long ownNs = turn.dueNs
            if (ownNs == null) {
                LockSupport.park(this)
            } else if (ownNs == Turn.NONE) {
                break
            } else if (ownNs > System.nanoTime()) {
                LockSupport.parkNanos(this, ownNs - System.nanoTime())
            } else {
                return leave(turn, true) ? ownNs : null
            }
        }
        leave(turn, false)
        return null
    }

    synchronized void queue(Turn turn) {
        sending.remove(turn.thread)
        drop()
        if (ended) {
            turn.give(Turn.NONE)
        } else if (begun && number < all && ahead.size() < AHEAD) {
            assign(turn)
        } else {
            idle.push(turn)
        }
    }

    // True if its arrival is still its own, and so is sent.
    synchronized boolean leave(Turn turn, boolean isDue) {
        boolean isSent = ahead.remove(turn) && isDue
        if (isSent) {
            sent++
            sending.add(turn.thread)
            endIfOver()
        } else {
            idle.remove(turn)
        }
        if (ahead.empty && !idle.empty && number < all) {
            assign(idle.pop())
        }
        return isSent
    }

    private void assign(Turn turn) {
        ahead.add(turn)
        turn.give(dueNs)
        advance()
    }

    private void advance() {
        number++
        dueNs = startNs + (number < all ? due.nextNs() : 0)
    }

    // Passes over those that were due while no thread waited.
    synchronized void drop() {
        while (begun && !ended && idle.empty && number < all && dueNs < System.nanoTime()) {
            dropped++
            advance()
        }
        endIfOver()
    }

    private void endIfOver() {
        if (begun && sent + dropped == all) {
            end()
        }
    }

    synchronized void end() {
        if (!ended) {
            ended = true
            // Read by framestorm/results/jmeter_log.py, which adds the slaves' counts up. Before the last threads end, and
            // JMeter with them.
            log.info(JsonOutput.toJson([type: 'arrivals', due: sent + dropped, dropped: dropped]))
            for (Deque<Turn> waiting : [ahead, idle]) {
                waiting*.give(Turn.NONE)
                waiting.clear()
            }
        }
    }

    synchronized void begin() {
        begun = true
        startNs = System.nanoTime()
        dueNs = startNs + (all > 0 ? due.nextNs() : 0)
        while (number < all && ahead.size() < AHEAD && !idle.empty) {
            assign(idle.pop())
        }
    }

    void watch() {
        long deadlineNs = System.nanoTime() + READY_WITHIN_NS
        while (!isReady() && !isStopped() && System.nanoTime() < deadlineNs) {
            Thread.sleep(10)
        }
        if (!isStopped()) {
            begin()
        }
        while (!ended && !isStopped()) {
            drop()
            say()
            Thread.sleep(LOOK_EVERY_MS)
        }
        end()
        while (isAwaited()) {
            say()
            Thread.sleep(LOOK_EVERY_MS)
        }
        saidNs = 0
        say()
    }

    // Once a second, read by framestorm/run/live while the run goes on.
    synchronized void say() {
        if (System.nanoTime() - saidNs >= SAY_EVERY_NS || saidNs == 0) {
            saidNs = System.nanoTime()
            log.info(JsonOutput.toJson([type: 'arrivals so far', sent: sent, dropped: dropped, in_flight: sending.size()]))
        }
    }

    // Whether requests are in flight after the last has been sent; a thread that was interrupted does not come back.
    synchronized boolean isAwaited() {
        sending.removeIf { Thread each -> !each.alive }
        return !sending.empty
    }

    synchronized boolean isReady() {
        return idle.size() >= threads
    }

    boolean isStopped() {
        return stop.exists() || !Running.goesOn(any)
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
}

Long dueNs = null
try {
    dueNs = Arrivals.of(ctx, vars, log).next()
} catch (IllegalArgumentException error) {
    ctx.engine.askThreadsToStop()
    log.error(JsonOutput.toJson([type: 'refused', why: error.message])) // read by framestorm/results/jmeter_log.py
}
if (dueNs == null) {
    ctx.thread.stop() // before the sampler: nothing is sent
} else {
    vars.put('intended_ms', Arrivals.sampleMs(dueNs) as String)
}
