package framestorm;

import java.util.SplittableRandom;
import java.util.concurrent.ThreadLocalRandom;

/**
 * When the arrivals of a load are due that are this JMeter's own, in their order.
 *
 * At random they are a Poisson process: gaps of an exponential distribution with a mean of 1, on the line's area instead of
 * on time, so that the rate may change. Each JMeter draws all of them and takes every so many-th, so that together they send
 * the very arrivals that one would. framestorm/load/poisson.py draws them, too, to know how many they are.
 */
public final class DueTimes {
    private final Load load;
    private final Load.Walk walk;
    private final SplittableRandom random;
    private long number; // of the next arrival of all
    private double area; // of the last random arrival
    /** How many arrivals are this JMeter's own. */
    public final long all;

    public DueTimes(Load load) {
        this.load = load;
        walk = load.new Walk();
        random = load.seed == null ? null : new SplittableRandom(load.seed);
        long ofAll = load.seed == null ? (long) Math.ceil(load.area() - 1e-9) : drawn(load);
        all = Math.max(0, Math.floorDiv(ofAll - load.first + load.step - 1, load.step));
        number = -1;
    }

    private static long drawn(Load load) {
        SplittableRandom random = new SplittableRandom(load.seed);
        long n = 0;
        for (double at = gap(random); at < load.area(); at += gap(random)) {
            n++;
        }
        return n;
    }

    private static double gap(SplittableRandom random) {
        return -StrictMath.log(1 - random.nextDouble());
    }

    /** When the next one is due, in ns since the start; asked for as many as there are. */
    public long nextNs() {
        long next = number < 0 ? load.first : number + load.step;
        if (random == null) {
            number = next;
            return ns(walk.timeS(number) + withinMsS());
        }
        for (; number < next; number++) {
            area += gap(random);
        }
        return ns(walk.timeS(area));
    }

    // Each at a random moment of its own millisecond. JMeter cuts the times of samples off at whole ms: at a rate whose
    // arrivals all came at the same place within theirs, a time of 0.6 ms would be told as 0 by all, or by none.
    private double withinMsS() {
        return Math.min(1e-3, 1 / Math.max(walk.rate, 1e-9)) * ThreadLocalRandom.current().nextDouble();
    }

    private static long ns(double timeS) {
        return (long) (timeS * 1e9);
    }
}
