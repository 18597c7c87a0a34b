// Judges the function's answer: by its status, by what the plan expects of its text, and one to a frame by its picture too.
// A short text takes its place: of a frame the line that the frame client would write, else how it begins.

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.ObjectMapper
import com.jayway.jsonpath.Configuration
import com.jayway.jsonpath.JsonPath
import com.jayway.jsonpath.JsonPathException
import com.jayway.jsonpath.Option
import framestorm.Body
import framestorm.Running
import groovy.json.JsonOutput
import groovy.transform.CompileStatic
import groovy.transform.Memoized
import java.util.regex.Matcher
import java.util.regex.Pattern
import java.util.regex.PatternSyntaxException
import javax.xml.parsers.DocumentBuilderFactory
import javax.xml.xpath.XPathConstants
import javax.xml.xpath.XPathExpressionException
import javax.xml.xpath.XPathFactory
import org.apache.jmeter.protocol.http.sampler.HTTPSampleResult
import org.apache.jmeter.samplers.SampleResult
import org.apache.jmeter.threads.JMeterVariables
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
        if (!isOfNumbers()) {
            return operator == null || (value.toString() == wanted) == (operator == '==')
        }
        if (!(value instanceof Number) || !wanted.isBigDecimal()) {
            return false
        }
        int order = value.toString().toBigDecimal() <=> wanted.toBigDecimal()
        return order == 0 ? operator.endsWith('=') : (order < 0) == operator.startsWith('<')
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

@CompileStatic // a third of the time, which counts at 1,500 answers a second
class Answer {
    static final ObjectMapper JSON = new ObjectMapper()
    static final int KEPT_BYTES = 200, WORKER_CHARACTERS = 200, TIMINGS_KEPT = 50, FRAMES_VALUES = 100_000
    // As the function under test of this kit calls its own times.
    static final Map<String, String> TIMINGS = [total: 'handler_ms', model: 'model_ms']
    static final Set<String> CODINGS = ['', 'identity', 'gzip', 'x-gzip', 'deflate', 'br'] as Set<String> // JMeter's
    static final Set<String> COMMON = ['start_ms', 'rtt_ms', 'intended_ms'] as Set<String>
    static final Pattern STATUSES = ~/[1-5xX][\dxX]{2}|[1-5]\d\d-[1-5]\d\d/
    static final Pattern NAME = ~/[a-z][a-z0-9_]{0,59}/
    final HTTPSampleResult result
    final JMeterVariables vars
    final Map<String, String> headers
    // The sample's further figures: those that the plan names in sample_variables are columns of samples.jtl.
    final Map<String, Object> figures = new LinkedHashMap<>()
    // Those whose names only the answer has: together they are one column, as JSON.
    final Map<String, Object> further = new LinkedHashMap<>()
    String cause

    Answer(HTTPSampleResult result, JMeterVariables vars) {
        this.result = result
        this.vars = vars
        headers = named(result.responseHeaders)
        figures.handler_ms = null
        figures.model_ms = null
        figures.cold = headers['x-cold'] == null ? null : headers['x-cold'] == '1'
        figures.faces = null
        figures.worker = headers['x-worker'] ?: redirectedTo()
        readServerTiming(headers['server-timing'])
    }

    // Each answer through OpenFaaS names its replica; after a redirect it is where the request ended up.
    String redirectedTo() {
        String authority = result.URL?.authority?.replaceFirst(/.*@/, '') // not the password
        return authority == null || vars.get('url').contains(authority) ? null : authority
    }

    static void checkConditions(JMeterVariables vars) {
        for (String name : ['expect', 'reject', 'figures']) {
            String condition = vars.get(name)
            try {
                if (condition) {
                    name == 'figures' ? JsonFigures.of(condition) : new Condition(condition)
                }
            } catch (JsonPathException | PatternSyntaxException | XPathExpressionException error) {
                String kind = error instanceof JsonPathException ? 'JSONPath'
                    : error instanceof XPathExpressionException ? 'XPath' : 'regular expression'
                throw new IllegalArgumentException("-J$name=$condition: not a valid $kind: ${(error.cause ?: error).message}")
            } catch (IllegalArgumentException error) {
                throw new IllegalArgumentException("-J$name=$condition: $error.message")
            }
        }
        String expected = vars.get('expect_status') ?: ''
        if (expected && !expected.split(',', -1).every { it.trim() ==~ STATUSES }) {
            throw new IllegalArgumentException("-Jexpect_status=$expected: expected statuses such as 2xx,304 or 200-299")
        }
    }

    void judge(Closure<Boolean> isStopped) {
        String accept = vars.get('accept') // of plans that send frames
        boolean isWhole = result.responseCode.isInteger()
        cause = isWhole ? statusCause() : broken(result.responseCode, result.responseMessage, isStopped)
        if (!cause && (accept || vars.get('expect') || vars.get('reject'))) {
            cause = Body.isCut() ? 'generator-limit'
                : isStillCoded() ? 'unknown-coding'
                : accept ? pictureCause(accept, vars.get('min_faces') as int) : textCause(vars.get('expect'), vars.get('reject'))
        }
        String wanted = vars.get('figures')
        if (wanted) {
            further.putAll(JsonFigures.of(wanted).read(result.responseDataAsString))
        }
        vars.put('further_figures', further ? JsonOutput.toJson(further) : '')
        Map<String, String> secrets = vars.getObject('secrets') as Map<String, String> ?: [:]
        figures.worker = figures.worker == null ? null : masked(figures.worker.toString(), secrets).take(WORKER_CHARACTERS)
        for (Map.Entry<String, Object> each : figures.entrySet()) {
            vars.put(each.key, each.value == null ? '' : each.value.toString())
        }
        for (String name : ['index', 'intended_ms']) {
            vars.put(name, vars.get(name) ?: '') // JMeter would write "null"
        }
        // An image for each frame, or a long text, would make the tree unreadable.
        String text = accept ? JsonOutput.toJson(line(isWhole)) : beginning(isWhole, secrets)
        if (secrets) { // what a listener may save of the request, and an answer that repeats it
            result.URL = new URL(masked(result.URL.toString(), secrets))
            result.requestHeaders = masked(result.requestHeaders, secrets)
            result.queryString = masked(result.queryString, secrets)
            result.responseHeaders = masked(result.responseHeaders, secrets)
        }
        result.successful = !cause
        result.responseCode = isWhole ? result.responseCode : cause
        result.responseMessage = cause ?: 'OK'
        result.setResponseData(text, 'UTF-8')
        result.dataType = SampleResult.TEXT // JMeter saves no other
        Body.release()
    }

    static String masked(String text, Map<String, String> secrets) {
        return secrets.inject(text) { String masked, String value, String name -> masked.replace(value, name) }
    }

    static Map<String, String> named(String lines) {
        Map<String, String> headers = [:]
        for (String line : lines.split('\n')) {
            int colon = line.indexOf(':')
            if (colon > 0) {
                String name = line.substring(0, colon).toLowerCase(Locale.ROOT)
                String value = line.substring(colon + 1).trim()
                String earlier = name == 'server-timing' ? headers.get(name) : null
                headers.put(name, earlier ? "$earlier, $value".toString() : value) // put is compiled statically, [] is not
            }
        }
        return headers
    }

    // https://www.w3.org/TR/server-timing/: db;dur=53, cache;desc="hit";dur=0.2
    void readServerTiming(String timings) {
        if (!timings) {
            return
        }
        // Possessive: a group that may go back takes stack for each parameter.
        Matcher match = timings =~ /(?:^|,)\s*([^\s;,="]+)((?:\s*+;\s*+[\w-]++\s*+=\s*+(?:"[^"]*+"|[^;,"]*+))*+)/
        while (match.find()) {
            Matcher length = match.group(2) =~ /(?i);\s*dur\s*=\s*"?([0-9]{1,18}(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,2})?)(?![\w.])/
            String part = match.group(1)
            String name = TIMINGS[part] ?: part.toLowerCase(Locale.ROOT).replaceAll(/[^a-z0-9]+/, '_') + '_ms'
            if (length.find() && name ==~ NAME && !COMMON.contains(name) && further.size() < TIMINGS_KEPT) {
                (figures.containsKey(name) ? figures : further).putIfAbsent(name, length.group(1) as Double)
            }
        }
    }

    String statusCause() {
        // A 301 to 303 makes a GET of the request, without its body: what answers then was asked something else.
        boolean sendsBody = (vars.get('method') ?: 'POST') in ['POST', 'PUT', 'PATCH']
        if (sendsBody && !result.requestHeaders.toLowerCase(Locale.ROOT).contains('content-length:')) {
            return 'redirected-as-get'
        }
        return isExpected(result.responseCode, vars.get('expect_status') ?: '200') ? null : "status-${result.responseCode}"
    }

    @Memoized
    static boolean isExpected(String status, String expected) { // such as 2xx,304 or 200-299
        return expected.split(',')*.trim().any { String each ->
            status ==~ each.replaceAll('[xX]', /\\d/) || (each.contains('-') && status >= each.take(3) && status <= each.drop(4))
        }
    }

    // JMeter takes off the codings that it knows, and passes over others, such as zstd.
    boolean isStillCoded() {
        String codings = headers['content-encoding']
        return codings != null && !CODINGS.containsAll(codings.toLowerCase(Locale.ROOT).split(/[\s,]+/) as List<String>)
    }

    String textCause(String expect, String reject) {
        String text = result.responseDataAsString
        return expect && !isMet(expect, text, false) ? 'expect-not-met' : reject && isMet(reject, text, true) ? 'reject-met' : null
    }

    boolean isMet(String condition, String text, boolean isMetByTooDeep) {
        Closure<String> filling = vars.getObject('filling') as Closure<String>
        Closure<String> filled = { String template -> filling ? filling(template) : template }
        try {
            return Condition.of(condition).isMet.call(text, filled)
        } catch (StackOverflowError | TooManyValues ignored) { // else the thread would end, and the request have no row
            return isMetByTooDeep
        }
    }

    static String broken(String exception, String message, Closure<Boolean> isStopped) {
        // By the plan's total time-out, or because the run is stopped at once.
        String closedHere = isStopped() ? 'stopped' : 'timeout'
        if (message =~ /Too many open files|Cannot assign requested address|Address not available/) {
            return 'generator-limit'
        }
        switch (exception) {
            case ~/.*ConnectTimeoutException.*/: return 'connect-timeout'
            case ~/.*(HttpHostConnect|ConnectException|NoRouteToHost|UnknownHost|PortUnreachable).*/: return 'connect'
            case ~/.*SocketTimeoutException.*/: return 'timeout'
            case ~/.*(RequestAborted|InterruptedIO).*/: return closedHere
            case ~/.*(ProtocolException|MessageConstraintException|ZipException|RedirectException).*/: return 'not-http'
            case ~/.*StringIndexOutOfBounds.*/: return 'not-http' // by JMeter, of a Content-Type with charset="
            case { message.contains('Brotli') }: return 'not-http' // an IOException, as if the connection broke
            case ~/.*(MalformedURL|URISyntax).*/: return 'exception'
            case { message.endsWith('Socket closed') }: return closedHere
            case { exception.contains('.SSL') && !(message =~ /(?i)reset|broken pipe/) }: return 'tls'
            default: return 'reset'
        }
    }

    // What is wrong with the picture of a frame, null if nothing; notes its faces.
    String pictureCause(String accept, int minFaces) {
        boolean isImage
        if (accept == 'application/json') {
            JsonNode answer = parsed(result.responseDataAsString)
            if (answer == null) {
                return 'not-json'
            }
            figures.faces = answer.path('faces').isArray() ? answer.path('faces').size() : null
            figures.cold = answer.path('cold').isBoolean() ? answer.path('cold').booleanValue() : null
            TIMINGS.each { String name, String figure ->
                double ms = answer.path('timings_ms').path(name).asDouble(-1)
                if (ms >= 0 && ms < 1e9d) {
                    figures.putIfAbsent(figure, ms)
                }
            }
            isImage = answer.path('image').asText()
        } else {
            figures.faces = headers['x-faces'] ? parsed(headers['x-faces'])?.size() : null
            isImage = (result.contentType ?: '').startsWith(accept) && result.responseData.length > 0
        }
        return !isImage ? 'not-image' : (figures.faces ?: 0) as int < minFaces ? 'too-few-faces' : null
    }

    static JsonNode parsed(String text) {
        try {
            return Values.read(text, FRAMES_VALUES) { JSON.readTree(text) }
        } catch (IOException | TooManyValues ignored) {
            return null
        }
    }

    String beginning(boolean isWhole, Map<String, String> secrets) {
        byte[] body = result.responseData
        if (!isWhole) { // an exception: what was caused by what, not the places in the code
            body = new String(body, 'UTF-8').readLines().findAll { !it.startsWith('\t') }.join('\n').getBytes('UTF-8')
        }
        // No secret is cut before it is looked for.
        int most = KEPT_BYTES + (secrets.keySet()*.length().max() ?: 0) * 4
        String text = masked(new String(body, 0, Math.min(body.length, most), 'UTF-8'), secrets).take(KEPT_BYTES)
        return cause ? text.replaceAll(/[^\p{Print}\s]/, '?') : text // of failures it is in the tree, to be read back
    }

    Map<String, Object> line(boolean isWhole) {
        String intendedMs = vars.get('intended_ms')
        Map<String, Object> common = [
            type: 'sample', label: result.sampleLabel, user: result.threadName, index: vars.get('index') as int,
            intended_ms: intendedMs ? intendedMs as long : null, start_ms: result.startTime, rtt_ms: result.time,
            status: isWhole ? result.responseCode as int : null, ok: cause == null, cause: cause,
            censored: cause == 'timeout' || cause == 'stopped', sent_bytes: result.sentBytes,
            received_bytes: result.bytesAsLong, verified: false,
        ] as Map<String, Object>
        return common + figures + further
    }
}

if (!prev) { // run once before all others, to find mistakes
    binding.getVariable('SampleResult').setIgnore()
    try {
        Answer.checkConditions(vars)
    } catch (IllegalArgumentException error) {
        ctx.thread.stop()
        ctx.engine.askThreadsToStop()
        log.error(JsonOutput.toJson([type: 'refused', why: error.message]))
    }
    return
}
def group = ctx.threadGroup
try {
    new Answer(prev, vars).judge { !(group.respondsTo('isRunning') ? group.isRunning() : Running.goesOn(ctx.thread)) }
} catch (RuntimeException | StackOverflowError error) { // none passes because it could not be judged
    prev.successful = false
    prev.responseMessage = 'exception'
    log.error('an answer could not be judged', error)
}
