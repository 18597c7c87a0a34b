package framestorm;

import java.lang.management.CompilationMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.jmeter.engine.StandardJMeterEngine;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Says in JMeter's log in which seconds JMeter itself was held up: a thread that wants to wake every 10 ms wakes late
 * then, and so did those that send. Read by framestorm/results/jmeter_log.py.
 */
final class Stalls implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(Stalls.class);
    private static final long TICK_NS = TimeUnit.MILLISECONDS.toNanos(10);
    private static final long SECOND_NS = TimeUnit.SECONDS.toNanos(1);
    private static final long LONG_NS = TimeUnit.MILLISECONDS.toNanos(10);
    private final StandardJMeterEngine engine;

    static void watch(StandardJMeterEngine engine) {
        Thread thread = new Thread(new Stalls(engine), "stalls");
        thread.setDaemon(true);
        thread.start();
    }

    private Stalls(StandardJMeterEngine engine) {
        this.engine = engine;
    }

    @Override
    public void run() {
        LOG.info("{\"type\":\"stalls\",\"noticed_from_ms\":{}}", TimeUnit.NANOSECONDS.toMillis(LONG_NS));
        while (engine.isActive()) {
            long startNs = System.nanoTime();
            long gcMs = gcMs();
            long compilerMs = compilerMs();
            long longestNs = 0;
            long beganMs = 0;
            long nowNs = startNs;
            while (nowNs - startNs < SECOND_NS) {
                long beforeNs = nowNs;
                LockSupport.parkNanos(TICK_NS);
                nowNs = System.nanoTime();
                long lateNs = nowNs - beforeNs - TICK_NS;
                if (lateNs > longestNs) {
                    longestNs = lateNs;
                    beganMs = System.currentTimeMillis() - TimeUnit.NANOSECONDS.toMillis(lateNs);
                }
            }
            if (longestNs >= LONG_NS) {
                LOG.info("{\"type\":\"stall\",\"start_ms\":{},\"longest_ms\":{},\"gc_ms\":{},\"compiler_ms\":{}}",
                    beganMs, TimeUnit.NANOSECONDS.toMillis(longestNs), gcMs() - gcMs, compilerMs() - compilerMs);
            }
        }
    }

    private static long gcMs() {
        return ManagementFactory.getGarbageCollectorMXBeans().stream()
            .mapToLong(GarbageCollectorMXBean::getCollectionTime).sum();
    }

    private static long compilerMs() {
        CompilationMXBean compiler = ManagementFactory.getCompilationMXBean();
        return compiler == null ? 0 : compiler.getTotalCompilationTime();
    }
}
