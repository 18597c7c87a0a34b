package framestorm.functions;

import framestorm.TestStart;
import java.util.Collection;
import java.util.List;
import org.apache.jmeter.engine.util.CompoundVariable;
import org.apache.jmeter.functions.AbstractFunction;
import org.apache.jmeter.samplers.SampleResult;
import org.apache.jmeter.samplers.Sampler;

/**
 * Has JMeter call the kit before its first test. JMeter makes one of each function of lib/ext before it replaces the functions
 * of a tree: in a run, the GUI, a server and its controller. Its files for scripts at the start (jsr223.init.file) would be
 * too late: a run has begun by then. This function has no name, so that no plan can call it, and no list has it.
 */
public final class Beginning extends AbstractFunction {
    public Beginning() {
        TestStart.listen();
    }

    @Override
    public String getReferenceKey() {
        return "";
    }

    @Override
    public List<String> getArgumentDesc() {
        return List.of();
    }

    @Override
    public void setParameters(Collection<CompoundVariable> parameters) { // it has none
    }

    @Override
    public String execute(SampleResult previous, Sampler current) {
        return "";
    }
}
