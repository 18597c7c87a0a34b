package framestorm;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.jmeter.reporters.ResultCollector;
import org.apache.jmeter.testelement.property.PropertyIterator;

/**
 * A listener of the plan that hears of the samples of slaves by Rows, in the controller: a slave sends a sample to each of
 * its listeners, so it would come once more for each of them.
 */
public final class Recipient extends ResultCollector {
    private static final long serialVersionUID = 1L;
    // The controller has a clone for each slave.
    private static final Map<String, List<Recipient>> BY_SLAVE = new ConcurrentHashMap<>();

    /** JMeter clones elements by this. */
    public Recipient() { }

    Recipient(ResultCollector listener) {
        for (PropertyIterator each = listener.propertyIterator(); each.hasNext();) {
            setProperty(each.next());
        }
    }

    static List<Recipient> of(String slave) {
        return BY_SLAVE.getOrDefault(slave, List.of());
    }

    @Override
    public void testStarted(String slave) {
        super.testStarted(slave);
        BY_SLAVE.computeIfAbsent(slave, each -> new CopyOnWriteArrayList<>()).add(this);
    }

    @Override
    public void testEnded(String slave) {
        BY_SLAVE.remove(slave);
        super.testEnded(slave);
    }
}
