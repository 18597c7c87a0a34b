package framestorm.plan;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.jmeter.threads.JMeterVariables;

/** The secrets that properties name by ${env:NAME}. */
final class Secrets {
    private static final Pattern SECRET = Pattern.compile("\\$\\{env:(\\w+)\\}");
    private static final String VARIABLE = "secrets";
    private static final Pattern ESCAPE = Pattern.compile("\\\\u[0-9A-F]{4}");

    // What a secret's value may look like in a request or its answer, the longest first, and how it is written in the
    // properties: that is shown instead.
    private final Map<String, String> shown;

    Secrets() {
        this(new TreeMap<>(Comparator.comparing(String::length).reversed().thenComparing(Comparator.naturalOrder())));
    }

    private Secrets(Map<String, String> shown) {
        this.shown = shown;
    }

    /** Those of a user's last request. */
    @SuppressWarnings("unchecked")
    static Secrets of(JMeterVariables vars) {
        Object shown = vars.getObject(VARIABLE);
        return shown == null ? new Secrets() : new Secrets((Map<String, String>) shown);
    }

    /** Keep them with a user's request, for its answer and for jmx/java/Redirects.java. */
    void putInto(JMeterVariables vars) {
        vars.putObject(VARIABLE, shown);
    }

    /** A text with the values of its secrets. */
    String resolved(String template) {
        return SECRET.matcher(template).replaceAll(match -> Matcher.quoteReplacement(value(match.group(), match.group(1))));
    }

    private String value(String reference, String name) {
        String value = System.getenv(name);
        if (value == null) {
            throw new IllegalArgumentException("the environment has no variable " + name + ", which " + reference + " asks for");
        }
        if (!value.isEmpty()) {
            String inForm = URLEncoder.encode(value, StandardCharsets.UTF_8);
            String quoted = Json.written(value);
            String inJson = quoted.substring(1, quoted.length() - 1);
            String asOthersWriteIt = ESCAPE.matcher(inJson)
                .replaceAll(match -> Matcher.quoteReplacement(match.group().toLowerCase(Locale.ROOT)));
            for (String each : List.of(
                    value, inForm, inForm.replace("+", "%20"), Given.encoded(value), Given.encoded("?" + value).substring(1),
                    inJson, asOthersWriteIt)) {
                shown.put(each, reference);
            }
        }
        return value;
    }

    /** A text with the names of secrets in place of their values. */
    String masked(String text) {
        String masked = text;
        for (Map.Entry<String, String> each : shown.entrySet()) {
            masked = masked.replace(each.getKey(), each.getValue());
        }
        return masked;
    }

    boolean areNone() {
        return shown.isEmpty();
    }

    /** The length of the longest text that is masked. */
    int longest() {
        return shown.keySet().stream().mapToInt(String::length).max().orElse(0);
    }
}
