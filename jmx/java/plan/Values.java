package framestorm.plan;

import java.util.StringJoiner;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Reads the JSON or XML of an answer. Each of its values takes some hundred bytes: those of long answers are read by one user
 * at a time, and of longer ones not at all.
 */
final class Values {
    private static final int MANY = 10_000;
    private static final int MOST = 1_000_000;
    private static final Pattern EVENTS = Pattern.compile("\\A\\s*+(?:data|event|id|retry)?:");
    private static final String DATA = "data:";
    private static final Pattern LINES = Pattern.compile("\\A\\s*+\\{[^\\n]*\\}\\s*\\n\\s*\\{");

    static <T> T read(String answer, Supplier<T> reading) {
        return read(answer, MOST, reading);
    }

    static <T> T read(String answer, int most, Supplier<T> reading) {
        int values = 0;
        for (int i = 0; answer.length() > MANY && i < answer.length(); i++) {
            char each = answer.charAt(i);
            if (each == ',' || each == '{' || each == '[' || each == '<') {
                values++;
            }
        }
        if (values > most) {
            throw new TooManyValues();
        }
        return values > MANY ? readAlone(reading) : reading.get();
    }

    private static synchronized <T> T readAlone(Supplier<T> reading) {
        return reading.get();
    }

    /**
     * JSON for a JSONPath: lines (NDJSON) or server-sent events with an object each, of which it would read the first or
     * none, as an array.
     */
    static String json(String text) {
        String answer = Given.withoutMark(text);
        if (EVENTS.matcher(answer).find()) {
            return ofEvents(answer);
        }
        return !LINES.matcher(answer).find() ? answer
            : answer.lines().filter(each -> !each.trim().isEmpty()).collect(Collectors.joining(",", "[", "]"));
    }

    /**
     * The objects of events as an array; the data lines of an event are one text, as the HTML standard has it. Servers that
     * leave out the empty lines between events are understood too: within a JSON text nothing begins behind an end.
     */
    private static String ofEvents(String answer) {
        StringJoiner objects = new StringJoiner(",", "[", "]");
        StringBuilder data = new StringBuilder();
        String last = "";
        // The last event may lack the empty line that ends it.
        for (String line : (Iterable<String>) Stream.concat(answer.lines(), Stream.of(""))::iterator) {
            String more = line.startsWith(DATA) ? line.substring(DATA.length()).trim() : "";
            boolean isNext = last.endsWith("}") && (more.startsWith("{") || more.startsWith("["));
            if (line.isEmpty() || isNext) {
                if (data.indexOf("{") == 0) {
                    objects.add(data);
                }
                data.setLength(0);
            }
            if (!more.isEmpty()) {
                data.append(more).append('\n');
                last = more;
            }
        }
        return objects.toString();
    }

    private Values() {
    }
}
