package framestorm.plan;

import java.util.concurrent.Callable;
import org.apache.jmeter.engine.StandardJMeterEngine;
import org.apache.jmeter.threads.JMeterContext;

/**
 * What is made once for each test: a server of slaves runs several tests in one Java. The warm-up comes before the test and
 * has no engine, so that the test begins anew with its data rows.
 */
final class PerTest<T> {
    private volatile Made<T> last;

    /** The one of the test, which is made at the first call. */
    T get(JMeterContext ctx, Callable<T> maker) throws Exception {
        Made<T> made = last;
        return made != null && made.engine == ctx.getEngine() ? made.value : make(ctx.getEngine(), maker);
    }

    private synchronized T make(StandardJMeterEngine engine, Callable<T> maker) throws Exception {
        if (last == null || last.engine != engine) {
            last = new Made<>(engine, maker.call());
        }
        return last.value;
    }

    private static final class Made<T> {
        final StandardJMeterEngine engine;
        final T value;

        Made(StandardJMeterEngine engine, T value) {
            this.engine = engine;
            this.value = value;
        }
    }
}
