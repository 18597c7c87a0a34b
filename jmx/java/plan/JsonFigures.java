package framestorm.plan;

import com.jayway.jsonpath.Configuration;
import com.jayway.jsonpath.DocumentContext;
import com.jayway.jsonpath.JsonPath;
import com.jayway.jsonpath.JsonPathException;
import com.jayway.jsonpath.Option;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** What samples carry of a JSON answer, by name: tokens=$.usage.tokens, cost=$.usage.cost. */
final class JsonFigures {
    static final Configuration LENIENT = Configuration.defaultConfiguration().addOptions(Option.SUPPRESS_EXCEPTIONS);
    private static final Map<String, JsonFigures> KNOWN = new ConcurrentHashMap<>();

    private final Map<String, JsonPath> paths = new LinkedHashMap<>();

    /** The figures of a text, which is read once. */
    static JsonFigures of(String text) {
        JsonFigures known = KNOWN.get(text);
        return known == null ? KNOWN.computeIfAbsent(text, JsonFigures::new) : known;
    }

    private JsonFigures(String text) {
        for (String each : text.split(",\\s*(?=\\w+\\s*=\\s*\\$)")) {
            String[] sides = each.split("\\s*=\\s*", 2);
            if (sides.length < 2) {
                throw new IllegalArgumentException("'" + each + "' is not of the form name=JSONPath");
            }
            paths.put(sides[0].trim(), JsonPath.compile(sides[1].trim()));
        }
    }

    /** The figures that an answer has; none if it is no JSON. */
    Map<String, Object> read(String answer) {
        try {
            return Values.read(answer, () -> readJson(answer));
        } catch (JsonPathException | IllegalArgumentException | StackOverflowError | TooManyValues ignored) {
            return Map.of();
        }
    }

    private Map<String, Object> readJson(String answer) {
        DocumentContext document = JsonPath.using(LENIENT).parse(Values.json(answer));
        Map<String, Object> figures = new LinkedHashMap<>();
        paths.forEach((name, path) -> {
            Object value;
            try {
                value = document.read(path);
            } catch (JsonPathException none) { // such as the mean of no values
                return;
            }
            List<?> values = value instanceof List ? (List<?>) value : value == null ? List.of() : List.of(value);
            values.stream().filter(JsonFigures::isFinite).findFirst().ifPresent(each -> figures.put(name, each));
        });
        return figures;
    }

    private static boolean isFinite(Object value) { // JSON has no other numbers
        return value instanceof Number && Double.isFinite(((Number) value).doubleValue());
    }
}
