// Judges the function's answer: by its status, by what the plan expects of its text, and one to a frame by its picture too.
// A short text takes its place: of a frame the line that the frame client would write, else how it begins.

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.ObjectMapper
import com.jayway.jsonpath.JsonPathException
import framestorm.Body
import framestorm.Condition
import framestorm.JsonFigures
import framestorm.Running
import framestorm.TooManyValues
import framestorm.Values
import groovy.json.JsonOutput
import groovy.transform.CompileStatic
import groovy.transform.Memoized
import java.util.regex.Matcher
import java.util.regex.Pattern
import java.util.regex.PatternSyntaxException
import javax.xml.xpath.XPathExpressionException
import org.apache.jmeter.protocol.http.sampler.HTTPSampleResult
import org.apache.jmeter.samplers.SampleResult
import org.apache.jmeter.threads.JMeterVariables

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
            case { message.contains('the server closed while the body was sent') }: return 'closed-early'
            case { message.contains('the server had closed this connection, idle') }: return 'idle-closed'
            case { message.contains('the server speaks HTTP/2 only') }: return 'http2-only'
            case { message.contains('does not specify a valid host name') }: return 'no-server'
            case ~/.*ConnectTimeoutException.*/: return 'connect-timeout'
            case ~/.*(HttpHostConnect|ConnectException|NoRouteToHost|UnknownHost|PortUnreachable).*/: return 'connect'
            case ~/.*SocketTimeoutException.*/: return 'timeout'
            case ~/.*(RequestAborted|InterruptedIO).*/: return closedHere
            case ~/.*(ProtocolException|ZipException|EOFException|RedirectException).*/: return 'not-http'
            case ~/.*(MessageConstraint|MalformedChunk).*/: return 'not-http'
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
