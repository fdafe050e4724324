// Apache Kafka's generated message classes, asked line by line. Each line on stdin is a JSON object and gets one line back,
// a JSON list.
//
// {"class", "version", "judge": [{"hex", "json", "has_json"}]}: read the bytes, write them again, print the message, and
// read "json": all must be what we say. Back come, for each message, null or what differs. "has_json" is false where JSON
// does not carry all of the message (unknown tags, and records, which Kafka prints as "").
//
// {"class", "version", "make": COUNT, "seed"}: random messages, as {"raw", "hex", "json"}: what RandomValues laid out, what
// the class writes after reading that (without tags at their default), and what it prints.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
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
import org.apache.kafka.common.protocol.types.Schema;

public class Oracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    private final Class<?> type;
    private final Class<?> converter;
    private final short version;

    private Oracle(JsonNode asked) throws ReflectiveOperationException {
        type = Class.forName(asked.get("class").asText());
        converter = Class.forName(type.getName() + "JsonConverter");
        version = (short) asked.get("version").asInt();
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = JSON.readTree(line);
            Oracle oracle = new Oracle(asked);
            out.println(JSON.writeValueAsString(asked.has("judge") ? oracle.judge(asked) : oracle.make(asked)));
        }
    }

    private ArrayNode judge(JsonNode asked) throws Exception {
        ArrayNode said = JSON.createArrayNode();
        for (JsonNode given : asked.get("judge")) {
            try {
                said.add(difference(given));
            } catch (InvocationTargetException e) {
                said.add("fails: " + e.getCause());
            } catch (RuntimeException e) {
                said.add("fails: " + e);
            }
        }
        return said;
    }

    private String difference(JsonNode given) throws Exception {
        byte[] bytes = HEX.parseHex(given.get("hex").asText());
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        Message message = read(buffer);
        if (buffer.hasRemaining()) return "leaves " + buffer.remaining() + " bytes unread";
        byte[] written = write(message);
        if (!Arrays.equals(written, bytes)) return "writes " + HEX.formatHex(written) + " for " + given.get("hex");
        String theirs = JSON.writeValueAsString(print(message));
        String ours = JSON.writeValueAsString(given.get("json"));
        if (!theirs.equals(ours)) return "prints " + theirs + ", we " + ours;
        if (given.get("has_json").asBoolean() && !parse(given.get("json")).equals(message)) {
            return "reads our JSON otherwise: " + ours;
        }
        return null;
    }

    private ArrayNode make(JsonNode asked) throws Exception {
        Schema schema = ((Schema[]) type.getField("SCHEMAS").get(null))[version];
        RandomValues values = new RandomValues(schema, asked.get("seed").asLong());
        ArrayNode made = JSON.createArrayNode();
        for (int number = 0; number < asked.get("make").asInt(); number++) {
            ByteBuffer raw = values.message(number);
            Message message = read(raw.duplicate());
            made.addObject()
                .put("raw", HEX.formatHex(raw.array()))
                .put("hex", HEX.formatHex(write(message)))
                .set("json", print(message));
        }
        return made;
    }

    private Message read(ByteBuffer buffer) throws ReflectiveOperationException {
        return (Message) type.getConstructor(Readable.class, short.class)
            .newInstance(new ByteBufferAccessor(buffer), version);
    }

    private byte[] write(Message message) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer written = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(written), cache, version);
        return written.array();
    }

    // Where there are record fields the converter asks whether to print them.
    private JsonNode print(Message message) throws ReflectiveOperationException {
        try {
            Method write = converter.getMethod("write", type, short.class, boolean.class);
            return (JsonNode) write.invoke(null, message, version, true);
        } catch (NoSuchMethodException e) {
            return (JsonNode) converter.getMethod("write", type, short.class).invoke(null, message, version);
        }
    }

    private Object parse(JsonNode json) throws ReflectiveOperationException {
        return converter.getMethod("read", JsonNode.class, short.class).invoke(null, json, version);
    }
}
