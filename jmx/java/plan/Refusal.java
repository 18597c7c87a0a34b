package framestorm.plan;

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.jmeter.threads.JMeterContext;
import org.slf4j.Logger;

/** The end of a test whose properties cannot be used. */
final class Refusal {
    /** Stop the thread before its sampler, so that nothing is sent, and the test. */
    static void stop(JMeterContext ctx) {
        ctx.getThread().stop();
        if (ctx.getEngine() != null) { // the warm-up has none
            ctx.getEngine().askThreadsToStop();
        }
    }

    /** Stop the test and say why, for framestorm/results/jmeter_log.py. */
    static void stop(JMeterContext ctx, Logger log, Exception error) {
        stop(ctx);
        Map<String, Object> message = new LinkedHashMap<>();
        message.put("type", "refused");
        message.put("why", error.getMessage());
        log.error(Json.written(message));
    }

    private Refusal() {
    }
}
