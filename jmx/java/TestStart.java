package framestorm;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.apache.jmeter.engine.StandardJMeterEngine;
import org.apache.jmeter.testbeans.TestBean;
import org.apache.jmeter.testbeans.TestBeanHelper;
import org.apache.jmeter.testelement.TestElement;
import org.apache.jmeter.testelement.TestStateListener;
import org.apache.jorphan.collections.HashTree;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Does what the kit does at the start of a test, in the engine that makes load: its functions are replaced by then, and none
 * of its threads has been started. JMeter calls such a listener after those of the test, and forgets it then.
 */
public final class TestStart implements TestStateListener {
    private static final Logger LOG = LoggerFactory.getLogger(TestStart.class);
    private static final Field ENGINE = field("engine");
    private static final Field TEST = field("test");
    // The engine's own list cannot be changed while it is walked.
    private final List<Object> listeners = new ArrayList<>();

    /** Listen to the start of the next test. */
    public static void listen() {
        StandardJMeterEngine.register(new TestStart());
        StopFiles.watchRemote();
    }

    @Override
    public void testStarted() {
        start(TestStateListener::testStarted);
    }

    @Override
    public void testStarted(String host) {
        start(each -> each.testStarted(host));
    }

    @Override
    public void testEnded() {
        tell(TestStateListener::testEnded);
    }

    @Override
    public void testEnded(String host) {
        tell(each -> each.testEnded(host));
    }

    private void start(Consumer<TestStateListener> start) {
        StandardJMeterEngine.register(new TestStart()); // a server has many tests
        try {
            StandardJMeterEngine engine = (StandardJMeterEngine) ENGINE.get(null);
            if (engine == null) {
                LOG.info("the test was stopped before its start");
                return;
            }
            StopFiles.watch(engine);
            HashTree test = (HashTree) TEST.get(engine);
            StopCalls.listen(test, engine);
            WarmUp.run(test, listeners, engine);
        } catch (IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
        tell(each -> {
            if (each instanceof TestBean) {
                TestBeanHelper.prepare((TestElement) each);
            }
            start.accept(each);
        });
    }

    private void tell(Consumer<TestStateListener> what) {
        for (Object each : listeners) {
            what.accept((TestStateListener) each);
        }
    }

    private static Field field(String name) {
        try {
            Field field = StandardJMeterEngine.class.getDeclaredField(name);
            field.setAccessible(true);
            return field;
        } catch (NoSuchFieldException error) {
            throw new ExceptionInInitializerError(error);
        }
    }
}
