package framestorm.plan;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.jayway.jsonpath.JsonPath;
import com.jayway.jsonpath.JsonPathException;
import java.math.BigDecimal;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.codehaus.groovy.runtime.InvokerHelper;

/**
 * A JSONPath, and what one of its values has to be, if anything: $.faces[0], $.state == done, $.score >= 0.5. What stands
 * after the operator means what it means in client/expect.py; without quotes it may also be a text.
 */
final class JsonCondition implements Condition {
    private static final ObjectMapper STRICT = new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);
    private static final Pattern OPERATOR = Pattern.compile("\\s*(==|!=|<=|>=|<|>)\\s*");
    // JSONPath would take it for a part of a name, which no answer has; in a filter it stands by right.
    private static final Pattern SIGN_IN_NAME =
            Pattern.compile("(?s)\\$(?:\\.{1,2}[\\w*-]+|\\[(?!\\?)[^\\]]*\\])+\\s*[=<>!~].*");

    private final JsonPath path;
    private final String operator; // null if the value may be any
    private final String template; // of what it has to be
    private final boolean isText; // it is in quotes, so that it is no number or null

    JsonCondition(String text) {
        JsonPath before = null;
        Matcher operators = OPERATOR.matcher(text);
        while (before == null && operators.find()) { // a path may have operators too, in a filter
            before = pathOf(text.substring(0, operators.start()));
        }
        path = before == null ? compiled(text) : before;
        operator = before == null ? null : operators.group(1);
        String after = before == null ? "" : text.substring(operators.end()).trim();
        String quoted = quoted(after);
        isText = quoted != null;
        template = isText ? quoted : after;
        if (isOfNumbers() && (isText || number(template) == null && !template.contains("{"))) {
            throw new IllegalArgumentException("expected a number after " + operator + ", got '" + after + "'");
        }
    }

    private static JsonPath compiled(String text) {
        if (SIGN_IN_NAME.matcher(text).matches()) {
            throw new IllegalArgumentException("expected ==, !=, >=, <=, > or < after the path");
        }
        return JsonPath.compile(text);
    }

    // What a text in quotes says; null of all else.
    private static String quoted(String text) {
        Object value = text.startsWith("\"") ? parsed(text) : null;
        return value instanceof String ? (String) value : null;
    }

    private static Object parsed(String json) {
        try {
            return STRICT.readValue(json, Object.class);
        } catch (JsonProcessingException none) {
            return null;
        }
    }

    private static JsonPath pathOf(String text) {
        try {
            return compiled(text);
        } catch (JsonPathException | IllegalArgumentException ignored) {
            return null;
        }
    }

    private boolean isOfNumbers() {
        return operator != null && !operator.equals("==") && !operator.equals("!=");
    }

    @Override
    public boolean isMet(String answer, UnaryOperator<String> filled) {
        String wanted = filled.apply(template);
        return Values.read(answer, () -> {
            try {
                Object value = JsonPath.parse(Values.json(answer)).read(path);
                List<?> values = path.isDefinite() ? Collections.singletonList(value) : (List<?>) value;
                return values.stream().anyMatch(each -> isMetBy(each, wanted));
            } catch (RuntimeException ignored) { // it is no JSON, or has nothing there
                return false;
            }
        });
    }

    private boolean isMetBy(Object value, String wanted) {
        if (operator == null) {
            return value != null;
        }
        BigDecimal number = value instanceof Number && !isText ? number(wanted) : null;
        Integer order = number == null ? null : order((Number) value, number);
        if (!isOfNumbers()) {
            return (order != null && order == 0 || isEqual(value, wanted)) == operator.equals("==");
        }
        return order != null && (order == 0 ? operator.endsWith("=") : order < 0 == operator.startsWith("<"));
    }

    private boolean isEqual(Object value, String wanted) {
        if (isText) {
            return wanted.equals(value);
        } else if (value == null || wanted.equals("null")) {
            return value == null && wanted.equals("null");
        }
        String shown = InvokerHelper.toString(value); // lists and objects as [1, 2] and [a:b]
        boolean hasParts = value instanceof Collection || value instanceof Map;
        return shown.equals(wanted) || hasParts && shown.equals(InvokerHelper.toString(parsed(wanted)));
    }

    private static BigDecimal number(String text) {
        try {
            return new BigDecimal(text.trim());
        } catch (NumberFormatException none) {
            return null;
        }
    }

    // 10, 10.0 and 1e1 are one number. One with a fraction is compared as the nearest double, as most programs read it;
    // whole ones are compared to their last digit.
    private static int order(Number value, BigDecimal wanted) {
        double nearest = wanted.doubleValue();
        boolean hasFraction = value instanceof Double || value instanceof BigDecimal;
        return hasFraction && Double.isFinite(nearest)
            ? BigDecimal.valueOf(value.doubleValue()).compareTo(BigDecimal.valueOf(nearest))
            : new BigDecimal(value.toString()).compareTo(wanted);
    }
}
