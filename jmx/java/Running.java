package framestorm;

import java.lang.reflect.Field;
import org.apache.jmeter.threads.JMeterThread;

/** Whether a thread was told to stop. JMeter keeps that to itself, and answers a Shutdown by nothing else. */
public final class Running {
    private static final Field RUNNING = running();

    public static boolean goesOn(JMeterThread thread) throws IllegalAccessException {
        return RUNNING.getBoolean(thread);
    }

    private static Field running() {
        try {
            Field field = JMeterThread.class.getDeclaredField("running");
            field.setAccessible(true);
            return field;
        } catch (NoSuchFieldException error) {
            throw new ExceptionInInitializerError(error);
        }
    }

    private Running() { }
}
