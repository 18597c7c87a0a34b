package framestorm;

import groovy.json.JsonOutput;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.jmeter.engine.util.NoThreadClone;
import org.apache.jmeter.protocol.http.sampler.HTTPSampleResult;
import org.apache.jmeter.samplers.SampleEvent;
import org.apache.jmeter.samplers.SampleListener;
import org.apache.jmeter.samplers.SampleResult;
import org.apache.jmeter.testelement.AbstractTestElement;
import org.apache.jmeter.testelement.TestStateListener;
import org.apache.jorphan.collections.HashTree;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Counts the samples that were sent with a text in place of a value: JMeter leaves ${user} as it is if nothing has defined
 * that variable, and gives &lt;EOF&gt; for the rows of a data set that has ended. Addresses, bodies and headers are looked
 * at. Says at the end of the test in JMeter's log what it found, for framestorm/results/jmeter_log.py. No class is patched:
 * it is one more listener of the test.
 */
public final class Unreplaced extends AbstractTestElement implements SampleListener, TestStateListener, NoThreadClone {
    private static final long serialVersionUID = 1L;
    private static final Logger LOG = LoggerFactory.getLogger(Unreplaced.class);
    private static final List<String> SIGNS = List.of("${", "%24%7B", "<EOF>", "%3CEOF%3E");
    private static final Pattern TEXT = Pattern.compile("(?:\\$|%24)(?:\\{|%7B)([^{}\\s/?&]{1,80}?)(?:\\}|%7D)|(?:<|%3C)EOF(?:>|%3E)");
    private static final int MOST = 1000;
    private final transient Map<String, Map<String, LongAdder>> counts = new ConcurrentHashMap<>();

    /** Listen to the samples of a test; `listeners` are those that hear of its end. */
    static void listen(HashTree test, Collection<Object> listeners) {
        listeners.add(Elements.add(test, "unreplaced", new Unreplaced()));
    }

    @Override
    public void sampleOccurred(SampleEvent event) {
        look(event.getResult());
    }

    private void look(SampleResult result) {
        Set<String> texts = new LinkedHashSet<>();
        if (result instanceof HTTPSampleResult) {
            find(result.getUrlAsString(), texts);
            find(((HTTPSampleResult) result).getQueryString(), texts);
        } else if (result.getSamplerData() != null) {
            find(result.getSamplerData(), texts);
        } else { // a transaction
            for (SampleResult each : result.getSubResults()) {
                look(each);
            }
        }
        find(result.getRequestHeaders(), texts);
        for (String text : texts) {
            Map<String, LongAdder> ofLabel = counts.size() < MOST
                ? counts.computeIfAbsent(result.getSampleLabel(), label -> new ConcurrentHashMap<>())
                : counts.get(result.getSampleLabel());
            if (ofLabel != null && (ofLabel.size() < MOST || ofLabel.containsKey(text))) {
                ofLabel.computeIfAbsent(text, each -> new LongAdder()).increment();
            }
        }
    }

    private static void find(String sent, Set<String> texts) {
        if (sent == null || SIGNS.stream().noneMatch(sent::contains)) {
            return;
        }
        Matcher matcher = TEXT.matcher(sent);
        while (matcher.find() && texts.size() < MOST) {
            texts.add(matcher.group(1) == null ? "<EOF>" : "${" + matcher.group(1) + "}");
        }
    }

    @Override
    public void testStarted() {
        counts.clear();
    }

    @Override
    public void testStarted(String host) {
        testStarted();
    }

    @Override
    public void testEnded() {
        counts.forEach((label, texts) -> texts.forEach((text, n) -> LOG.info(
            "{\"type\":\"unreplaced\",\"label\":{},\"text\":{},\"n\":{}}", JsonOutput.toJson(label), JsonOutput.toJson(text), n)));
    }

    @Override
    public void testEnded(String host) {
        testEnded();
    }

    @Override
    public void sampleStarted(SampleEvent event) { }

    @Override
    public void sampleStopped(SampleEvent event) { }
}
