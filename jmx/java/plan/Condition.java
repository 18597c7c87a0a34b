package framestorm.plan;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.xml.xpath.XPathExpressionException;

/**
 * A condition on the text of an answer: a JSONPath, an XPath (//face), regex:…, or text. A text, and what stands after the
 * operator of a JSONPath, may have {column} in it, which is filled in from the row of the request.
 */
@FunctionalInterface
interface Condition {
    Pattern KIND = Pattern.compile("(?s)(jsonpath|xpath|regex|text):(.*)");
    Map<String, Condition> KNOWN = new ConcurrentHashMap<>();

    /** Whether an answer meets it; `filled` fills in a text. */
    boolean isMet(String answer, UnaryOperator<String> filled);

    /** The condition of a text, which is read once. */
    static Condition of(String text) throws XPathExpressionException {
        Condition known = KNOWN.get(text);
        if (known == null) {
            known = read(text);
            KNOWN.put(text, known);
        }
        return known;
    }

    private static Condition read(String text) throws XPathExpressionException {
        Matcher kind = KIND.matcher(text);
        boolean isNamed = kind.matches();
        String rest = isNamed ? kind.group(2) : text;
        switch (isNamed ? kind.group(1) : text.startsWith("$") ? "jsonpath" : text.startsWith("/") ? "xpath" : "text") {
            case "jsonpath":
                return new JsonCondition(rest);
            case "xpath":
                return new XmlCondition(rest);
            case "regex":
                Pattern pattern = Pattern.compile(rest);
                return (answer, filled) -> pattern.matcher(answer).find();
            default:
                return (answer, filled) -> answer.contains(filled.apply(rest));
        }
    }
}
