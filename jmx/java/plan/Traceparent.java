package framestorm.plan;

import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.jmeter.protocol.http.control.Header;
import org.apache.jmeter.protocol.http.control.HeaderManager;
import org.apache.jmeter.protocol.http.sampler.HTTPSamplerBase;
import org.apache.jmeter.threads.JMeterVariables;

/** The header by which a tracing system finds a request (W3C Trace Context), as client/traceparent.py sends it. */
public final class Traceparent {
    static final String TRACE_ID = "framestorm.trace_id"; // the variable of the user's request
    private static final String NAME = "traceparent";
    private static final String NEW = "new"; // as --trace has it
    private static final Pattern WRITTEN = Pattern.compile("[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}.*");
    private static final Pattern SENT = Pattern.compile("(?im)^" + NAME + ": (" + WRITTEN + ")$");

    /** Give a request an id of its own, if its headers ask for one and the plan's Header Managers have none. */
    static void fillIn(HeaderManager headers, HTTPSamplerBase sampler, JMeterVariables ofUser) {
        Header asked = headers.getFirstHeaderNamed(NAME);
        if (asked == null) {
            return;
        }
        HeaderManager ofPlan = sampler.getHeaderManager();
        Header own = ofPlan == null ? null : ofPlan.getFirstHeaderNamed(NAME);
        if (asked.getValue().equals(NEW)) {
            headers.removeHeaderNamed(NAME);
            if (own == null) {
                own = new Header(NAME, next());
                headers.add(own);
            }
        }
        Matcher written = WRITTEN.matcher((own == null ? asked : own).getValue());
        ofUser.put(TRACE_ID, written.matches() ? written.group(1) : "");
    }

    /** Give a request an id of its own, unless the plan's Header Managers have one. */
    public static void addTo(HTTPSamplerBase sampler) {
        HeaderManager ofPlan = sampler.getHeaderManager();
        if (ofPlan == null || ofPlan.getFirstHeaderNamed(NAME) == null) {
            HeaderManager own = new HeaderManager();
            own.add(new Header(NAME, next()));
            sampler.setHeaderManager(own); // JMeter adds those of the plan
        }
    }

    /** Return the id with which a request was sent, by its headers as JMeter keeps them, or null; empty without one. */
    public static String idIn(String headers) {
        Matcher sent = SENT.matcher(headers == null ? "" : headers);
        return sent.find() ? sent.group(2) : "";
    }

    private static String next() {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        // An id of zeros only is not one.
        return String.format("00-%016x%016x-%016x-01", random.nextLong() | 1, random.nextLong(), random.nextLong() | 1);
    }

    private Traceparent() {
    }
}
