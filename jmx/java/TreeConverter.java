package framestorm;

import com.thoughtworks.xstream.converters.UnmarshallingContext;
import com.thoughtworks.xstream.io.HierarchicalStreamReader;
import com.thoughtworks.xstream.mapper.Mapper;
import java.util.List;
import org.apache.jmeter.reporters.ResultCollector;
import org.apache.jmeter.save.converters.HashTreeConverter;
import org.apache.jmeter.testelement.TestPlan;
import org.apache.jmeter.timers.ConstantThroughputTimer;
import org.apache.jmeter.util.JMeterUtils;
import org.apache.jorphan.collections.HashTree;

/**
 * Reads the tree of a plan, by its line in JMeter's saveservice.properties: a run gets the listener that writes samples.jtl, where
 * the property framestorm.samples names that file, and the pre-processor that sends trace ids, where framestorm.trace asks for
 * them. Over slaves this is the controller, before it sends them the tree.
 */
public final class TreeConverter extends HashTreeConverter {
    public TreeConverter(Mapper mapper) {
        super(mapper);
        HostName.find();
    }

    @Override
    public Object unmarshal(HierarchicalStreamReader reader, UnmarshallingContext context) {
        HashTree tree = (HashTree) super.unmarshal(reader, context);
        String samples = JMeterUtils.getPropDefault("framestorm.samples", "");
        for (Object each : List.copyOf(tree.list())) {
            if (each instanceof ConstantThroughputTimer) {
                Schedules.setMode((ConstantThroughputTimer) each);
            } else if (each instanceof TestPlan && !samples.isEmpty()) {
                HashTree plan = tree.getTree(each);
                HashTree ofRows = plan.add(Rows.into(samples));
                if (FromSlaves.isAsked()) {
                    moveListeners(plan, ofRows);
                }
                plan.add(new HostName());
                if (Traces.ARE_ASKED) {
                    Traces.addTo(plan);
                }
            }
        }
        return tree;
    }

    private static void moveListeners(HashTree plan, HashTree to) {
        for (Object each : List.copyOf(plan.list())) {
            if (each.getClass() == ResultCollector.class && plan.getTree(each).isEmpty()) {
                plan.remove(each);
                to.add(new Recipient((ResultCollector) each));
            }
        }
    }
}
