package framestorm;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import org.apache.jmeter.samplers.Interruptible;
import org.apache.jmeter.samplers.SampleResult;
import org.apache.jmeter.samplers.Sampler;

/**
 * Says which samples JMeter's element Sample Timeout ended: it interrupts the sampler, whose sample then has the error of
 * a connection that was closed here, for whatever reason.
 */
public final class SampleTimeouts {
    /** How the message of such a sample begins; framestorm/model/cause.py reads it. */
    private static final String MESSAGE = "Sample Timeout: ";
    private static final Set<Object> INTERRUPTED =
        Collections.synchronizedSet(Collections.newSetFromMap(new IdentityHashMap<>()));

    /** What the element does once its time is over. */
    public static boolean interrupt(Interruptible sampler) {
        INTERRUPTED.add(sampler);
        return sampler.interrupt();
    }

    /** Called with each sample as its sampler ends; a sampler that was interrupted too late to fail has no timeout. */
    public static void tell(Sampler sampler, SampleResult result) {
        if (INTERRUPTED.remove(sampler) && result != null && !result.isSuccessful()) {
            result.setResponseMessage(MESSAGE + result.getResponseMessage());
        }
    }

    private SampleTimeouts() {
    }
}
