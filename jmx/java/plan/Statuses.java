package framestorm.plan;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.regex.Pattern;

/** The HTTP statuses of a list such as 2xx,304 or 200-299, as client/arguments.py reads it too. */
final class Statuses {
    private static final Pattern EACH = Pattern.compile("[1-5xX][\\dxX]{2}|[1-5]\\d\\d-[1-5]\\d\\d");
    private static final Map<String, Statuses> KNOWN = new ConcurrentHashMap<>();

    private Predicate<String> isOne = status -> false;

    /** The statuses of a list, which is read once. */
    static Statuses of(String list) {
        Statuses known = KNOWN.get(list);
        return known == null ? KNOWN.computeIfAbsent(list, Statuses::new) : known;
    }

    private Statuses(String list) {
        for (String part : list.split(",", -1)) {
            String each = part.trim();
            if (!EACH.matcher(each).matches()) {
                throw new IllegalArgumentException("expected statuses such as 2xx,304 or 200-299");
            }
            if (each.contains("-")) {
                String first = each.substring(0, 3);
                String last = each.substring(4);
                isOne = isOne.or(status -> status.compareTo(first) >= 0 && status.compareTo(last) <= 0);
            } else {
                isOne = isOne.or(Pattern.compile(each.replaceAll("[xX]", "\\\\d")).asMatchPredicate());
            }
        }
    }

    boolean include(String status) {
        return isOne.test(status);
    }
}
