"""Plans as people bring them, made for JMeter and not for the kit."""

import subprocess
import zipfile
from pathlib import Path

from framestorm import paths

PLAN = """<?xml version="1.0" encoding="UTF-8"?>
<jmeterTestPlan version="1.2" properties="5.0" jmeter="5.5"><hashTree>
<TestPlan guiclass="TestPlanGui" testclass="TestPlan" testname="theirs" enabled="true">
  <elementProp name="TestPlan.user_defined_variables" elementType="Arguments">
    <collectionProp name="Arguments.arguments"/>
  </elementProp>
</TestPlan>
<hashTree>{group}<hashTree>{elements}</hashTree></hashTree></hashTree></jmeterTestPlan>
"""
LOOP = """<elementProp name="ThreadGroup.main_controller" elementType="LoopController" guiclass="LoopControlPanel"
  testclass="LoopController"><boolProp name="LoopController.continue_forever">false</boolProp>
  <stringProp name="LoopController.loops">{loops}</stringProp></elementProp>
  <stringProp name="ThreadGroup.on_sample_error">continue</stringProp>"""
THREADS = """<ThreadGroup guiclass="ThreadGroupGui" testclass="ThreadGroup" testname="threads" enabled="true">
  <stringProp name="ThreadGroup.num_threads">2</stringProp>{loop}</ThreadGroup>"""
CONCURRENCY = """<com.blazemeter.jmeter.threads.concurrency.ConcurrencyThreadGroup testname="concurrency" enabled="true"
  guiclass="com.blazemeter.jmeter.threads.concurrency.ConcurrencyThreadGroupGui"
  testclass="com.blazemeter.jmeter.threads.concurrency.ConcurrencyThreadGroup">
  <elementProp name="ThreadGroup.main_controller"
    elementType="com.blazemeter.jmeter.control.VirtualUserController"/>
  <stringProp name="ThreadGroup.on_sample_error">continue</stringProp>
  <stringProp name="TargetLevel">2</stringProp><stringProp name="RampUp">0</stringProp>
  <stringProp name="Steps">1</stringProp><stringProp name="Hold">120</stringProp>
  <stringProp name="Iterations"></stringProp><stringProp name="Unit">S</stringProp>
  </com.blazemeter.jmeter.threads.concurrency.ConcurrencyThreadGroup>"""
ARRIVALS = """<com.blazemeter.jmeter.threads.arrivals.ArrivalsThreadGroup testname="arrivals" enabled="true"
  guiclass="com.blazemeter.jmeter.threads.arrivals.ArrivalsThreadGroupGui"
  testclass="com.blazemeter.jmeter.threads.arrivals.ArrivalsThreadGroup">
  <elementProp name="ThreadGroup.main_controller"
    elementType="com.blazemeter.jmeter.control.VirtualUserController"/>
  <stringProp name="ThreadGroup.on_sample_error">continue</stringProp>
  <stringProp name="TargetLevel">10</stringProp><stringProp name="RampUp">0</stringProp>
  <stringProp name="Steps">1</stringProp><stringProp name="Hold">2</stringProp>
  <stringProp name="Iterations"></stringProp><stringProp name="Unit">S</stringProp>
  <stringProp name="LogFilename"></stringProp><stringProp name="ConcurrencyLimit">1</stringProp>
  </com.blazemeter.jmeter.threads.arrivals.ArrivalsThreadGroup>"""
REQUEST = """<HTTPSamplerProxy guiclass="HttpTestSampleGui" testclass="HTTPSamplerProxy" testname="call" enabled="true">
  <elementProp name="HTTPsampler.Arguments" elementType="Arguments"><collectionProp name="Arguments.arguments"/>
  </elementProp><stringProp name="HTTPSampler.path">{url}</stringProp>
  <stringProp name="HTTPSampler.method">GET</stringProp></HTTPSamplerProxy><hashTree/>"""
SCRIPT = """<JSR223Sampler guiclass="TestBeanGUI" testclass="JSR223Sampler" testname="{name}" enabled="true">
  <stringProp name="scriptLanguage">groovy</stringProp><stringProp name="filename"></stringProp>
  <stringProp name="parameters"></stringProp><stringProp name="cacheKey">true</stringProp>
  <stringProp name="script">{script}</stringProp></JSR223Sampler><hashTree/>"""
CLASS = "org/example/functions/Twice.class"
FUNCTION = """package org.example.functions;
import java.util.*;
import org.apache.jmeter.engine.util.CompoundVariable;
import org.apache.jmeter.samplers.*;
public class Twice extends org.apache.jmeter.functions.AbstractFunction {
    private Collection<CompoundVariable> words;
    public String execute(SampleResult last, Sampler current) {
        String word = words.iterator().next().execute();
        return word + word;
    }
    public void setParameters(Collection<CompoundVariable> words) { this.words = words; }
    public String getReferenceKey() { return "__twice"; }
    public List<String> getArgumentDesc() { return List.of("word"); }
}
"""


def script(text: str, name: str = "script") -> str:
    """A sampler that is a script in Groovy."""
    return SCRIPT.format(script=text, name=name)


def write_plan(path: Path, elements: str, group: str = THREADS, loops: int = -1) -> Path:
    """Write a plan with these elements in its one thread group."""
    path.write_text(PLAN.format(group=group.format(loop=LOOP.format(loops=loops)), elements=elements))
    return path


def jar_with_function(path: Path, folder: Path) -> None:
    """Write a jar with a JMeter function, `${__twice(word)}`, compiled in `folder`."""
    (folder / "Twice.groovy").write_text(FUNCTION)
    jars = ":".join(str(each) for each in paths.JMETER_HOME.glob("lib/**/*.jar"))
    compiler = "org.codehaus.groovy.tools.FileSystemCompiler"
    words = [paths.JAVA_HOME / "bin" / "java", "-cp", jars, compiler, "-d", folder, folder / "Twice.groovy"]
    subprocess.run(words, check=True)
    with zipfile.ZipFile(path, "w") as jar:
        jar.write(folder / CLASS, CLASS)
