package framestorm;

import java.lang.reflect.Field;
import org.apache.jmeter.samplers.SampleEvent;
import org.apache.jmeter.samplers.SampleResult;

/**
 * What a row of samples.jtl is: a sample of its own, a sub-result, or a transaction, and whether the end of its thread cut
 * that off. JMeter itself tells transactions by their message, which a script can write too, and one that is cut off has
 * none. The words are those of framestorm/model/sample.py.
 */
public final class SampleKinds {
    /**
     * The field that Patch adds to SampleResult: 0, or of the result of a transaction 1, or 2 if that was cut off. Without the patch
     * there is none.
     */
    private static final Field TRANSACTION = transactionField();
    private static final int CUT = 2;

    /** The cell of the column sample_kind. */
    public static String of(SampleEvent event, SampleResult sample) {
        if (sample != event.getResult()) {
            SampleResult outer = sample.getParent();
            while (outer != null && isTransaction(outer) && outer != event.getResult()) {
                outer = outer.getParent();
            }
            // The samplers of a transaction are samples, also in a transaction within another.
            if (outer == null || !isTransaction(outer)) {
                return "sub-result";
            }
        }
        if (transaction(sample) == CUT) {
            return "cut-transaction";
        }
        return isTransaction(sample) || sample == event.getResult() && event.isTransactionSampleEvent()
            ? "transaction" : "sample";
    }

    /** Mark the result of a transaction that is complete. */
    static void setTransaction(SampleResult result) {
        try {
            if (TRANSACTION != null) {
                TRANSACTION.setInt(result, 1);
            }
        } catch (IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
    }

    private static boolean isTransaction(SampleResult result) {
        return transaction(result) != 0;
    }

    private static int transaction(SampleResult result) {
        try {
            return TRANSACTION.getInt(result);
        } catch (IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
    }

    private static Field transactionField() {
        try {
            return SampleResult.class.getField("transaction");
        } catch (NoSuchFieldException unpatched) {
            return null;
        }
    }

    private SampleKinds() {
    }
}
