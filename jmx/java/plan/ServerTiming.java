package framestorm.plan;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The times of a header Server-Timing (https://www.w3.org/TR/server-timing/): db;dur=53, cache;desc="hit";dur=0.2. */
final class ServerTiming {
    // As the function under test of this kit calls its own times.
    static final Map<String, String> OF_KIT = Map.of("total", "handler_ms", "model", "model_ms");
    private static final Set<String> COMMON = Set.of("start_ms", "rtt_ms", "intended_ms");
    private static final int MOST = 50;
    private static final Pattern NAME = Pattern.compile("[a-z][a-z0-9_]{0,59}");
    private static final Pattern NOT_IN_NAME = Pattern.compile("[^a-z0-9]+");
    // Possessive: a group that may go back takes stack for each parameter.
    private static final String PARAMETER = "[\\w-]++\\s*+=\\s*+(?:\"(?:[^\"\\\\]|\\\\.)*+\"|[^;,\"]*+)";
    private static final Pattern TIME = Pattern.compile(
        "(?:^|,)\\s*([^\\s;,=\"]+)((?:\\s*+;\\s*+" + PARAMETER + ")*+)");
    private static final Pattern LENGTH = Pattern.compile(
        "(?i)(?:\\s*+;\\s*+(?!dur\\s*=)" + PARAMETER + ")*+\\s*+;\\s*+dur\\s*+=\\s*+"
            + "\"?([0-9]{1,18}(?:\\.[0-9]+)?(?:e[+-]?[0-9]{1,2})?)(?![\\w.])");

    /** The times by the name of their figure, the first of each name. */
    static Map<String, Double> read(String header) {
        Map<String, Double> times = new LinkedHashMap<>();
        Matcher time = TIME.matcher(header == null ? "" : header);
        while (time.find()) {
            Matcher length = LENGTH.matcher(time.group(2));
            String name = name(time.group(1));
            if (length.lookingAt() && NAME.matcher(name).matches() && !COMMON.contains(name)
                    && (times.size() < MOST || OF_KIT.containsValue(name))) {
                times.putIfAbsent(name, Double.valueOf(length.group(1)));
            }
        }
        return times;
    }

    private static String name(String part) {
        String ofKit = OF_KIT.get(part);
        return ofKit != null ? ofKit : NOT_IN_NAME.matcher(part.toLowerCase(Locale.ROOT)).replaceAll("_") + "_ms";
    }

    private ServerTiming() {
    }
}
