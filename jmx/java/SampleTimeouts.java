package framestorm;

import java.lang.reflect.Proxy;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import org.apache.jmeter.modifiers.SampleTimeout;
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

    /** A Sample Timeout that notes which samplers it interrupts. */
    public static final class Timeout extends SampleTimeout {
        private static final long serialVersionUID = 1L;

        @Override
        public void sampleStarting(Sampler sampler) {
            super.sampleStarting(sampler instanceof Interruptible ? noted(sampler) : sampler);
        }

        /** The sampler, for an element that asks for its name and interrupts it once its time is over. */
        private static Sampler noted(Sampler sampler) {
            Class<?>[] types = {Sampler.class, Interruptible.class};
            return (Sampler) Proxy.newProxyInstance(SampleTimeouts.class.getClassLoader(), types, (proxy, method, words) -> {
                if ("interrupt".equals(method.getName())) {
                    INTERRUPTED.add(sampler);
                }
                return method.invoke(sampler, words);
            });
        }
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
