package framestorm;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A load over time, as framestorm/load/kit_load.py writes it: {@code arrivals 0.0:10.0 30.0:10.0 seed=7 1/2}. It has
 * arrivals or users; the corners of its line (seconds since the start, and arrivals per second or users; straight between
 * them, and a jump where two have one time); the seed of arrivals that come at random; and which part of it is this JMeter's
 * own, here the second of two. {@code @path} may stand for a file with all but the part.
 */
public final class Load {
    public static final String PROPERTY = "framestorm.load";

    final long first; // of all arrivals or users, those that are this JMeter's own
    final long step;
    final boolean isOfUsers;
    final Long seed; // null if arrivals come evenly
    private final double[] atS;
    private final double[] levels;
    private final double[] areas; // up to each corner: the arrivals that are due by then

    /** Read a text; throws IllegalArgumentException if it is none. */
    public Load(String text) {
        int end = text.trim().lastIndexOf(' ');
        String[] share = text.trim().substring(end + 1).split("/");
        first = Long.parseLong(share[0]);
        step = Long.parseLong(share[1]);
        String rest = text.trim().substring(0, end);
        String[] words = (rest.startsWith("@") ? content(Path.of(rest.substring(1))) : rest).split(" ");
        String last = words[words.length - 1];
        boolean hasSeed = last.startsWith("seed=");
        seed = hasSeed ? Long.valueOf(last.substring("seed=".length())) : null;
        isOfUsers = words[0].equals("users");
        int corners = words.length - (hasSeed ? 2 : 1);
        atS = new double[corners];
        levels = new double[corners];
        areas = new double[corners];
        for (int at = 0; at < corners; at++) {
            String[] corner = words[at + 1].split(":");
            atS[at] = Double.parseDouble(corner[0]);
            levels[at] = Double.parseDouble(corner[1]);
            areas[at] = at == 0 ? 0 : areas[at - 1] + (atS[at] - atS[at - 1]) * (levels[at - 1] + levels[at]) / 2;
        }
    }

    private static String content(Path path) {
        try {
            return Files.readString(path);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    double lengthS() {
        return atS[atS.length - 1];
    }

    /** The area below the whole line: all arrivals, those of other JMeters among them. */
    double area() {
        return areas[areas.length - 1];
    }

    double most() {
        double most = 0;
        for (double level : levels) {
            most = Math.max(most, level);
        }
        return most;
    }

    /** The level at a time; 0 after the end. */
    double at(double timeS) {
        for (int at = 1; at < atS.length; at++) {
            if (timeS < atS[at]) {
                return levels[at - 1] + (levels[at] - levels[at - 1]) * (timeS - atS[at - 1]) / (atS[at] - atS[at - 1]);
            }
        }
        return 0;
    }

    /** Find the times by which areas are reached, in their order. */
    final class Walk {
        double rate; // at the last of these times
        private int at = 1;

        /** The time by which an area is reached, in seconds since the start. */
        double timeS(double area) {
            while (at < atS.length - 1 && areas[at] <= area) {
                at++;
            }
            double left = Math.max(0, area - areas[at - 1]);
            rate = Math.sqrt(Math.max(0, levels[at - 1] * levels[at - 1] + 2 * slope() * left));
            // Of the two forms of the root, the one without a difference of large numbers.
            return atS[at - 1] + (left == 0 ? 0 : 2 * left / (levels[at - 1] + rate));
        }

        private double slope() {
            return (levels[at] - levels[at - 1]) / (atS[at] - atS[at - 1]);
        }
    }
}
