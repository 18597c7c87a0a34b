package framestorm.plan;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Bodies of requests: the files that are sent, and the content types. */
final class Bodies {
    static final String JSON = "application/json";
    private static final Map<String, String> TYPES = Map.of("json", JSON, "jsonl", "application/jsonl", "xml", "application/xml");
    private static final Pattern AS_JSON = Pattern.compile("(?s)\\s*[{\\[].*");
    private static final Pattern AS_XML = Pattern.compile("(?s)\\s*<.*");

    /** The file, or the files of the folder, of -Jproperty=@file. */
    static List<File> files(String property, File file) throws IOException {
        List<File> files = !file.isDirectory() ? List.of(file)
            : Arrays.stream(file.listFiles()).filter(each -> !each.isHidden() && each.isFile()).sorted()
                .collect(Collectors.toList());
        if (files.isEmpty() || !files.stream().allMatch(File::canRead)) {
            throw new FileNotFoundException(
                "-J" + property + "=@" + file + ": " + (files.isEmpty() ? "the folder has no file" : "cannot be read"));
        }
        return files;
    }

    static String typeOf(String text) {
        return AS_JSON.matcher(text).matches() ? JSON
            : AS_XML.matcher(text).matches() ? TYPES.get("xml") : "text/plain; charset=utf-8";
    }

    static String typeOf(File file) {
        String name = file.getName().toLowerCase(Locale.ROOT);
        String known = TYPES.get(name.substring(name.lastIndexOf('.') + 1));
        try {
            String probed = known == null ? Files.probeContentType(file.toPath()) : known;
            return probed == null || probed.isEmpty() ? "application/octet-stream" : probed;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private Bodies() {
    }
}
