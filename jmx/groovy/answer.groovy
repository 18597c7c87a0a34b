// Judges the function's answer and puts in its place the line that the frame client would write of it.

import com.fasterxml.jackson.databind.ObjectMapper
import groovy.json.JsonOutput
import groovy.transform.Field
import java.util.regex.Matcher
import org.apache.jmeter.samplers.SampleResult

@Field static final ObjectMapper JSON = new ObjectMapper()

String brokenCause(String exception, String message) {
    switch (exception) {
        case ~/.*ConnectTimeoutException.*/: return 'connect-timeout'
        case ~/.*(HttpHostConnect|ConnectException|NoRouteToHost|UnknownHost|PortUnreachable).*/: return 'connect'
        case ~/.*SocketTimeoutException.*/: return 'timeout'
        case ~/.*(RequestAborted|InterruptedIO).*/: return closedHere()
        default: return message.endsWith('Socket closed') ? closedHere() : 'reset'
    }
}

// By the plan's total time-out, or because the run is stopped at once.
String closedHere() {
    def group = ctx.threadGroup
    group.respondsTo('isRunning') && !group.isRunning() ? 'stopped' : 'timeout'
}

String header(String name) {
    Matcher found = prev.responseHeaders =~ /(?im)^\Q${name}\E:\s*(.*?)\s*$/
    return found.find() ? found.group(1) : null
}

Double serverTiming(String part) {
    Matcher found = (header('Server-Timing') ?: '') =~ /(?:^|,)\s*${part}\s*;\s*dur=([0-9.]+)/
    return found.find() ? found.group(1) as Double : null
}

int status = prev.responseCode.isInteger() ? prev.responseCode as int : 0
Integer faces = null
Boolean cold = null
String cause = null
if (!status) {
    cause = brokenCause(prev.responseCode, prev.responseMessage)
} else if (status != 200) {
    cause = "status-$status"
} else if (vars.get('accept') == 'application/json') {
    try {
        def answer = JSON.readTree(prev.responseData)
        faces = answer.path('faces').isArray() ? answer.path('faces').size() : null
        cold = answer.path('cold').isBoolean() ? answer.path('cold').booleanValue() : null
        cause = answer.path('image').asText() ? null : 'not-image'
    } catch (IOException ignored) {
        cause = 'not-json'
    }
} else {
    if (!(prev.contentType ?: '').startsWith(vars.get('accept')) || prev.responseData.length == 0) {
        cause = 'not-image'
    }
    try {
        faces = header('X-Faces') ? JSON.readTree(header('X-Faces')).size() : null
    } catch (IOException ignored) {
        faces = null
    }
    cold = header('X-Cold') ? header('X-Cold') == '1' : null
}
if (cause == null && (faces ?: 0) < (vars.get('min_faces') as int)) {
    cause = 'too-few-faces'
}

def line = [
    type: 'frame', user: prev.threadName, index: vars.get('index') as int, intended_ms: null, start_ms: prev.startTime,
    rtt_ms: prev.time, handler_ms: serverTiming('total'), model_ms: serverTiming('model'), status: status ?: null,
    ok: cause == null, cause: cause, censored: cause in ['timeout', 'stopped'], sent_bytes: prev.sentBytes,
    received_bytes: prev.bytesAsLong, faces: faces, cold: cold, verified: false,
]
['handler_ms', 'model_ms', 'cold', 'faces'].each { vars.put(it, line[it] == null ? '' : line[it] as String) }
prev.successful = cause == null
prev.responseCode = status ?: cause
prev.responseMessage = cause ?: 'OK'
prev.setResponseData(JsonOutput.toJson(line), 'UTF-8') // an image for each frame would make the tree unreadable
prev.dataType = SampleResult.TEXT // JMeter saves no other
