// Judges the function's answer: by its status, and one to a frame by its picture too. A short text takes its place: of a
// frame the line that the frame client would write, else how it begins.

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.ObjectMapper
import groovy.json.JsonOutput
import groovy.transform.CompileStatic
import java.util.regex.Matcher
import org.apache.jmeter.protocol.http.sampler.HTTPSampleResult
import org.apache.jmeter.samplers.SampleResult
import org.apache.jmeter.threads.JMeterVariables

@CompileStatic // a third of the time, which counts at 1,500 answers a second
class Answer {
    static final ObjectMapper JSON = new ObjectMapper()
    static final int KEPT_BYTES = 200
    final HTTPSampleResult result
    final JMeterVariables vars
    final Map<String, String> headers
    // The sample's further figures: those that the plan names in sample_variables are columns of samples.jtl.
    final Map<String, Object> figures = new LinkedHashMap<>()
    String cause

    Answer(HTTPSampleResult result, JMeterVariables vars) {
        this.result = result
        this.vars = vars
        headers = named(result.responseHeaders)
        figures.handler_ms = serverTiming('total')
        figures.model_ms = serverTiming('model')
        figures.cold = headers['x-cold'] == null ? null : headers['x-cold'] == '1'
        figures.faces = null
        figures.worker = headers['x-worker'] ?: redirectedTo()
    }

    // Each answer through OpenFaaS names its replica; after a redirect it is where the request ended up.
    String redirectedTo() {
        String authority = result.URL?.authority
        return authority == null || vars.get('url').contains(authority) ? null : authority
    }

    void judge(Closure<Boolean> isStopped) {
        String accept = vars.get('accept') // of plans that send frames
        boolean isWhole = result.responseCode.isInteger()
        cause = isWhole ? statusCause() : broken(result.responseCode, result.responseMessage, isStopped)
        if (accept && !cause) {
            cause = pictureCause(accept, vars.get('min_faces') as int)
        }
        for (Map.Entry<String, Object> each : figures.entrySet()) {
            vars.put(each.key, each.value == null ? '' : each.value.toString())
        }
        for (String name : ['index', 'intended_ms']) {
            vars.put(name, vars.get(name) ?: '') // JMeter would write "null"
        }
        // An image for each frame, or a long text, would make the tree unreadable.
        String text = accept ? JsonOutput.toJson(line(isWhole)) : beginning()
        result.successful = !cause
        result.responseCode = isWhole ? result.responseCode : cause
        result.responseMessage = cause ?: 'OK'
        result.setResponseData(text, 'UTF-8')
        result.dataType = SampleResult.TEXT // JMeter saves no other
    }

    static Map<String, String> named(String lines) {
        Map<String, String> headers = [:]
        for (String line : lines.split('\n')) {
            int colon = line.indexOf(':')
            if (colon > 0) {
                headers[line.substring(0, colon).toLowerCase(Locale.ROOT)] = line.substring(colon + 1).trim()
            }
        }
        return headers
    }

    Double serverTiming(String part) {
        String timings = headers['server-timing']
        if (timings == null) {
            return null
        }
        Matcher match = timings =~ /(?:^|,)\s*${part}\s*;\s*dur=([0-9.]+)/
        return match.find() ? match.group(1) as Double : null
    }

    String statusCause() {
        // A 301 to 303 makes a GET of the POST, without its body: what answers then was asked something else.
        boolean isPost = result.requestHeaders.toLowerCase(Locale.ROOT).contains('content-length:')
        return !isPost ? 'redirected-as-get' : result.responseCode == '200' ? null : "status-${result.responseCode}"
    }

    static String broken(String exception, String message, Closure<Boolean> isStopped) {
        // By the plan's total time-out, or because the run is stopped at once.
        String closedHere = isStopped() ? 'stopped' : 'timeout'
        switch (exception) {
            case ~/.*ConnectTimeoutException.*/: return 'connect-timeout'
            case ~/.*(HttpHostConnect|ConnectException|NoRouteToHost|UnknownHost|PortUnreachable).*/: return 'connect'
            case ~/.*SocketTimeoutException.*/: return 'timeout'
            case ~/.*(RequestAborted|InterruptedIO).*/: return closedHere
            default: return message.endsWith('Socket closed') ? closedHere : 'reset'
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
            isImage = answer.path('image').asText()
        } else {
            figures.faces = headers['x-faces'] ? parsed(headers['x-faces'])?.size() : null
            isImage = (result.contentType ?: '').startsWith(accept) && result.responseData.length > 0
        }
        return !isImage ? 'not-image' : (figures.faces ?: 0) as int < minFaces ? 'too-few-faces' : null
    }

    static JsonNode parsed(String text) {
        try {
            return JSON.readTree(text)
        } catch (IOException ignored) {
            return null
        }
    }

    String beginning() {
        byte[] body = result.responseData
        String text = new String(body, 0, Math.min(body.length, KEPT_BYTES), 'UTF-8')
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
        return common + figures
    }
}

if (!prev) { // run once before all others, for its compiling only
    binding.getVariable('SampleResult').setIgnore()
    return
}
def group = ctx.threadGroup
new Answer(prev, vars).judge { !(group.respondsTo('isRunning') ? group.isRunning() : ctx.thread.@running) }
