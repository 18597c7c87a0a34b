package framestorm.plan;

import com.fasterxml.jackson.core.JsonProcessingException;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.jmeter.samplers.SampleResult;
import org.apache.jmeter.threads.JMeterContext;
import org.apache.jmeter.threads.JMeterVariables;
import org.apache.jmeter.util.JMeterUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes sub-results of the lines that a user's program printed, and says why a user failed. What cannot be used is left out
 * and counted in the user's last line, and the user has failed: nothing is lost in silence.
 */
public final class User {
    private static final Logger LOG = LoggerFactory.getLogger(User.class);
    private static final PerTest<AtomicLong> USERS = new PerTest<>();
    private static final int NO_EXIT_STATUS = 500; // JMeter's word for a process that it could not start, or interrupted
    private static final int TIMED_OUT = 124; // exit status of coreutils' timeout
    private static final int NOT_EXECUTABLE = 126; // of a shell and of timeout, as the next one
    private static final int NOT_FOUND = 127;
    private static final int KILLED = 137; // by timeout, when the client did not end on request; or by anyone, at any time
    private static final int CLIENT_SERVER_ENDED = 113; // exit status of client/launch.pl
    private static final int PROBLEMS_KEPT = 3;
    private static final Pattern WORD = Pattern.compile("[a-z][a-z0-9]*(-[a-z0-9]+)*"); // of framestorm/model/cause.py
    private static final Pattern NAME_OF_KIT = Pattern.compile("[\\w.-]+-\\d+-\\d{13}"); // as <host>-<process>-<start>
    private static final Pattern NOT_IN_XML = Pattern.compile("[^\\p{Print}\\t\\n]");

    private final SampleResult result;
    private final JMeterVariables vars;
    private final int exit;
    private final String output;
    private final Map<String, Integer> causes = new LinkedHashMap<>();
    private final List<String> problems = new ArrayList<>(); // the first of them
    private String name;
    private Map<String, Object> lastLine;
    private int samples;
    private int badLines;

    /** Called after the sampler that ran the program. */
    public static void read(JMeterContext ctx) throws Exception {
        long number = USERS.get(ctx, AtomicLong::new).incrementAndGet();
        new User(ctx.getPreviousResult(), ctx.getVariables(), number).read();
    }

    /** Called once before all users. */
    public static void check(JMeterContext ctx, SampleResult result) {
        result.setIgnore();
        try {
            Given.checkLoad(ctx.getVariables());
        } catch (IllegalArgumentException error) {
            Refusal.stop(ctx, LOG, error);
        }
    }

    private User(SampleResult result, JMeterVariables vars, long number) {
        this.result = result;
        this.vars = vars;
        exit = Integer.parseInt(result.getResponseCode());
        output = result.getResponseDataAsString();
        name = JMeterUtils.getLocalHostName() + "-" + number + "-" + result.getStartTime();
    }

    private void read() {
        List<String> lines = output.lines().collect(Collectors.toList());
        // A client that was killed leaves its last line half written.
        boolean isCutOff = exit != 0 && !output.isEmpty() && !output.endsWith("\n");
        for (int at = 0; at < lines.size(); at++) {
            if (!lines.get(at).trim().isEmpty()) {
                readLine(at + 1, lines.get(at), isCutOff && at == lines.size() - 1);
            }
        }
        String cause = cause();
        if (cause != null) {
            result.setSuccessful(false);
            result.setResponseMessage(cause);
        }
        if (badLines > 0) {
            addLastLine(cause);
        }
    }

    private void readLine(int number, String line, boolean isCutOff) {
        List<String> ofLine = new ArrayList<>();
        try {
            readRecord(Json.read(line), ofLine);
        } catch (JsonProcessingException | RuntimeException | StackOverflowError error) { // of JSON nested without end
            if (!isCutOff) {
                ofLine.add(error instanceof IllegalArgumentException ? error.getMessage() : "is not JSON");
            }
        }
        if (!ofLine.isEmpty() && badLines++ < PROBLEMS_KEPT) {
            // It goes to terminals too.
            problems.add(ClientSample.withoutControls("line " + number + ", "
                + line.substring(0, Math.min(line.length(), 80)) + ": " + String.join("; ", ofLine)));
        }
    }

    @SuppressWarnings("unchecked")
    private void readRecord(Object value, List<String> ofLine) {
        Map<String, Object> record = value instanceof Map ? (Map<String, Object>) value : Map.of("type", "none");
        Object type = record.get("type");
        if (type != null && !type.equals("sample") && !type.equals("user")) {
            throw new IllegalArgumentException("is not a JSON object with the fields of a sample");
        }
        Object user = record.get("user");
        if (user instanceof String && NAME_OF_KIT.matcher((String) user).matches()) { // of a client of the kit
            name = (String) user;
        }
        if ("user".equals(type)) {
            lastLine = record;
            return;
        }
        ClientSample sample = new ClientSample(record, result, name, samples, ofLine);
        sample.addTo(result);
        samples++;
        if (sample.cause() != null) {
            causes.merge(sample.cause(), 1, Integer::sum);
        }
    }

    private String cause() {
        BigDecimal limitMs = new BigDecimal(vars.get("user_timeout_s")).movePointRight(3); // 0: none
        boolean isOverdue = limitMs.signum() > 0 && BigDecimal.valueOf(result.getTime()).compareTo(limitMs) >= 0;
        Object ofLastLine = lastLine == null ? null : lastLine.get("cause");
        if (badLines > 0) {
            return "not-json-lines";
        } else if (exit == NO_EXIT_STATUS) {
            return result.getResponseMessage().contains("interrupted") ? "stopped" : "not-started";
        } else if ((exit == TIMED_OUT || exit == KILLED) && isOverdue) {
            return "user-timeout";
        } else if (exit == CLIENT_SERVER_ENDED && !Given.property(vars, "client_server").isEmpty()) {
            return "client-server-ended";
        } else if (ofLastLine != null && !ofLastLine.toString().isEmpty()) {
            return ClientSample.legible(ofLastLine);
        } else if (exit == NOT_EXECUTABLE || exit == NOT_FOUND) {
            return "not-started";
        } else if (exit != 0) {
            return "exit-" + exit;
        } else if (!causes.isEmpty()) {
            return mostFrequent();
        }
        return lastLine != null || samples > 0 ? null : "no-samples";
    }

    private String mostFrequent() {
        int most = causes.values().stream().max(Integer::compare).orElseThrow();
        String first = causes.keySet().stream().filter(each -> causes.get(each) == most).findFirst().orElseThrow();
        return WORD.matcher(first).matches() ? first : "failed-sample";
    }

    private void addLastLine(String cause) {
        LOG.warn("user failed: {} lines of its client cannot be used: {}", badLines, String.join("; ", problems));
        // Nothing of the client's own is in it: it has to be read back.
        Map<String, Object> last = new LinkedHashMap<>();
        last.put("type", "user");
        last.put("user", name);
        last.put("ok", false);
        last.put("cause", cause);
        last.put("bad_lines", badLines);
        last.put("problem", problems.get(0));
        String kept = NOT_IN_XML.matcher(output).replaceAll("?"); // the XML tree would not be read back
        result.setResponseData(kept + (kept.endsWith("\n") ? "" : "\n") + Json.written(last) + "\n", "UTF-8");
    }
}
