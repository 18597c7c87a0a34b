package framestorm;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.apache.jmeter.samplers.SampleResult;

/** The time of a sample in microseconds, which the patched SampleResult keeps; JMeter's own has none. */
final class Microseconds {
    private static final MethodHandle ELAPSED = handle();
    static final boolean ARE_KEPT = ELAPSED != null;

    /** The time, or null where something else than the clock set it. */
    static String of(SampleResult result) {
        try {
            return (String) ELAPSED.invokeExact(result);
        } catch (RuntimeException | Error error) {
            throw error;
        } catch (Throwable error) {
            throw new IllegalStateException(error);
        }
    }

    private static MethodHandle handle() {
        try {
            return MethodHandles.publicLookup()
                .findVirtual(SampleResult.class, "elapsedUs", MethodType.methodType(String.class));
        } catch (NoSuchMethodException unpatched) {
            return null;
        } catch (IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
    }

    private Microseconds() {
    }
}
