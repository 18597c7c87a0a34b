package framestorm;

import java.lang.reflect.Field;
import java.util.Properties;
import org.apache.jmeter.engine.StandardJMeterEngine;
import org.apache.jmeter.engine.util.NoThreadClone;
import org.apache.jmeter.testelement.AbstractTestElement;
import org.apache.jmeter.testelement.ThreadListener;
import org.apache.jmeter.threads.JMeterContext;
import org.apache.jmeter.threads.JMeterContextService;
import org.apache.jorphan.collections.HashTree;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Says in JMeter's log which thread of a plan asks the engine to stop the test: scripts and plug-ins do so without a word. Each
 * thread of the plan gets an engine that does; what is no thread of the plan may stop the test, too, by the real one.
 */
final class StopCalls extends AbstractTestElement implements ThreadListener, NoThreadClone {
    private static final long serialVersionUID = 1L;
    private final transient StandardJMeterEngine engine;

    /** Add one to a test. */
    static void listen(HashTree test, StandardJMeterEngine engine) {
        Elements.add(test, "stop calls", new StopCalls(new Telling(engine)));
    }

    private StopCalls(StandardJMeterEngine engine) {
        this.engine = engine;
    }

    @Override
    public void threadStarted() {
        JMeterContext context = JMeterContextService.getContext();
        context.setEngine(engine);
        context.getThread().setEngine(engine);
    }

    @Override
    public void threadFinished() { }

    /** Leaves everything to the real engine. That JMeter makes it the one for StandardJMeterEngine.stopEngine() is meant. */
    private static final class Telling extends StandardJMeterEngine {
        private static final Logger LOG = LoggerFactory.getLogger(StopCalls.class);
        private final StandardJMeterEngine real;

        private Telling(StandardJMeterEngine real) {
            this.real = real;
            try {
                // StandardJMeterEngine.stopThread(name) looks for the thread there.
                Field groups = StandardJMeterEngine.class.getDeclaredField("groups");
                groups.setAccessible(true);
                groups.set(this, groups.get(real));
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public void stopTest(boolean isNow) {
            if (JMeterContextService.getContext().getThread() != null) {
                LOG.info("Stop Test{} asked for at {} by thread: {}", isNow ? " Now" : "", System.currentTimeMillis(),
                    Thread.currentThread().getName());
            }
            real.stopTest(isNow);
        }

        @Override
        public void reset() {
            real.reset();
        }

        @Override
        public void exit() {
            real.exit();
        }

        @Override
        public void setProperties(Properties properties) {
            real.setProperties(properties);
        }

        @Override
        public boolean isActive() {
            return real.isActive();
        }
    }
}
