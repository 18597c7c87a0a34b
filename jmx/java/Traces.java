package framestorm;

import framestorm.plan.Traceparent;
import org.apache.jmeter.processor.PreProcessor;
import org.apache.jmeter.protocol.http.sampler.HTTPSamplerBase;
import org.apache.jmeter.samplers.Sampler;
import org.apache.jmeter.testelement.AbstractTestElement;
import org.apache.jmeter.util.JMeterUtils;
import org.apache.jorphan.collections.HashTree;

/**
 * Sends the header traceparent with each HTTP request of a plan that is not made for the kit, where the property framestorm.trace
 * asks for it. The rows of samples.jtl then have the ids with which requests were sent. No class is patched: it is one more
 * pre-processor of the plan, which slaves get with the plan's tree.
 */
public final class Traces extends AbstractTestElement implements PreProcessor {
    static final boolean ARE_ASKED = JMeterUtils.getPropDefault("framestorm.trace", false);
    static final String COLUMN = "trace_id";
    private static final long serialVersionUID = 1L;

    static void addTo(HashTree plan) {
        Traces traces = new Traces();
        traces.setName("traces");
        plan.add(traces);
    }

    @Override
    public void process() {
        Sampler sampler = getThreadContext().getCurrentSampler();
        if (sampler instanceof HTTPSamplerBase) {
            Traceparent.addTo((HTTPSamplerBase) sampler);
        }
    }
}
