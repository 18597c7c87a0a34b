package framestorm.plan;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;

/** JSON as the kit writes it to logs and results, in ASCII, and reads it from clients, with numbers as they stand there. */
final class Json {
    private static final ObjectMapper MAPPER = JsonMapper.builder()
        .enable(JsonWriteFeature.ESCAPE_NON_ASCII)
        // As programs in a shell write it: 007, and a tab in a text.
        .enable(JsonReadFeature.ALLOW_LEADING_ZEROS_FOR_NUMBERS, JsonReadFeature.ALLOW_UNESCAPED_CONTROL_CHARS,
            JsonReadFeature.ALLOW_TRAILING_COMMA)
        .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS, DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
        .build();

    static String written(Object value) {
        try {
            return MAPPER.writeValueAsString(value);
        } catch (JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
    }

    /** The value of a text: a Map, List, String, Number or Boolean, or null. */
    static Object read(String text) throws JsonProcessingException {
        return MAPPER.readValue(text, Object.class);
    }

    private Json() {
    }
}
