// Turns the lines of a client (client/sample.json) into sub-results of the user's sample, each with its own label, and says
// why a user failed.

import groovy.json.JsonException
import groovy.json.JsonSlurper
import groovy.transform.Field
import org.apache.jmeter.samplers.SampleResult

@Field static final int NO_EXIT_STATUS = 500 // JMeter's word for a process that it could not start, or interrupted
@Field static final int TIMED_OUT = 124 // exit status of coreutils' timeout
@Field static final int KILLED = 137 // by timeout, when the client did not end on request; or by anyone, at any time

SampleResult sampleResult(Map sample, String line) {
    long start = Math.floor(sample.start_ms as double) as long
    def result = SampleResult.createTestSample(start, start + Math.round(sample.rtt_ms as double))
    result.successful = sample.ok
    result.responseCode = sample.status ?: sample.cause
    result.responseMessage = sample.cause ?: 'OK'
    result.setResponseData(line, 'UTF-8')
    result.dataType = SampleResult.TEXT
    result.bodySize = sample.received_bytes as long
    result.sentBytes = sample.sent_bytes as long
    result.threadName = prev.threadName
    result.groupThreads = prev.groupThreads
    result.allThreads = prev.allThreads
    return result
}

int exit = prev.responseCode as int
boolean overdue = prev.time >= (vars.get('user_timeout_s') as BigDecimal) * 1000
String output = prev.responseDataAsString
List<String> lines = output.readLines()
boolean cutOff = exit != 0 && output && !output.endsWith('\n') // a client that was killed leaves its last line half written
def json = new JsonSlurper()
Map user = null
boolean garbage = false

lines.eachWithIndex { line, number ->
    try {
        def record = json.parseText(line)
        if (record.type == 'sample') {
            def sample = sampleResult(record, line)
            prev.addRawSubResult(sample)
            sample.sampleLabel = Objects.requireNonNull(record.label) // after adding, which renames it
        } else if (record.type == 'user') {
            user = record
        } else {
            garbage = true
        }
    } catch (JsonException | IllegalArgumentException | NullPointerException | ClassCastException | MissingPropertyException ignored) {
        garbage |= !(cutOff && number == lines.size() - 1)
    }
}

String cause =
    garbage ? 'not-json-lines'
    : exit == NO_EXIT_STATUS ? (prev.responseMessage.contains('interrupted') ? 'stopped' : 'not-started')
    : exit == TIMED_OUT || exit == KILLED && overdue ? 'user-timeout'
    : user?.cause ?: (exit != 0 ? "exit-$exit" : user == null ? 'no-user-line' : null)
if (cause) {
    prev.successful = false
    prev.responseMessage = cause
}
if (garbage) {
    log.warn('user failed, its client printed what is no JSON line: {}', output.take(500))
    prev.setResponseData(output.replaceAll(/[^\p{Print}\t\n]/, '?'), 'UTF-8') // the XML tree would not be read back
}
