package framestorm.plan;

import java.util.Map;
import java.util.function.Supplier;
import org.apache.jmeter.extractor.JSR223PostProcessor;
import org.apache.jmeter.modifiers.JSR223PreProcessor;
import org.apache.jmeter.processor.PostProcessor;
import org.apache.jmeter.processor.PreProcessor;
import org.apache.jmeter.protocol.java.sampler.JSR223Sampler;
import org.apache.jmeter.samplers.AbstractSampler;
import org.apache.jmeter.samplers.Entry;
import org.apache.jmeter.samplers.SampleResult;
import org.apache.jmeter.testelement.AbstractTestElement;
import org.apache.jmeter.testelement.TestElement;
import org.apache.jmeter.threads.JMeterContext;
import org.apache.jmeter.threads.JMeterContextService;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The line by which a JSR223 element of a plan calls a class of the kit. In any JMeter with the kit's jar, it is a script as
 * others are. JMeter makes a script engine each time that it runs one, which is most of the garbage of a request: in a run by
 * the kit, the elements here take the place of those whose whole script is such a line.
 */
@FunctionalInterface
public interface Call {
    String MAKES_REQUEST = "framestorm.plan.Requests.prepare(ctx)";
    String JUDGES_ANSWER = "framestorm.plan.Answer.judge(ctx)";
    Map<String, Call> ALL = Map.of(
        "framestorm.plan.Stop.check(ctx)", (ctx, result) -> Stop.check(ctx),
        "framestorm.plan.Pacer.await(ctx)", (ctx, result) -> Pacer.await(ctx),
        "framestorm.plan.Frames.prepare(ctx)", (ctx, result) -> Frames.prepare(ctx),
        MAKES_REQUEST, (ctx, result) -> Requests.prepare(ctx),
        JUDGES_ANSWER, (ctx, result) -> Answer.judge(ctx),
        "framestorm.plan.User.read(ctx)", (ctx, result) -> User.read(ctx),
        "framestorm.plan.Requests.check(ctx, SampleResult)", Requests::check,
        "framestorm.plan.Answer.check(ctx, SampleResult)", Answer::check,
        "framestorm.plan.User.check(ctx, SampleResult)", User::check);

    /** Run it; `result` is that of a sampler, and null of other elements. */
    void run(JMeterContext ctx, SampleResult result) throws Exception;

    /** What makes the element that takes the place of another one; null if that calls no class of the kit. */
    static Supplier<TestElement> element(TestElement element) {
        boolean isCall = "groovy".equals(element.getPropertyAsString("scriptLanguage"))
            && element.getPropertyAsString("filename").isEmpty() && ALL.containsKey(line(element));
        Class<?> kind = element.getClass();
        return !isCall ? null
            : kind == JSR223PreProcessor.class ? Before::new
            : kind == JSR223PostProcessor.class ? After::new
            : kind == JSR223Sampler.class ? Alone::new : null;
    }

    /** The script of an element, which may be such a line. */
    static String line(TestElement element) {
        return element.getPropertyAsString("script").trim();
    }

    /** Run the call of an element, and log its failure as JMeter logs that of a script. */
    private static void run(TestElement element, Class<?> kind) {
        try {
            ALL.get(line(element)).run(JMeterContextService.getContext(), null);
        } catch (Exception error) {
            Logger log = LoggerFactory.getLogger(kind);
            log.error("Problem in JSR223 script, {}", element.getName(), error);
        }
    }

    /** In place of a JSR223 PreProcessor. */
    final class Before extends AbstractTestElement implements PreProcessor {
        private static final long serialVersionUID = 1L;

        @Override
        public void process() {
            run(this, JSR223PreProcessor.class);
        }
    }

    /** In place of a JSR223 PostProcessor. */
    final class After extends AbstractTestElement implements PostProcessor {
        private static final long serialVersionUID = 1L;

        @Override
        public void process() {
            run(this, JSR223PostProcessor.class);
        }
    }

    /** In place of a JSR223 Sampler. */
    final class Alone extends AbstractSampler {
        private static final long serialVersionUID = 1L;
        private static final Logger LOG = LoggerFactory.getLogger(JSR223Sampler.class);

        @Override
        public SampleResult sample(Entry entry) {
            SampleResult result = new SampleResult();
            result.setSampleLabel(getName());
            result.setSamplerData(line(this));
            result.setDataType(SampleResult.TEXT);
            result.setSuccessful(true);
            result.setResponseCodeOK();
            result.setResponseMessageOK();
            result.sampleStart();
            try {
                ALL.get(line(this)).run(JMeterContextService.getContext(), result);
            } catch (Exception error) {
                LOG.error("Problem in JSR223 script {}, message: {}", getName(), error, error);
                result.setSuccessful(false);
                result.setResponseCode("500");
                result.setResponseMessage(error.toString());
            }
            result.sampleEnd();
            return result;
        }
    }
}
