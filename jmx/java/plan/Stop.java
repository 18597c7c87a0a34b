package framestorm.plan;

import com.blazemeter.jmeter.threads.AbstractDynamicThreadGroup;
import framestorm.Users;
import java.io.File;
import java.util.List;
import org.apache.jmeter.threads.AbstractThreadGroup;
import org.apache.jmeter.threads.JMeterContext;
import org.apache.jmeter.threads.ThreadGroup;

/**
 * Stops a run gently once the conductor's stop file is there: nobody new starts, users under way finish and are counted.
 * JMeter's own Shutdown message would not do in any JMeter: the plug-in's Concurrency and Arrivals groups answer it by
 * interrupting their users, and the engine closes the result files before these have handed in their samples.
 */
public final class Stop {
    /** Called before and after a user's sampler. */
    public static void check(JMeterContext ctx) {
        if (!new File(ctx.getVariables().get("stop")).exists()) {
            return;
        }
        AbstractThreadGroup group = ctx.getThreadGroup();
        if (group instanceof ThreadGroup) { // first: the plug-in of the others may be missing
            ctx.getEngine().askThreadsToStop(); // it does as it is asked
        } else if (group instanceof Users) {
            ((Users) group).end();
        } else if (group instanceof AbstractDynamicThreadGroup) {
            // Read again for each new user: without them the group takes 0 s and 1 s (not minutes), and its time is over;
            // a Free-Form Arrivals group has its schedule instead.
            // A value set here would last until JMeter restores the group's fields, after the next sample.
            List.of("RampUp", "Hold", "Unit", "Schedule").forEach(group::removeProperty);
        } else {
            ctx.getEngine().askThreadsToStop();
        }
        ctx.getThread().stop(); // before the sampler: it is not run; after it: the thread would have ended anyway
    }

    private Stop() {
    }
}
