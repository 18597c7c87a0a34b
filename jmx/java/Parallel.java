package framestorm;

import com.blazemeter.jmeter.controller.ParallelSampler;
import org.apache.jmeter.samplers.Entry;
import org.apache.jmeter.samplers.SampleResult;

/** A Parallel Controller whose sample is that of a transaction: it is made of its samplers' samples, and says so. */
public final class Parallel extends ParallelSampler {
    private static final long serialVersionUID = 1L;

    @Override
    public SampleResult sample(Entry entry) {
        SampleResult result = super.sample(entry);
        if (result != null) {
            int failing = 0;
            for (SampleResult part : result.getSubResults()) {
                failing += part.isSuccessful() ? 0 : 1;
            }
            SampleKinds.setTransaction(result);
            // In the words of a Transaction Controller.
            result.setResponseMessage("Number of samples in transaction : " + result.getSubResults().length
                + ", number of failing samples : " + failing);
        }
        return result;
    }
}
