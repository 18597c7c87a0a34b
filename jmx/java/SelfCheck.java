package framestorm;

import java.util.Collection;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.atomic.LongAccumulator;
import org.apache.jmeter.engine.util.NoThreadClone;
import org.apache.jmeter.samplers.SampleEvent;
import org.apache.jmeter.samplers.SampleListener;
import org.apache.jmeter.samplers.SampleMonitor;
import org.apache.jmeter.samplers.SampleResult;
import org.apache.jmeter.samplers.Sampler;
import org.apache.jmeter.testelement.AbstractTestElement;
import org.apache.jmeter.testelement.TestStateListener;
import org.apache.jorphan.collections.HashTree;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Counts samples, and measures how long samplers take, by a clock of its own and apart from the results: what the report makes
 * of the rows has to agree with it. Says at the end of the test in JMeter's log what it counted, for
 * framestorm/results/jmeter_log.py. No class is patched: it is one more listener of the test.
 */
public final class SelfCheck extends AbstractTestElement
        implements SampleMonitor, SampleListener, TestStateListener, NoThreadClone {
    private static final long serialVersionUID = 1L;
    private static final Logger LOG = LoggerFactory.getLogger(SelfCheck.class);
    private final transient ThreadLocal<Calls> ofThread = ThreadLocal.withInitial(Calls::new);
    private final transient LongAdder samples = new LongAdder();
    private final transient LongAdder busyNs = new LongAdder();
    private final transient LongAdder unknown = new LongAdder();
    private final transient LongAccumulator firstNs = new LongAccumulator(Math::min, Long.MAX_VALUE);
    private final transient LongAccumulator lastNs = new LongAccumulator(Math::max, Long.MIN_VALUE);
    private transient long originNs;

    /** What a thread's samplers took whose results have not been heard of yet. */
    private static final class Calls {
        private long startNs;
        private long firstNs;
        private long lastNs;
        private long lastBusyNs;
        private long busyNs;
        private int n;

        private void forget() {
            n = 0;
            busyNs = 0;
        }
    }

    /** Listen to the samples of a test; `listeners` are those that hear of its start and end. */
    static void listen(HashTree test, Collection<Object> listeners) {
        if (!Microseconds.ARE_KEPT) {
            return; // without patches it is not known what a transaction is
        }
        listeners.add(Elements.add(test, "self_check", new SelfCheck()));
    }

    @Override
    public void sampleStarting(Sampler sampler) {
        ofThread.get().startNs = System.nanoTime();
    }

    @Override
    public void sampleEnded(Sampler sampler) {
        Calls calls = ofThread.get();
        calls.lastNs = System.nanoTime();
        calls.lastBusyNs = calls.lastNs - calls.startNs;
        calls.busyNs += calls.lastBusyNs;
        if (calls.n++ == 0) {
            calls.firstNs = calls.startNs;
        }
    }

    @Override
    public void sampleOccurred(SampleEvent event) {
        int n = samples(event, event.getResult());
        if (n == 0) { // a transaction, whose samples were heard of
            return;
        }
        Calls calls = ofThread.get();
        samples.add(n);
        // A sampler may have no result, and a script may have one ignored: the last one is that of this event.
        if (n == 1 && calls.n > 0) {
            busyNs.add(calls.lastBusyNs);
            firstNs.accumulate(calls.lastNs - calls.lastBusyNs - originNs);
        } else if (n == calls.n) {
            busyNs.add(calls.busyNs);
            firstNs.accumulate(calls.firstNs - originNs);
        } else {
            unknown.add(n);
        }
        lastNs.accumulate(calls.lastNs - originNs);
        calls.forget();
    }

    /** How many samples of samplers an event has: one, or those of a transaction that is their parent. */
    private static int samples(SampleEvent event, SampleResult result) {
        String kind = SampleKinds.of(event, result);
        if (kind.equals("sample")) {
            return 1;
        }
        int n = 0;
        if (!kind.equals("sub-result")) {
            for (SampleResult each : result.getSubResults()) {
                n += samples(event, each);
            }
        }
        return n;
    }

    @Override
    public void testStarted() {
        originNs = System.nanoTime();
    }

    @Override
    public void testStarted(String host) {
        testStarted();
    }

    @Override
    public void testEnded() {
        if (samples.sum() > 0) {
            LOG.info("{\"type\":\"self_check\",\"samples\":{},\"busy_us\":{},\"span_us\":{},\"unknown\":{}}",
                samples.sum(), busyNs.sum() / 1000, Math.max(0, lastNs.get() - firstNs.get()) / 1000, unknown.sum());
        }
    }

    @Override
    public void testEnded(String host) {
        testEnded();
    }

    @Override
    public void sampleStarted(SampleEvent event) { }

    @Override
    public void sampleStopped(SampleEvent event) { }
}
