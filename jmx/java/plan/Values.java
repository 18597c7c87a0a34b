package framestorm.plan;

import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Reads the JSON or XML of an answer. Each of its values takes some hundred bytes: those of long answers are read by one user
 * at a time, and of longer ones not at all.
 */
final class Values {
    private static final int MANY = 10_000;
    private static final int MOST = 1_000_000;
    private static final Pattern EVENTS = Pattern.compile("\\A(?:data|event|id|retry)?:");
    private static final Pattern EVENT = Pattern.compile("data: *\\{.*");
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
            return answer.lines().filter(each -> EVENT.matcher(each).matches()).map(each -> each.substring("data:".length()))
                .collect(Collectors.joining(",", "[", "]"));
        }
        return !LINES.matcher(answer).find() ? answer
            : answer.lines().filter(each -> !each.trim().isEmpty()).collect(Collectors.joining(",", "[", "]"));
    }

    private Values() {
    }
}
