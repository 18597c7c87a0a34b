// What the kit's scripts make of a plan's properties as they are run once before all others: `why` they refuse them, the
// fields of `form`, and which of `conditions` an `answer` meets. Each line is an object of JSON.
// Usage: GroovyMain properties.groovy HOME SCRIPTS FOLDER < PROPERTIES

import groovy.json.JsonOutput
import groovy.json.JsonSlurper
import org.apache.jmeter.samplers.SampleResult
import org.apache.jmeter.services.FileServer
import org.apache.jmeter.threads.JMeterVariables

org.apache.jmeter.util.JMeterUtils.loadJMeterProperties("${args[0]}/bin/jmeter.properties")
FileServer.fileServer.baseForScript = new File(args[2], 'plan.jmx')
def loader = new GroovyClassLoader()
def scripts = ['request', 'answer'].collect { loader.parseClass(new File(args[1], "${it}.groovy")) }
def (requests, condition) = ['Requests', 'framestorm.Condition'].collect { loader.loadClass(it) }
System.in.eachLine('UTF-8') { line ->
    def properties = new JsonSlurper().parseText(line)
    def vars = new JMeterVariables()
    properties.each { name, value -> vars.put(name, value as String) }
    def refusals = []
    def ctx = [thread: [stop: { }], engine: [askThreadsToStop: { }]]
    def log = [error: { refusals << new JsonSlurper().parseText(it).why }]
    for (script in scripts) {
        def binding = [vars: vars, ctx: ctx, log: log, SampleResult: new SampleResult(), sampler: null, prev: null]
        try {
            org.codehaus.groovy.runtime.InvokerHelper.createScript(script, new Binding(binding)).run()
        } catch (IllegalArgumentException | IOException ignored) { // it is in the log
        }
    }
    println JsonOutput.toJson([
        why: refusals[0],
        form: refusals ? null : requests.only.form.collect { [it.name, it.files*.name, it.value, it.type] },
        met: properties.conditions?.findAll {
            condition.of(it).isMet.call(properties.answer, { text -> text.replace('{column}', properties.column ?: '') })
        },
    ])
}
