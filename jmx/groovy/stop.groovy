// Stops a run gently once the conductor's stop file is there: nobody new starts, users under way finish and are counted.
// JMeter's own Shutdown message would not do: the Concurrency and Arrivals groups answer it by interrupting their users,
// and the engine closes the result files before these have handed in their samples.

if (new File(vars.get('stop')).exists()) {
    def group = ctx.threadGroup
    if (group.respondsTo('getHold')) {
        // Read again for each new user: without them the group takes 0 s and 1 s (not minutes), and its time is over.
        // A value set here would last until JMeter restores the group's fields, after the next sample.
        ['RampUp', 'Hold', 'Unit'].each { group.removeProperty(it) }
    } else {
        ctx.engine.askThreadsToStop() // the plain Thread Group does as it is asked
    }
    ctx.thread.stop() // before the sampler: it is not run; after it: the thread would have ended anyway
}
