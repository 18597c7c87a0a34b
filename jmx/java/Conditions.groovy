package framestorm

// What a plan expects of an answer's text, and the figures that it takes from one, for jmx/groovy/answer.groovy.

import com.jayway.jsonpath.Configuration
import com.jayway.jsonpath.JsonPath
import com.jayway.jsonpath.JsonPathException
import com.jayway.jsonpath.Option
import groovy.transform.CompileStatic
import groovy.transform.Memoized
import java.util.regex.Matcher
import java.util.regex.Pattern
import javax.xml.parsers.DocumentBuilderFactory
import javax.xml.xpath.XPathConstants
import javax.xml.xpath.XPathExpressionException
import javax.xml.xpath.XPathFactory
import org.w3c.dom.Document
import org.w3c.dom.NodeList
import org.xml.sax.InputSource
import org.xml.sax.SAXException

@CompileStatic
class TooManyValues extends RuntimeException {
}

// Reads the JSON or XML of an answer. Each of its values takes some hundred bytes: those of long answers are read by one
// user at a time, and of longer ones not at all.
@CompileStatic
class Values {
    static final int MANY = 10_000, MOST = 1_000_000

    static <T> T read(String answer, int most = MOST, Closure<T> reading) {
        int values = 0
        for (int i = 0; answer.length() > MANY && i < answer.length(); i++) {
            char each = answer.charAt(i)
            if (each == (char) ',' || each == (char) '{' || each == (char) '[' || each == (char) '<') {
                values++
            }
        }
        if (values > most) {
            throw new TooManyValues()
        }
        return values > MANY ? readAlone(reading) : reading.call()
    }

    // JSON for a JSONPath: lines (NDJSON) or server-sent events with an object each, of which it would read the first or
    // none, as an array.
    static String json(String text) {
        String answer = text.startsWith('\uFEFF') ? text.substring(1) : text // as Windows writes it
        if (answer =~ /\A(?:data|event|id|retry)?:/) {
            return "[${answer.readLines().findAll { it ==~ /data: *\{.*/ }*.substring(5).join(',')}]"
        }
        boolean isLines = answer =~ /\A\s*+\{[^\n]*\}\s*\n\s*\{/
        return isLines ? "[${answer.readLines().findAll { it.trim() }.join(',')}]" : answer
    }

    private static synchronized <T> T readAlone(Closure<T> reading) {
        return reading.call()
    }
}

// A JSONPath, and what one of its values has to be, if anything: $.faces[0], $.state == done, $.score >= 0.5.
@CompileStatic
class JsonCondition {
    static final Pattern OPERATOR = ~/\s+(==|!=|<=|>=|<|>)\s+/
    final JsonPath path
    final String operator, wanted

    JsonCondition(String text) {
        Matcher operators = OPERATOR.matcher(text)
        while (path == null && operators.find()) { // a path may have operators too, in a filter
            path = pathOf(text.substring(0, operators.start()))
            operator = path == null ? null : operators.group(1)
            wanted = path == null ? null : text.substring(operators.end())
        }
        path = path ?: JsonPath.compile(text)
        if (isOfNumbers() && !wanted.isBigDecimal() && !wanted.contains('{')) {
            throw new IllegalArgumentException("expected a number after $operator, got '$wanted'")
        }
    }

    static JsonPath pathOf(String text) {
        try {
            return JsonPath.compile(text)
        } catch (JsonPathException ignored) {
            return null
        }
    }

    boolean isOfNumbers() {
        return operator != null && !(operator in ['==', '!='])
    }

    boolean isMet(String answer, String wanted) {
        try {
            Object value = JsonPath.using(Condition.LENIENT).parse(Values.json(answer)).read(path)
            List<?> values = path.definite ? [value] : value as List<?>
            return values.any { it != null && isMetBy(it, wanted) }
        } catch (JsonPathException | IllegalArgumentException ignored) { // it is no JSON
            return false
        }
    }

    private boolean isMetBy(Object value, String wanted) {
        if (operator == null) {
            return true
        }
        boolean areNumbers = value instanceof Number && wanted.isBigDecimal()
        if (!isOfNumbers()) {
            boolean isEqual = value.toString() == wanted || areNumbers && order(value as Number, wanted) == 0
            return isEqual == (operator == '==')
        }
        int order = areNumbers ? order(value as Number, wanted) : 0
        return areNumbers && (order == 0 ? operator.endsWith('=') : (order < 0) == operator.startsWith('<'))
    }

    // 10, 10.0 and 1e1 are one number. One with a fraction is compared as the nearest double, as most programs read it;
    // whole ones are compared to their last digit.
    private static int order(Number value, String wanted) {
        double nearest = wanted.toDouble(), read = value.doubleValue()
        return (value instanceof Double || value instanceof BigDecimal) && Double.isFinite(nearest)
            ? BigDecimal.valueOf(read) <=> BigDecimal.valueOf(nearest)
            : value.toString().toBigDecimal() <=> wanted.toBigDecimal()
    }
}

// A condition on the text of an answer: a JSONPath, an XPath (//face), regex:…, or text. A text, and what stands after the
// operator of a JSONPath, may have {column} in it, which is filled in from the row of the request.
@CompileStatic
class Condition {
    static final Configuration LENIENT = Configuration.defaultConfiguration().addOptions(Option.SUPPRESS_EXCEPTIONS)
    static final Map<String, String> FIRST = [jsonpath: '$', xpath: '/'] // else it is text
    final Closure<Boolean> isMet // by an answer, with what fills in a text

    @Memoized // computeIfAbsent would create a proxy of its closure for each answer
    static Condition of(String condition) {
        return new Condition(condition)
    }

    Condition(String condition) {
        Matcher parts = condition =~ /(?s)(jsonpath|xpath|regex|text):(.*)/
        String kind = FIRST.find { condition.startsWith(it.value) }?.key
        String rest = condition
        if (parts.matches()) {
            kind = parts.group(1)
            rest = parts.group(2)
        }
        if (kind == 'jsonpath') {
            JsonCondition json = new JsonCondition(rest)
            isMet = { String answer, Closure<String> filled ->
                String wanted = json.wanted == null ? null : filled(json.wanted)
                Values.read(answer) { json.isMet(answer, wanted) }
            }
        } else if (kind == 'xpath') {
            XPathFactory.newInstance().newXPath().compile(rest) // one for each thread, this one for its mistakes
            isMet = { String answer, Closure<String> filled -> Values.read(answer) { hasXml(answer, rest) } }
        } else if (kind == 'regex') {
            Pattern pattern = Pattern.compile(rest)
            isMet = { String answer, Closure<String> filled -> pattern.matcher(answer).find() }
        } else {
            isMet = { String answer, Closure<String> filled -> answer.contains(filled(rest)) }
        }
    }

    static boolean hasXml(String answer, String path) {
        DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance()
        factory.setFeature('http://apache.org/xml/features/disallow-doctype-decl', true)
        try {
            def builder = factory.newDocumentBuilder()
            builder.errorHandler = null // else it prints
            Document document = builder.parse(new InputSource(new StringReader(answer)))
            def expression = XPathFactory.newInstance().newXPath().compile(path)
            try {
                return ((NodeList) expression.evaluate(document, XPathConstants.NODESET)).length > 0
            } catch (XPathExpressionException ignored) { // its value is no set of nodes
                return (Boolean) expression.evaluate(document, XPathConstants.BOOLEAN)
            }
        } catch (SAXException ignored) { // it is no XML
            return false
        }
    }
}

// What samples carry of a JSON answer, by name: `tokens=$.usage.tokens, cost=$.usage.cost`.
@CompileStatic
class JsonFigures {
    final Map<String, JsonPath> paths = [:]

    @Memoized
    static JsonFigures of(String text) {
        return new JsonFigures(text)
    }

    JsonFigures(String text) {
        for (String each : text.split(/,\s*(?=\w+\s*=\s*\$)/)) {
            List<String> sides = each.split(/\s*=\s*/, 2) as List<String>
            if (sides.size() < 2) {
                throw new IllegalArgumentException("'$each' is not of the form name=JSONPath")
            }
            paths[sides[0].trim()] = JsonPath.compile(sides[1].trim())
        }
    }

    static boolean isFinite(Object value) {
        return value instanceof Number && Double.isFinite(((Number) value).doubleValue())
    }

    Map<String, Object> read(String answer) {
        try {
            return Values.read(answer) {
                def parsed = JsonPath.using(Condition.LENIENT).parse(Values.json(answer))
                paths.collectEntries { String name, JsonPath path ->
                    Object value = parsed.read(path)
                    [name, value instanceof List ? value.find { isFinite(it) } : value]
                }.findAll { isFinite(it.value) } as Map<String, Object> // JSON has no other numbers
            }
        } catch (JsonPathException | IllegalArgumentException | StackOverflowError | TooManyValues ignored) { // it is no JSON
            return [:]
        }
    }
}
