// Reads messages with Apache Kafka's generated classes and writes them again: bytes and JSON must be what they were.
//
// stdin: one JSON object a line: {"class", "version", "hex", "json", "has_json"}. "json" is what we print for the message;
// "has_json" is false where JSON does not carry all of it (unknown tags, and records, which Kafka prints as ""). On
// stdout: one line for each message that differs, then how many there were.

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;

public class Oracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        int count = 0;
        for (String line = in.readLine(); line != null; line = in.readLine(), count++) {
            JsonNode given = JSON.readTree(line);
            String difference;
            try {
                difference = difference(given);
            } catch (InvocationTargetException e) {
                difference = "fails: " + e.getCause();
            } catch (ReflectiveOperationException | RuntimeException e) {
                difference = "fails: " + e;
            }
            if (difference != null) {
                out.println(given.get("class").asText() + " version " + given.get("version") + " " + difference);
            }
        }
        out.println(count);
    }

    private static String difference(JsonNode given) throws ReflectiveOperationException, JsonProcessingException {
        String name = given.get("class").asText();
        short version = (short) given.get("version").asInt();
        byte[] bytes = HexFormat.of().parseHex(given.get("hex").asText());
        Class<?> type = Class.forName(name);
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        Message message = (Message) type.getConstructor(Readable.class, short.class)
            .newInstance(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) return "leaves " + buffer.remaining() + " bytes unread";
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer written = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(written), cache, version);
        if (!Arrays.equals(written.array(), bytes)) {
            return "writes " + HexFormat.of().formatHex(written.array()) + " for " + given.get("hex");
        }
        Class<?> converter = Class.forName(name + "JsonConverter");
        String theirs = JSON.writeValueAsString(toJson(converter, type, message, version));
        String ours = JSON.writeValueAsString(given.get("json"));
        if (!theirs.equals(ours)) return "prints " + theirs + ", we " + ours;
        if (given.get("has_json").asBoolean()) {
            for (Method method : converter.getMethods()) {
                boolean reads = method.getName().equals("read");
                if (reads && !method.invoke(null, given.get("json"), version).equals(message)) {
                    return "reads our JSON otherwise";
                }
            }
        }
        return null;
    }

    // Where there are record fields the converter asks whether to print them.
    private static Object toJson(Class<?> converter, Class<?> type, Message message, short version)
            throws ReflectiveOperationException {
        try {
            return converter.getMethod("write", type, short.class, boolean.class).invoke(null, message, version, true);
        } catch (NoSuchMethodException e) {
            return converter.getMethod("write", type, short.class).invoke(null, message, version);
        }
    }
}
