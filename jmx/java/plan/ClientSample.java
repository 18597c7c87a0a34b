package framestorm.plan;

import java.math.BigDecimal;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.jmeter.samplers.SampleResult;

/**
 * A line of a client (client/sample.json) as the sub-result of its user's sample. A line needs label, start_ms, rtt_ms and
 * ok only; the rest is filled in here.
 */
final class ClientSample {
    private static final long NEAR_MS = 3_600_000; // a start further from the user's is in other units, or of another clock
    private static final List<String> OF_THE_KIT = List.of("user", "all"); // labels that criteria give other meanings
    private static final List<String> NO_FIGURES = List.of("host", "thread", "source", "user", "index");
    private static final Pattern FIGURE = Pattern.compile("[a-z][a-z0-9_]{0,59}");
    private static final Pattern BLANKS = Pattern.compile("\\s+");
    private static final Pattern CONTROLS = Pattern.compile("\\p{C}");
    private static final int LONGEST_CAUSE = 200;

    private final Map<String, Object> line;
    private final SampleResult ofUser;
    private final Map<String, Object> fields = new LinkedHashMap<>();

    /**
     * Complete a line; `problems` gets what had to be left out.
     *
     * @throws IllegalArgumentException the line is no sample.
     */
    ClientSample(Map<String, Object> line, SampleResult ofUser, String user, int index, List<String> problems) {
        this.line = line;
        this.ofUser = ofUser;
        String label = required("label", String.class, "text");
        Number startMs = required("start_ms", Number.class, "number");
        Number rttMs = required("rtt_ms", Number.class, "number");
        boolean ok = required("ok", Boolean.class, "boolean");
        checkTimes(label, startMs, rttMs);
        String told = line.get("cause") == null ? null : legible(line.get("cause"));
        String cause = ok ? null : told == null || told.isEmpty() ? "unknown" : told;
        boolean isOfUser = user.equals(line.get("user"));
        fields.put("type", "sample");
        fields.put("label", OF_THE_KIT.contains(label) ? label + " (label)" : label);
        fields.put("user", user);
        fields.put("index", isOfUser && line.get("index") instanceof Integer ? line.get("index") : index);
        fields.put("intended_ms", line.get("intended_ms") instanceof Number ? line.get("intended_ms") : null);
        fields.put("start_ms", startMs);
        fields.put("rtt_ms", rttMs);
        fields.put("status", line.get("status") instanceof Integer ? line.get("status") : null);
        fields.put("ok", ok);
        fields.put("cause", cause);
        fields.put("censored", line.get("censored") instanceof Boolean ? line.get("censored") : "timeout".equals(told));
        fields.put("sent_bytes", bytes("sent_bytes"));
        fields.put("received_bytes", bytes("received_bytes"));
        for (Map.Entry<String, Object> each : line.entrySet()) {
            if (!fields.containsKey(each.getKey()) || NO_FIGURES.contains(each.getKey()) && !isOfUser) {
                addFigure(each.getKey(), each.getValue(), problems);
            }
        }
    }

    private <T> T required(String name, Class<T> type, String inWords) {
        if (!type.isInstance(line.get(name))) {
            throw new IllegalArgumentException("has no " + name + " with a " + inWords + " (a sample is one line)");
        }
        return type.cast(line.get(name));
    }

    private void checkTimes(String label, Number startMs, Number rttMs) {
        long mostMs = NEAR_MS + ofUser.getTime();
        if (decimal(rttMs).signum() < 0 || label.isEmpty()) {
            throw new IllegalArgumentException("has an empty label or an rtt_ms below 0");
        }
        if (rttMs.doubleValue() > mostMs) {
            throw new IllegalArgumentException("has an rtt_ms longer than the program ran");
        }
        if (Math.abs(startMs.doubleValue() - ofUser.getStartTime()) > mostMs) {
            throw new IllegalArgumentException(
                "has start_ms " + startMs + ", which is not about the present time in ms since 1970");
        }
    }

    private static BigDecimal decimal(Number number) {
        return number instanceof BigDecimal ? (BigDecimal) number : new BigDecimal(number.toString());
    }

    private Long bytes(String name) {
        return line.get(name) instanceof Number ? ((Number) line.get(name)).longValue() : null;
    }

    private void addFigure(String name, Object value, List<String> problems) {
        if (!FIGURE.matcher(name).matches() || NO_FIGURES.contains(name)) {
            problems.add("'" + name + "' cannot be the name of a figure: a-z, 0-9 and _, and not "
                + String.join(", ", NO_FIGURES));
        } else if (value instanceof Map || value instanceof List) {
            problems.add("the figure " + name + " is not a number, a text or a boolean");
        } else {
            fields.put(name, value);
        }
    }

    /** A client's own words, for tables and terminals. */
    static String legible(Object words) {
        String text = BLANKS.matcher(words.toString()).replaceAll(" ");
        return withoutControls(text.substring(0, Math.min(text.length(), LONGEST_CAUSE)));
    }

    static String withoutControls(String text) {
        return CONTROLS.matcher(text).replaceAll("?");
    }

    /** Why it failed; null if it did not. */
    String cause() {
        return (String) fields.get("cause");
    }

    void addTo(SampleResult result) {
        long startMs = (long) Math.floor(((Number) fields.get("start_ms")).doubleValue());
        long rttMs = Math.round(((Number) fields.get("rtt_ms")).doubleValue());
        Integer status = (Integer) fields.get("status");
        String end = cause() == null ? "OK" : cause();
        SampleResult own = SampleResult.createTestSample(startMs, startMs + rttMs);
        own.setSuccessful((Boolean) fields.get("ok"));
        own.setResponseCode(status == null || status == 0 ? end : status.toString());
        own.setResponseMessage(end);
        own.setResponseData(Json.written(fields), "UTF-8");
        own.setDataType(SampleResult.TEXT);
        own.setBodySize(orZero("received_bytes"));
        own.setSentBytes(orZero("sent_bytes"));
        own.setThreadName(result.getThreadName());
        own.setGroupThreads(result.getGroupThreads());
        own.setAllThreads(result.getAllThreads());
        result.addRawSubResult(own);
        own.setSampleLabel((String) fields.get("label")); // after adding, which renames it
    }

    private long orZero(String name) {
        Long bytes = (Long) fields.get(name);
        return bytes == null ? 0 : bytes;
    }
}
