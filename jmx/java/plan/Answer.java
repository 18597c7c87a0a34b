package framestorm.plan;

import com.blazemeter.jmeter.threads.AbstractDynamicThreadGroup;
import com.jayway.jsonpath.JsonPathException;
import framestorm.Body;
import framestorm.Running;
import java.net.MalformedURLException;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import java.util.stream.Collectors;
import java.util.zip.CRC32;
import javax.xml.xpath.XPathExpressionException;
import org.apache.jmeter.protocol.http.sampler.HTTPSampleResult;
import org.apache.jmeter.samplers.SampleResult;
import org.apache.jmeter.threads.AbstractThreadGroup;
import org.apache.jmeter.threads.JMeterContext;
import org.apache.jmeter.threads.JMeterVariables;
import org.apache.jmeter.threads.ThreadGroup;
import org.apache.jmeter.util.JMeterUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Judges the function's answer: by its status, by what the plan expects of its text, and one to a frame by its picture too. A
 * short text takes its place: of a frame the line that the frame client would write, else how it begins.
 */
public final class Answer {
    private static final Logger LOG = LoggerFactory.getLogger(Answer.class);
    private static final int KEPT_BYTES = 200;
    private static final int WORKER_CHARACTERS = 200;
    // Asked for by an audit, which compares texts and need not keep them.
    private static final boolean HAS_DIGEST = JMeterUtils.getPropDefault("framestorm.answer_digest", false);
    private static final Set<String> CODINGS = Set.of("", "identity", "gzip", "x-gzip", "deflate", "br"); // JMeter's
    private static final Set<String> WITH_BODY = Set.of("POST", "PUT", "PATCH");
    private static final Pattern LOGIN = Pattern.compile(".*@");
    private static final Pattern URL_PARTS = Pattern.compile("(?s)(\\w+://)([^/?#]*@)?([^/?#]*)(.*)");
    private static final Pattern NOT_IN_XML = Pattern.compile("[^\\p{Print}\\s]");

    private final HTTPSampleResult result;
    private final JMeterVariables vars;
    private final boolean isStopped;
    private final Secrets secrets;
    private final Map<String, String> headers;
    private final boolean isWhole;
    // The sample's further figures: those that the plan names in sample_variables are columns of samples.jtl.
    private final Map<String, Object> figures = new LinkedHashMap<>();
    // Those whose names only the answer has: together they are one column, as JSON.
    private final Map<String, Object> further = new LinkedHashMap<>();
    private String cause;

    /** Called once before all requests, to find mistakes. */
    public static void check(JMeterContext ctx, SampleResult result) {
        result.setIgnore();
        try {
            checkConditions(ctx.getVariables());
        } catch (IllegalArgumentException error) {
            Refusal.stop(ctx, LOG, error);
        }
    }

    /** Called after each request. */
    public static void judge(JMeterContext ctx) {
        SampleResult result = ctx.getPreviousResult();
        try {
            AbstractThreadGroup group = ctx.getThreadGroup();
            // JMeter's own group first: without it, the plug-in of the other may be missing.
            boolean goesOn = group instanceof ThreadGroup || !(group instanceof AbstractDynamicThreadGroup)
                ? Running.goesOn(ctx.getThread()) : ((AbstractDynamicThreadGroup) group).isRunning();
            new Answer((HTTPSampleResult) result, ctx.getVariables(), !goesOn).judgeAndMask();
        } catch (Exception | StackOverflowError error) { // none passes because it could not be judged
            result.setSuccessful(false);
            result.setResponseMessage("not-judged");
            result.setResponseData("", "UTF-8"); // it may repeat a secret
            LOG.error("an answer could not be judged", error);
        }
    }

    private static void checkConditions(JMeterVariables vars) {
        for (String name : List.of("expect", "reject", "figures")) {
            String condition = Given.property(vars, name);
            String at = "-J" + name + "=" + condition + ": ";
            try {
                if (!condition.isEmpty() && name.equals("figures")) {
                    JsonFigures.of(condition);
                } else if (!condition.isEmpty()) {
                    Condition.of(condition);
                }
            } catch (JsonPathException error) {
                throw new IllegalArgumentException(at + "not a valid JSONPath: " + reason(error));
            } catch (XPathExpressionException error) {
                throw new IllegalArgumentException(at + "not a valid XPath: " + reason(error));
            } catch (PatternSyntaxException error) {
                throw new IllegalArgumentException(at + "not a valid regular expression: " + reason(error));
            } catch (IllegalArgumentException error) {
                throw new IllegalArgumentException(at + error.getMessage());
            }
        }
        String expected = Given.property(vars, "expect_status");
        try {
            Statuses.of(Given.property(vars, "expect_status", "200"));
        } catch (IllegalArgumentException error) {
            throw new IllegalArgumentException("-Jexpect_status=" + expected + ": " + error.getMessage());
        }
    }

    private static String reason(Exception error) {
        return (error.getCause() == null ? error : error.getCause()).getMessage();
    }

    private Answer(HTTPSampleResult result, JMeterVariables vars, boolean isStopped) {
        this.result = result;
        this.vars = vars;
        this.isStopped = isStopped;
        secrets = Secrets.of(vars);
        headers = named(result.getResponseHeaders());
        isWhole = isNumber(result.getResponseCode());
        figures.put("handler_ms", null);
        figures.put("model_ms", null);
        figures.put("cold", headers.containsKey("x-cold") ? headers.get("x-cold").equals("1") : null);
        figures.put("faces", null);
        String worker = headers.getOrDefault("x-worker", "");
        figures.put("worker", worker.isEmpty() ? redirectedTo() : worker);
        ServerTiming.read(headers.get("server-timing"))
            .forEach((name, ms) -> (figures.containsKey(name) ? figures : further).putIfAbsent(name, ms));
    }

    private static boolean isNumber(String code) {
        try {
            Integer.parseInt(code);
            return true;
        } catch (NumberFormatException exception) { // the name of one
            return false;
        }
    }

    // Each answer through OpenFaaS names its replica; after a redirect it is where the request ended up.
    private String redirectedTo() {
        String authority = result.getURL() == null ? null : result.getURL().getAuthority();
        if (authority == null) {
            return null;
        }
        String server = LOGIN.matcher(authority).replaceFirst(""); // not the password
        return vars.get("url").contains(server) ? null : server;
    }

    private static Map<String, String> named(String lines) {
        Map<String, String> headers = new HashMap<>();
        for (String line : lines.split("\n")) {
            int colon = line.indexOf(':');
            if (colon > 0) {
                String name = line.substring(0, colon).toLowerCase(Locale.ROOT);
                String value = line.substring(colon + 1).trim();
                headers.merge(name, value, (first, next) -> name.equals("server-timing") ? first + ", " + next : next);
            }
        }
        return headers;
    }

    private void judgeAndMask() throws MalformedURLException {
        try {
            judge();
        } finally {
            if (!secrets.areNone()) { // what a listener may save of the request, and an answer that repeats it
                if (result.getURL() != null) { // a request that could not be made has none
                    result.setURL(masked(result.getURL()));
                }
                result.setRequestHeaders(secrets.masked(result.getRequestHeaders()));
                result.setQueryString(secrets.masked(result.getQueryString()));
                result.setResponseHeaders(secrets.masked(result.getResponseHeaders()));
            }
            Body.release();
        }
    }

    // A secret that is also a part of host or port says nothing there, and its name in that place makes no URL.
    private URL masked(URL url) throws MalformedURLException {
        Matcher parts = URL_PARTS.matcher(url.toString());
        if (!parts.matches()) {
            return url;
        }
        String login = parts.group(2) == null ? "" : secrets.masked(parts.group(2));
        String path = secrets.masked(parts.group(4));
        return new URL(parts.group(1) + login + parts.group(3) + (path.startsWith("$") ? "/" : "") + path);
    }

    private void judge() {
        String accept = Given.property(vars, "accept"); // of plans that send frames
        cause = isWhole ? statusCause()
            // Closed here by the plan's total time-out, or because the run is stopped at once.
            : Breakage.cause(result.getResponseCode(), result.getResponseMessage(), isStopped ? "stopped" : "timeout");
        if (cause == null) {
            cause = contentCause(accept);
        }
        boolean isAllHere = isWhole && !Body.isCut() && !Body.isTooLong();
        String wanted = Given.property(vars, "figures");
        if (isAllHere && !wanted.isEmpty()) {
            further.putAll(JsonFigures.of(wanted).read(result.getResponseDataAsString()));
        }
        if (isAllHere && HAS_DIGEST) {
            CRC32 digest = new CRC32();
            digest.update(result.getResponseData());
            further.put("answer_digest", digest.getValue());
        }
        String traceId = Given.property(vars, Traceparent.TRACE_ID);
        if (!traceId.isEmpty()) {
            further.put("trace_id", traceId);
        }
        putVariables();
        // An image for each frame, or a long text, would make the tree unreadable.
        String text = accept.isEmpty() ? beginning() : Json.written(line());
        result.setSuccessful(cause == null);
        result.setResponseCode(isWhole ? result.getResponseCode() : cause);
        result.setResponseMessage(cause == null ? "OK" : cause);
        result.setResponseData(text, "UTF-8");
        result.setDataType(SampleResult.TEXT); // JMeter saves no other
    }

    private String statusCause() {
        // A 301 to 303 makes a GET of the request, without its body: what answers then was asked something else.
        if (WITH_BODY.contains(Given.property(vars, "method", "POST"))
                && !result.getRequestHeaders().toLowerCase(Locale.ROOT).contains("content-length:")) {
            return "redirected-as-get";
        }
        String status = result.getResponseCode();
        return Statuses.of(Given.property(vars, "expect_status", "200")).include(status) ? null : "status-" + status;
    }

    private String contentCause(String accept) {
        String expect = Given.property(vars, "expect");
        String reject = Given.property(vars, "reject");
        if (accept.isEmpty() && expect.isEmpty() && reject.isEmpty()) {
            return null;
        } else if (Body.isCut()) {
            return "generator-limit";
        } else if (Body.isTooLong()) {
            return "answer-too-long";
        } else if (isStillCoded()) {
            return "unknown-coding";
        } else if (!accept.isEmpty()) {
            return Picture.cause(result, headers, accept, Integer.parseInt(vars.get("min_faces")), figures);
        }
        String text = result.getResponseDataAsString();
        return !expect.isEmpty() && !isMet(expect, text, false) ? "expect-not-met"
            : !reject.isEmpty() && isMet(reject, text, true) ? "reject-met" : null;
    }

    // JMeter takes off the codings that it knows, and passes over others, such as zstd.
    private boolean isStillCoded() {
        String codings = headers.get("content-encoding");
        return codings != null && !CODINGS.containsAll(List.of(codings.toLowerCase(Locale.ROOT).split("[\\s,]+")));
    }

    @SuppressWarnings("unchecked")
    private boolean isMet(String condition, String text, boolean isMetByTooDeep) {
        Object filling = vars.getObject("filling");
        try {
            return Condition.of(condition)
                .isMet(text, filling == null ? UnaryOperator.identity() : (UnaryOperator<String>) filling);
        } catch (StackOverflowError | TooManyValues ignored) { // else the thread would end, and the request have no row
            return isMetByTooDeep;
        } catch (XPathExpressionException error) {
            throw new IllegalStateException(error);
        }
    }

    private void putVariables() {
        vars.put("further_figures", further.isEmpty() ? "" : Json.written(further));
        if (figures.get("worker") != null) {
            String worker = secrets.masked(figures.get("worker").toString());
            figures.put("worker", worker.substring(0, Math.min(worker.length(), WORKER_CHARACTERS)));
        }
        figures.forEach((name, value) -> vars.put(name, value == null ? "" : value.toString()));
        for (String name : List.of("index", "intended_ms")) {
            vars.put(name, Given.property(vars, name)); // JMeter would write "null"
        }
    }

    private String beginning() {
        byte[] body = result.getResponseData();
        if (!isWhole) { // an exception: what was caused by what, not the places in the code
            body = new String(body, StandardCharsets.UTF_8).lines().filter(each -> !each.startsWith("\t"))
                .collect(Collectors.joining("\n")).getBytes(StandardCharsets.UTF_8);
        }
        // No secret is cut before it is looked for.
        int most = Math.min(body.length, KEPT_BYTES + secrets.longest() * 4);
        String whole = secrets.masked(new String(body, 0, most, StandardCharsets.UTF_8));
        String text = whole.substring(0, Math.min(whole.length(), KEPT_BYTES));
        // Of failures it is in the tree, to be read back.
        return cause == null ? text : NOT_IN_XML.matcher(text).replaceAll("?");
    }

    private Map<String, Object> line() {
        String intendedMs = vars.get("intended_ms");
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("type", "sample");
        line.put("label", result.getSampleLabel());
        line.put("user", result.getThreadName());
        line.put("index", Integer.valueOf(vars.get("index")));
        line.put("intended_ms", intendedMs.isEmpty() ? null : Long.valueOf(intendedMs));
        line.put("start_ms", result.getStartTime());
        line.put("rtt_ms", result.getTime());
        line.put("status", isWhole ? Integer.valueOf(result.getResponseCode()) : null);
        line.put("ok", cause == null);
        line.put("cause", cause);
        line.put("censored", "timeout".equals(cause) || "stopped".equals(cause));
        line.put("sent_bytes", result.getSentBytes());
        line.put("received_bytes", result.getBytesAsLong());
        line.put("verified", false);
        line.putAll(figures);
        line.putAll(further);
        return line;
    }
}
