// What the kit's plans call, where no run shows it: lines of clients, headers of answers, what is made once for each test.
import framestorm.plan.Answer
import framestorm.plan.ClientSample
import framestorm.plan.Json
import framestorm.plan.PerTest
import framestorm.plan.Secrets
import framestorm.plan.ServerTiming
import framestorm.plan.Statuses
import org.apache.jmeter.control.LoopController
import org.apache.jmeter.engine.StandardJMeterEngine
import java.util.function.UnaryOperator
import org.apache.jmeter.protocol.http.sampler.HTTPSampleResult
import org.apache.jmeter.samplers.SampleResult
import org.apache.jmeter.threads.JMeterContextService
import org.apache.jmeter.threads.JMeterThread
import org.apache.jmeter.threads.JMeterVariables
import org.apache.jmeter.threads.ThreadGroup
import org.apache.jmeter.util.JMeterUtils
import org.apache.jorphan.collections.HashTree

JMeterUtils.loadJMeterProperties("${args[0]}/bin/jmeter.properties")

// A server of slaves runs several tests in one Java; the warm-up has no engine.
def ctx = JMeterContextService.context
def made = 0
def perTest = new PerTest()
def of = { engine -> ctx.engine = engine; perTest.get(ctx, { ++made }) }
def engines = [new StandardJMeterEngine(), new StandardJMeterEngine()]
assert [null, null, engines[0], engines[0], engines[1], engines[1]].collect(of) == [1, 1, 2, 2, 3, 3]
def failing = { throw new IllegalStateException() }
ctx.engine = engines[0]
try {
    perTest.get(ctx, failing)
    assert false
} catch (IllegalStateException expected) {
    assert perTest.get(ctx, { 'made at the next call' }) == 'made at the next call'
}

// Numbers stay as a client wrote them.
def user = SampleResult.createTestSample(1_700_000_000_000L, 1_700_000_001_000L)
def sample = { text -> def problems = []; [new ClientSample(Json.read(text), user, 'u', 3, problems).fields, problems] }
def line = '"label": "a", "start_ms": 1700000000000.5, "rtt_ms": 1e1, "ok": true'
def (fields, problems) = sample("{$line, \"big\": 9007199254740993, \"huge\": 99999999999999999999, \"tenth\": 0.10}")
assert problems == [] && fields.index == 3
assert Json.written(fields.subMap(['start_ms', 'rtt_ms', 'big', 'huge', 'tenth'])) ==
    '{"start_ms":1700000000000.5,"rtt_ms":1E+1,"big":9007199254740993,"huge":99999999999999999999,"tenth":0.10}'
assert Json.written('é\u2028"') == '"\\u00E9\\u2028\\""'
// A program may write what strict JSON has not; but what stands after the object would be lost.
assert Json.read('{"a": 007, "b": "x\ty",}') == [a: 7, b: 'x\ty']
['{"a": 1} x', '{"a": 1}{"b": 2}', '{a: 1}', ''].each { text ->
    try {
        Json.read(text)
        assert false, text
    } catch (com.fasterxml.jackson.core.JsonProcessingException expected) {
    }
}

assert ServerTiming.read('db;dur=53, total;desc="a,b";dur="0.2", cache, x-Y ;DUR=1e2, db;dur=1') ==
    [db_ms: 53d, handler_ms: 0.2d, x_y_ms: 100d]
assert ServerTiming.read('a;desc="say \\"hi\\", b;dur=1";dur=2, c;desc=";dur=3";dur=4') == [a_ms: 2d, c_ms: 4d]
assert ServerTiming.read((1..60).collect { "t$it;dur=1" }.join(',')).size() == 50
assert ['200', '204', '304', '404', '500'].findAll { Statuses.of('2xx, 304,400-404').include(it) } == ['200', '204', '304', '404']
def secrets = new Secrets()
String value = secrets.resolved('${env:PATH}')
assert secrets.masked("a $value b ${URLEncoder.encode(value, 'UTF-8')}") == 'a ${env:PATH} b ${env:PATH}'

// What cannot be judged, whatever the error, does not pass.
def answer = new HTTPSampleResult()
answer.URL = new URL('http://h/')
answer.responseCode = '200'
answer.successful = true
answer.setResponseData('a secret', 'UTF-8')
ctx.variables = new JMeterVariables()
[url: 'http://h/', method: 'GET', expect: 'x'].each { name, text -> ctx.variables.put(name, text) }
ctx.variables.putObject('filling', { throw new IOException() } as UnaryOperator)
ctx.threadGroup = new ThreadGroup()
ctx.thread = new JMeterThread(new HashTree(new LoopController()), null, null)
ctx.previousResult = answer
Answer.judge(ctx)
assert [answer.successful, answer.responseMessage, answer.responseDataAsString] == [false, 'not-judged', '']

// A request that could not be made has no URL that might show a secret.
def unmade = new HTTPSampleResult()
unmade.responseCode = 'Non HTTP response code: java.net.MalformedURLException'
unmade.responseMessage = 'Non HTTP response message: For input string: "99999"'
secrets.putInto(ctx.variables)
ctx.previousResult = unmade
Answer.judge(ctx)
assert [unmade.successful, unmade.responseMessage, unmade.URL] == [false, 'exception', null]
