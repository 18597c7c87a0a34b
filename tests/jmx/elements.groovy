// Prints every element of the plans as JMeter itself reads and writes it: JSON, one line each.
import groovy.json.JsonOutput
import org.apache.jmeter.save.SaveService
import org.apache.jmeter.util.JMeterUtils
import org.apache.jorphan.collections.HashTree
import org.apache.jorphan.collections.HashTreeTraverser

String home = args[0]
JMeterUtils.setJMeterHome(home)
JMeterUtils.loadJMeterProperties("$home/bin/jmeter.properties")
args.tail().each { plan ->
    SaveService.loadTree(new File(plan)).traverse([
        addNode: { element, HashTree subTree ->
            def xml = new ByteArrayOutputStream()
            SaveService.saveElement(element, xml)
            println(JsonOutput.toJson([plan: plan, xml: xml.toString('UTF-8')]))
        },
        subtractNode: { }, processPath: { },
    ] as HashTreeTraverser)
}
