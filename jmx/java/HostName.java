package framestorm;

import java.lang.reflect.Field;
import org.apache.jmeter.testelement.AbstractTestElement;
import org.apache.jmeter.util.JMeterUtils;

/**
 * Gives a machine an empty name whose own name leads to no address, before JMeter keeps it for its samples: JMeter's XML fails at
 * one that is null, and the file of a listener would stay empty. As an element of the tree, on slaves too.
 */
public final class HostName extends AbstractTestElement {
    private static final long serialVersionUID = 1L;

    /** Have JMeter look for the name, and keep the empty one where it finds none. */
    static void find() {
        if (JMeterUtils.getLocalHostName() != null) {
            return;
        }
        try {
            Field name = JMeterUtils.class.getDeclaredField("localHostName");
            name.setAccessible(true);
            name.set(null, "");
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private Object readResolve() {
        find();
        return this;
    }
}
