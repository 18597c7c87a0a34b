package framestorm;

import java.util.Set;
import org.apache.jmeter.samplers.SampleEvent;

/**
 * The columns that the kit adds to samples.jtl by the property sample_variables, which JMeter applies to every file of
 * results: a listener of a plan writes what it would without the kit. The kit names them last.
 */
public final class KitColumns {
    private static final Set<String> NAMES = Set.of("elapsed_us", "sample_kind");

    /** Whether a column of a result is the kit's own. */
    public static boolean has(String name) {
        return NAMES.contains(name);
    }

    /** How many variables a row has: in the kit's own file all of them. */
    public static int count(boolean isOfKit) {
        int count = SampleEvent.getVarCount();
        while (!isOfKit && count > 0 && has(SampleEvent.getVarName(count - 1))) {
            count--;
        }
        return count;
    }

    private KitColumns() {
    }
}
