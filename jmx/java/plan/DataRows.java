package framestorm.plan;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.TextNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.StringReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.jmeter.save.CSVSaveService;

/** Data rows, which requests send or fill their templates from: {column}. */
final class DataRows {
    // Numbers are sent with all of their digits.
    private static final ObjectMapper JSON = JsonMapper.builder()
        .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS, DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
        .disable(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
        .build();
    private static final Pattern COLUMN = Pattern.compile("\\{([^{}\"]+)\\}");

    private final List<Map<String, JsonNode>> all = new ArrayList<>();

    /** No rows. */
    DataRows() {
    }

    DataRows(File file) throws IOException {
        String text = Given.textOf(file);
        if (file.getName().endsWith(".jsonl")) {
            readJson(file, text);
        } else {
            readCsv(file, text);
        }
        if (all.isEmpty()) {
            throw new IllegalArgumentException(file + " has no rows");
        }
    }

    private void readJson(File file, String text) {
        int number = 0;
        for (String line : (Iterable<String>) text.lines()::iterator) {
            number++;
            if (line.trim().isEmpty()) {
                continue;
            }
            JsonNode row = null;
            try {
                row = JSON.readTree(line);
            } catch (JsonProcessingException ignored) { // as what is no object
            }
            if (row == null || !row.isObject()) {
                throw new IllegalArgumentException(file + ": line " + number + " is not a JSON object");
            }
            Map<String, JsonNode> values = new LinkedHashMap<>();
            row.fields().forEachRemaining(each -> values.put(each.getKey(), each.getValue()));
            all.add(values);
        }
    }

    private void readCsv(File file, String text) throws IOException {
        BufferedReader lines = new BufferedReader(new StringReader(text));
        String[] names = Arrays.stream(CSVSaveService.csvReadFile(lines, ',')).map(String::trim).toArray(String[]::new);
        if (Set.copyOf(List.of(names)).size() < names.length) {
            throw new IllegalArgumentException(file + ": two columns have the same name");
        }
        if (names.length == 0) {
            return;
        }
        for (String[] values = CSVSaveService.csvReadFile(lines, ','); values.length > 0;
                values = CSVSaveService.csvReadFile(lines, ',')) {
            if (values.length == 1 && values[0].isEmpty() && names.length > 1) { // an empty line
                continue;
            }
            if (values.length != names.length) {
                throw new IllegalArgumentException(file + ": row " + (all.size() + 1) + " has " + values.length
                    + " values, its header " + names.length);
            }
            Map<String, JsonNode> row = new LinkedHashMap<>();
            for (int at = 0; at < names.length; at++) {
                row.put(names[at], TextNode.valueOf(values[at]));
            }
            all.add(row);
        }
    }

    boolean isEmpty() {
        return all.isEmpty();
    }

    int size() {
        return all.size();
    }

    /** All rows; one that is null if there are none, to fill in nothing. */
    List<Map<String, JsonNode>> orNone() {
        List<Map<String, JsonNode>> none = new ArrayList<>();
        none.add(null);
        return all.isEmpty() ? none : all;
    }

    /** The row of a request; null if there are none. */
    Map<String, JsonNode> get(long index) {
        return all.isEmpty() ? null : all.get((int) (index % all.size()));
    }

    /** Those columns that a template uses. */
    Set<String> columnsOf(String template) {
        Set<String> columns = new TreeSet<>();
        all.forEach(each -> columns.addAll(each.keySet()));
        columns.removeIf(name -> !template.contains("{" + name + "}"));
        return columns;
    }

    /** Check that the templates use columns of theirs, and that each row has those. */
    void check(String property, String templates) {
        Set<String> columns = columnsOf(templates);
        if (columns.isEmpty()) {
            throw new IllegalArgumentException("-Jrows=" + property + ": url, headers, body, form, expect and reject use "
                + "none of its columns, which are " + String.join(" and ", all.get(0).keySet()));
        }
        for (int at = 0; at < all.size(); at++) {
            Set<String> missing = new TreeSet<>(columns);
            missing.removeAll(all.get(at).keySet());
            if (!missing.isEmpty()) {
                throw new IllegalArgumentException("-Jrows=" + property + ": row " + (at + 1) + " has no "
                    + String.join(" and no ", missing) + ", which url, headers, body, form, expect or reject use");
            }
        }
    }

    /** A template with {column} filled in; other braces stay. */
    static String filled(String template, Map<String, JsonNode> row, Function<JsonNode, String> written) {
        if (row == null || row.isEmpty() || template.indexOf('{') < 0) {
            return template;
        }
        return COLUMN.matcher(template).replaceAll(match -> {
            JsonNode value = row.get(match.group(1));
            return Matcher.quoteReplacement(value == null ? match.group() : written.apply(value));
        });
    }

    /** A value as it stands in a text. */
    static String plain(JsonNode value) {
        return value.isTextual() ? value.textValue() : value.toString();
    }

    /** A value as it stands in JSON: a text stands between the quotes of the template. */
    static String escaped(JsonNode value) {
        String json = json(value);
        return value.isTextual() ? json.substring(1, json.length() - 1) : json;
    }

    /** A value, or a whole row, as JSON. */
    static String json(Object value) {
        try {
            return JSON.writeValueAsString(value);
        } catch (JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
    }
}
