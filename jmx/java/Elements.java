package framestorm;

import framestorm.plan.Call;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.jmeter.testelement.TestElement;
import org.apache.jmeter.testelement.TestPlan;
import org.apache.jmeter.testelement.TestStateListener;
import org.apache.jmeter.testelement.property.PropertyIterator;
import org.apache.jmeter.threads.ThreadGroup;
import org.apache.jmeter.threads.openmodel.OpenModelThreadGroup;
import org.apache.jmeter.util.JSR223TestElement;
import org.apache.jorphan.collections.HashTree;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Exchanges elements of the test in memory, before anything of it is started, for subclasses that mend or tell something, and
 * adds elements of the kit. No class is patched for them, and elements of other classes, such as those of a plug-in's own, stay
 * as they are.
 */
final class Elements {
    private static final Logger LOG = LoggerFactory.getLogger(Elements.class);
    // By name, and made by lambdas: a plug-in that the plan does not need may be missing, and so may the class itself.
    private static final Map<String, Supplier<TestElement>> OTHERS = Map.of(
        "org.apache.jmeter.timers.poissonarrivals.PreciseThroughputTimer", () -> new Schedules.Timer(),
        "kg.apc.jmeter.timers.VariableThroughputTimer", () -> new Schedules.ShapingTimer(),
        "com.blazemeter.jmeter.threads.arrivals.ArrivalsThreadGroup", () -> new Arrivals.Group(),
        "com.blazemeter.jmeter.threads.arrivals.FreeFormArrivalsThreadGroup", () -> new Arrivals.FreeFormGroup(),
        "com.blazemeter.jmeter.threads.concurrency.ConcurrencyThreadGroup",
            () -> Users.isAsked() ? new Users() : new Concurrency(),
        "org.apache.jmeter.modifiers.SampleTimeout", () -> new SampleTimeouts.Timeout(),
        "com.blazemeter.jmeter.controller.ParallelSampler", () -> new Parallel());

    /** Exchange them; those that hear of the start and end of the test are added to `listeners`. */
    static void exchange(HashTree test, Collection<Object> listeners) {
        Schedules.begin();
        try {
            exchangeIn(test, listeners);
        } catch (RuntimeException error) {
            LOG.error("the elements of the test stay as they are: schedules count from the start of the test", error);
        }
    }

    private static void exchangeIn(HashTree tree, Collection<Object> listeners) {
        for (Object each : List.copyOf(tree.list())) {
            exchangeIn(tree.getTree(each), listeners);
            TestElement other = other(each);
            if (other != null) {
                TestElement instead = copy((TestElement) each, other);
                tree.replaceKey(each, instead);
                if (instead instanceof TestStateListener) {
                    listeners.add(instead);
                }
            } else if (each.getClass() == ThreadGroup.class) {
                long shiftMs = ((ThreadGroup) each).getPropertyAsLong(Schedules.Shift.NAME, 0);
                if (shiftMs > 0) {
                    tree.getTree(each).add(Schedules.Shift.of(shiftMs));
                }
            } else if (each instanceof OpenModelThreadGroup) {
                Schedules.countFromStart((OpenModelThreadGroup) each);
                OpenModel.endWhenStopped((OpenModelThreadGroup) each);
            }
        }
    }

    private static TestElement other(Object element) {
        Supplier<TestElement> other = element instanceof JSR223TestElement
            ? Call.element((JSR223TestElement) element) : OTHERS.get(element.getClass().getName());
        return other == null ? null : other.get();
    }

    /** Add an element to the plan of a test in memory, for all of its thread groups; returns the element. */
    static TestElement add(HashTree test, String name, TestElement element) {
        element.setName(name);
        for (Object each : List.copyOf(test.list())) {
            if (each instanceof TestPlan) {
                test.getTree(each).add(element);
            }
        }
        return element;
    }

    private static TestElement copy(TestElement element, TestElement other) {
        for (PropertyIterator properties = element.propertyIterator(); properties.hasNext();) {
            other.setProperty(properties.next());
        }
        other.setRunningVersion(true);
        return other;
    }

    private Elements() {
    }
}
