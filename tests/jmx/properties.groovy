// What the kit's classes make of a plan's properties before all requests: `why` they refuse them, the fields of `form`, and
// which of `conditions` an `answer` meets. Each line is an object of JSON.
// Usage: GroovyMain properties.groovy HOME FOLDER < PROPERTIES

import framestorm.plan.Answer
import framestorm.plan.Condition
import framestorm.plan.Requests
import groovy.json.JsonOutput
import groovy.json.JsonSlurper
import java.util.function.UnaryOperator
import org.apache.jmeter.services.FileServer
import org.apache.jmeter.threads.JMeterVariables

org.apache.jmeter.util.JMeterUtils.loadJMeterProperties("${args[0]}/bin/jmeter.properties")
FileServer.fileServer.baseForScript = new File(args[1], 'plan.jmx')
System.in.eachLine('UTF-8') { line ->
    def properties = new JsonSlurper().parseText(line)
    def vars = new JMeterVariables()
    properties.each { name, value -> vars.put(name, value as String) }
    def why = null, requests = null
    try {
        requests = new Requests(vars)
        Answer.checkConditions(vars)
    } catch (IllegalArgumentException | IOException error) {
        why = error.message
    }
    def filled = { text -> text.replace('{column}', properties.column ?: '') } as UnaryOperator<String>
    println JsonOutput.toJson([
        why: why,
        form: why ? null : requests.form.fields.collect { [it.name, it.files*.name ?: null, it.value, it.type] },
        met: properties.conditions?.findAll { Condition.of(it).isMet(properties.answer, filled) },
    ])
}
