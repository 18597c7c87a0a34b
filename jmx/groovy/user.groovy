// Turns the lines of a client (client/sample.json) into sub-results of the user's sample, each with its own label, and says
// why a user failed. A line needs label, start_ms, rtt_ms and ok only; the rest is filled in here. What cannot be used is
// left out and counted in the user's last line, and the user has failed: nothing is lost in silence.

import groovy.json.JsonOutput
import groovy.json.JsonSlurper
import groovy.transform.Field
import java.util.concurrent.atomic.AtomicLong
import org.apache.jmeter.samplers.SampleResult
import org.apache.jmeter.util.JMeterUtils

@Field static final int NO_EXIT_STATUS = 500 // JMeter's word for a process that it could not start, or interrupted
@Field static final int TIMED_OUT = 124 // exit status of coreutils' timeout
@Field static final List<Integer> NOT_STARTED = [126, 127] // of a shell and of timeout: not executable, not found
@Field static final int KILLED = 137 // by timeout, when the client did not end on request; or by anyone, at any time
@Field static final int CLIENT_SERVER_ENDED = 113 // exit status of client/launch.pl
@Field static final long NEAR_MS = 3_600_000 // a start further from the user's own is in other units, or of another clock
@Field static final Map<String, Class> REQUIRED = [label: String, start_ms: Number, rtt_ms: Number, ok: Boolean]
@Field static final Map<String, String> IN_WORDS = [String: 'text', Number: 'number', Boolean: 'boolean']
@Field static final List<String> OF_THE_KIT = ['user', 'all'] // labels that criteria give other meanings
@Field static final List<String> NO_FIGURES = ['host', 'thread', 'source', 'user', 'index']
@Field static final String WORD = '[a-z][a-z0-9]*(-[a-z0-9]+)*' // of framestorm/model/cause.py
@Field static final AtomicLong USERS = new AtomicLong()

// The sample of a client's line with all common fields. `problems` gets what had to be left out.
Map<String, Object> completed(Map<String, Object> line, String user, int index, List<String> problems) {
    for (each in REQUIRED) {
        if (!each.value.isInstance(line[each.key])) {
            throw new IllegalArgumentException("has no $each.key with a ${IN_WORDS[each.value.simpleName]} (a sample is one line)")
        }
    }
    if (line.rtt_ms < 0 || !line.label) {
        throw new IllegalArgumentException('has an empty label or an rtt_ms below 0')
    }
    if (line.rtt_ms > NEAR_MS + prev.time) {
        throw new IllegalArgumentException('has an rtt_ms longer than the program ran')
    }
    if (Math.abs((line.start_ms as double) - prev.startTime) > NEAR_MS + prev.time) {
        throw new IllegalArgumentException("has start_ms $line.start_ms, which is not about the present time in ms since 1970")
    }
    String cause = line.cause == null ? null : legible(line.cause)
    Map<String, Object> common = [
        type: 'sample', label: line.label in OF_THE_KIT ? "$line.label (label)" as String : line.label,
        user: user, index: line.user == user && line.index instanceof Integer ? line.index : index,
        intended_ms: line.intended_ms instanceof Number ? line.intended_ms : null,
        start_ms: line.start_ms, rtt_ms: line.rtt_ms, status: line.status instanceof Integer ? line.status : null, ok: line.ok,
        cause: line.ok ? null : cause ?: 'unknown', censored: line.censored instanceof Boolean ? line.censored : cause == 'timeout',
        sent_bytes: line.sent_bytes instanceof Number ? line.sent_bytes as long : null,
        received_bytes: line.received_bytes instanceof Number ? line.received_bytes as long : null,
    ]
    for (each in line) {
        if (!common.containsKey(each.key) || each.key in NO_FIGURES && line.user != user) {
            if (!(each.key ==~ /[a-z][a-z0-9_]{0,59}/) || each.key in NO_FIGURES) {
                problems.add("'$each.key' cannot be the name of a figure: a-z, 0-9 and _, and not ${NO_FIGURES.join(', ')}" as String)
            } else if (each.value instanceof Map || each.value instanceof List) {
                problems.add("the figure $each.key is not a number, a text or a boolean" as String)
            } else {
                common[each.key] = each.value
            }
        }
    }
    return common
}

// A client's own words, for tables and terminals.
String legible(Object text) {
    return text.toString().replaceAll(/\s+/, ' ').take(200).replaceAll(/\p{C}/, '?')
}

SampleResult sampleResult(Map sample) {
    long start = Math.floor(sample.start_ms as double) as long
    def result = SampleResult.createTestSample(start, start + Math.round(sample.rtt_ms as double))
    result.successful = sample.ok
    result.responseCode = sample.status ?: sample.cause ?: 'OK'
    result.responseMessage = sample.cause ?: 'OK'
    result.setResponseData(JsonOutput.toJson(sample), 'UTF-8')
    result.dataType = SampleResult.TEXT
    result.bodySize = sample.received_bytes ?: 0L
    result.sentBytes = sample.sent_bytes ?: 0L
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
String name = "${JMeterUtils.localHostName}-${USERS.incrementAndGet()}-$prev.startTime" // as <host>-<process>-<start>
Map user = null
int samples = 0
Map<String, Integer> causes = [:]
List<String> problems = [] // the first of them
int badLines = 0

lines.eachWithIndex { line, number ->
    if (line.trim().empty) {
        return
    }
    List<String> ofLine = []
    try {
        def record = json.parseText(line)
        if (!(record instanceof Map) || !(record.type in [null, 'sample', 'user'])) {
            throw new IllegalArgumentException('is not a JSON object with the fields of a sample')
        }
        name = record.user ==~ /[\w.-]+-\d+-\d{13}/ ? record.user : name // of a client of the kit
        if (record.type == 'user') {
            user = record
        } else {
            def sample = completed(record, name, samples, ofLine)
            def result = sampleResult(sample)
            prev.addRawSubResult(result)
            result.sampleLabel = sample.label // after adding, which renames it
            samples++
            if (sample.cause) {
                causes.merge(sample.cause, 1) { a, b -> a + b }
            }
        }
    } catch (RuntimeException | StackOverflowError error) { // the latter by JSON that is nested without end
        if (!cutOff || number < lines.size() - 1) {
            ofLine.add(error instanceof IllegalArgumentException ? error.message : 'is not JSON')
        }
    }
    if (ofLine && badLines++ < 3) {
        // It goes to terminals too.
        problems.add("line ${number + 1}, ${line.take(80)}: ${ofLine.join('; ')}".replaceAll(/\p{C}/, '?') as String)
    }
}

String cause =
    badLines ? 'not-json-lines'
    : exit == NO_EXIT_STATUS ? (prev.responseMessage.contains('interrupted') ? 'stopped' : 'not-started')
    : exit in [TIMED_OUT, KILLED] && overdue ? 'user-timeout'
    : exit == CLIENT_SERVER_ENDED && vars.get('client_server') ? 'client-server-ended'
    : user?.cause ? legible(user.cause)
    : exit in NOT_STARTED ? 'not-started'
    : exit != 0 ? "exit-$exit"
    : causes ? causes.max { it.value }.key.with { it ==~ WORD ? it : 'failed-sample' }
    : user || samples ? null : 'no-samples'
if (cause) {
    prev.successful = false
    prev.responseMessage = cause
}
if (badLines) {
    log.warn('user failed: {} lines of its client cannot be used: {}', badLines, problems.join('; '))
    // Nothing of the client's own is in it: it has to be read back.
    def last = [type: 'user', user: name, ok: false, cause: cause, bad_lines: badLines, problem: problems[0]]
    output = output.replaceAll(/[^\p{Print}\t\n]/, '?') // the XML tree would not be read back
    prev.setResponseData("${output}${output.endsWith('\n') ? '' : '\n'}${JsonOutput.toJson(last)}\n", 'UTF-8')
}
