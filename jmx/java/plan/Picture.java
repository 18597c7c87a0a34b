package framestorm.plan;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Map;
import org.apache.jmeter.samplers.SampleResult;

/** The answer to a frame: what is wrong with it, and its figures. */
final class Picture {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int MOST_VALUES = 100_000;
    private static final double MOST_MS = 1e9;

    /** What is wrong with the picture, null if nothing; `figures` gets what it tells. */
    static String cause(SampleResult result, Map<String, String> headers, String accept, int minFaces,
            Map<String, Object> figures) {
        boolean isImage;
        Integer faces;
        if (accept.equals("application/json")) {
            JsonNode answer = parsed(result.getResponseDataAsString());
            if (answer == null) {
                return "not-json";
            }
            faces = answer.path("faces").isArray() ? answer.path("faces").size() : null;
            figures.put("cold", answer.path("cold").isBoolean() ? answer.path("cold").booleanValue() : null);
            ServerTiming.OF_KIT.forEach((name, figure) -> {
                double ms = answer.path("timings_ms").path(name).asDouble(-1);
                if (ms >= 0 && ms < MOST_MS) {
                    figures.putIfAbsent(figure, ms);
                }
            });
            isImage = !answer.path("image").asText().isEmpty();
        } else {
            String inHeader = headers.getOrDefault("x-faces", "");
            JsonNode list = inHeader.isEmpty() ? null : parsed(inHeader);
            faces = list == null ? null : list.size();
            String type = result.getContentType();
            isImage = type != null && type.startsWith(accept) && result.getResponseData().length > 0;
        }
        figures.put("faces", faces);
        return !isImage ? "not-image" : (faces == null ? 0 : faces) < minFaces ? "too-few-faces" : null;
    }

    private static JsonNode parsed(String text) {
        try {
            return Values.read(text, MOST_VALUES, () -> {
                try {
                    return JSON.readTree(Given.withoutMark(text));
                } catch (JsonProcessingException ignored) {
                    return null;
                }
            });
        } catch (TooManyValues ignored) {
            return null;
        }
    }

    private Picture() {
    }
}
