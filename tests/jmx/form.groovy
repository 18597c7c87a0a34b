// How request.groovy reads forms: each as a line of JSON, its fields or null if it refuses it.
// Usage: GroovyMain form.groovy HOME REQUEST FOLDER < FORMS (a line of JSON each)

import groovy.json.JsonOutput
import groovy.json.JsonSlurper
import org.apache.jmeter.services.FileServer
import org.apache.jmeter.threads.JMeterVariables

org.apache.jmeter.util.JMeterUtils.loadJMeterProperties("${args[0]}/bin/jmeter.properties")
FileServer.fileServer.baseForScript = new File(args[2], 'plan.jmx')
def loader = new GroovyClassLoader()
loader.parseClass(new File(args[1]))
def requests = loader.loadClass('Requests')
def unset = ['url', 'headers', 'body', 'rows', 'content_type', 'proxy', 'certificate', 'certificate_password']
System.in.eachLine('UTF-8') { line ->
    def vars = new JMeterVariables()
    unset.each { vars.put(it, '') }
    vars.put('method', 'POST')
    vars.put('form', new JsonSlurper().parseText(line) as String)
    def fields
    try {
        fields = requests.newInstance(vars).form.collect { [it.name, it.files*.name, it.value, it.type] }
    } catch (IllegalArgumentException ignored) {
        fields = null
    }
    println JsonOutput.toJson(fields)
}
