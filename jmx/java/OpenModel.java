package framestorm;

import java.lang.reflect.Field;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.function.BiConsumer;
import org.apache.jmeter.threads.JMeterThread;
import org.apache.jmeter.threads.openmodel.OpenModelThreadGroup;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Has an Open Model Thread Group end when it is stopped. JMeter 5.5 tells its threads to end, and then waits for ever for the
 * pool in which they ran, because nothing shuts that down but the end of the schedule.
 */
final class OpenModel {
    private static final Logger LOG = LoggerFactory.getLogger(OpenModel.class);

    static void endWhenStopped(OpenModelThreadGroup group) {
        try {
            field("activeThreads").set(group, new Threads(group));
        } catch (ReflectiveOperationException | RuntimeException error) {
            LOG.error("{} does not end when it is stopped", group.getName(), error);
        }
    }

    private static Field field(String name) throws NoSuchFieldException {
        Field field = OpenModelThreadGroup.class.getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }

    /** Its threads. Only where it is stopped does the group go through them all. */
    private static final class Threads extends ConcurrentHashMap<JMeterThread, Future<?>> {
        private static final long serialVersionUID = 1L;
        private final transient OpenModelThreadGroup group;

        Threads(OpenModelThreadGroup group) {
            this.group = group;
        }

        @Override
        public void forEach(BiConsumer<? super JMeterThread, ? super Future<?>> action) {
            super.forEach(action);
            try {
                ExecutorService pool = (ExecutorService) field("executorService").get(group);
                if (pool != null) {
                    pool.shutdown();
                }
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
        }
    }

    private OpenModel() {
    }
}
