package framestorm.plan;

import com.jayway.jsonpath.JsonPath;
import com.jayway.jsonpath.JsonPathException;
import java.math.BigDecimal;
import java.util.Collections;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.codehaus.groovy.runtime.InvokerHelper;

/** A JSONPath, and what one of its values has to be, if anything: $.faces[0], $.state == done, $.score >= 0.5. */
final class JsonCondition implements Condition {
    private static final Pattern OPERATOR = Pattern.compile("\\s+(==|!=|<=|>=|<|>)\\s+");

    private final JsonPath path;
    private final String operator; // null if the value may be any
    private final String template; // of what it has to be

    JsonCondition(String text) {
        JsonPath before = null;
        Matcher operators = OPERATOR.matcher(text);
        while (before == null && operators.find()) { // a path may have operators too, in a filter
            before = pathOf(text.substring(0, operators.start()));
        }
        path = before == null ? JsonPath.compile(text) : before;
        operator = before == null ? null : operators.group(1);
        template = before == null ? "" : text.substring(operators.end());
        if (isOfNumbers() && number(template) == null && !template.contains("{")) {
            throw new IllegalArgumentException("expected a number after " + operator + ", got '" + template + "'");
        }
    }

    private static JsonPath pathOf(String text) {
        try {
            return JsonPath.compile(text);
        } catch (JsonPathException ignored) {
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
                Object value = JsonPath.using(JsonFigures.LENIENT).parse(Values.json(answer)).read(path);
                List<?> values = path.isDefinite() ? Collections.singletonList(value) : (List<?>) value;
                return values.stream().anyMatch(each -> each != null && isMetBy(each, wanted));
            } catch (JsonPathException | IllegalArgumentException ignored) { // it is no JSON
                return false;
            }
        });
    }

    private boolean isMetBy(Object value, String wanted) {
        if (operator == null) {
            return true;
        }
        BigDecimal number = value instanceof Number ? number(wanted) : null;
        Integer order = number == null ? null : order((Number) value, number);
        if (!isOfNumbers()) {
            // Lists and objects as [1, 2] and [a:b].
            boolean isEqual = InvokerHelper.toString(value).equals(wanted) || order != null && order == 0;
            return isEqual == operator.equals("==");
        }
        return order != null && (order == 0 ? operator.endsWith("=") : order < 0 == operator.startsWith("<"));
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
