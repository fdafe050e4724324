// Random messages as Kafka itself lays them out: values for a generated class's schema of one version, drawn here and
// written by Kafka's schema classes, not by the generated ones. The first is all zeros and empties, the second all nulls;
// of the others every eighth may have an array of hundreds of elements, each of the schema's arrays in turn.

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

public class RandomValues {
    private enum Kind { ZEROS, NULLS, ANY }

    // Above every declared tag: a class refuses a tag that belongs to another version.
    private static final int UNKNOWN_TAG_MIN = 100;
    private static final int[] SIZES = {0, 1, 2, 5, 20, 125, 126, 127, 128, 1000};
    private static final int[] LARGE_SIZES = {16382, 16383, 16384, 32767};

    private final Schema schema;
    private final Random random;
    // One type for each array of the schema.
    private final List<Type> arrays = new ArrayList<>();
    private Kind kind;
    private Type large;
    private boolean hasLarge;

    public RandomValues(Schema schema, long seed) throws ReflectiveOperationException {
        this.schema = schema;
        this.random = new Random(seed);
        findArrays(schema);
    }

    private void findArrays(Type type) throws ReflectiveOperationException {
        if (type.isArray()) {
            arrays.add(type);
            findArrays(type.arrayElementType().get());
        } else if (type instanceof TaggedFields) {
            for (Field field : fieldsOf((TaggedFields) type).values()) findArrays(field.type);
        } else if (type instanceof Schema) {
            for (BoundField field : ((Schema) type).fields()) findArrays(field.def.type);
        }
    }

    public ByteBuffer message(int number) throws ReflectiveOperationException {
        kind = number == 0 ? Kind.ZEROS : number == 1 ? Kind.NULLS : Kind.ANY;
        hasLarge = number % 8 == 2 && !arrays.isEmpty();
        large = hasLarge ? arrays.get(number / 8 % arrays.size()) : null;
        Struct struct = struct(schema);
        ByteBuffer bytes = ByteBuffer.allocate(schema.sizeOf(struct));
        schema.write(bytes, struct);
        return bytes.flip();
    }

    private Struct struct(Schema schema) throws ReflectiveOperationException {
        Struct struct = new Struct(schema);
        for (BoundField field : schema.fields()) {
            struct.set(field, value(field.def.type));
        }
        return struct;
    }

    private Object value(Type type) throws ReflectiveOperationException {
        if (type.isNullable() && (kind == Kind.NULLS || kind == Kind.ANY && random.nextInt(4) == 0)) return null;
        if (type instanceof TaggedFields) return tagged((TaggedFields) type);
        if (type instanceof Schema) return struct((Schema) type);
        if (type.isArray()) return array(type);
        return scalar(type.toString());
    }

    private Object[] array(Type type) throws ReflectiveOperationException {
        int size = kind == Kind.ZEROS ? 0 : kind == Kind.NULLS ? 1 : random.nextInt(3);
        if (type == large) {
            size = 200 + random.nextInt(200);
            large = null;
        }
        Type element = type.arrayElementType().get();
        Object[] values = new Object[size];
        for (int i = 0; i < size; i++) {
            values[i] = value(element);
        }
        return values;
    }

    // Known tags are written at times although they are at their default, which the generated classes never do.
    private Map<Integer, Object> tagged(TaggedFields type) throws ReflectiveOperationException {
        Map<Integer, Object> values = new TreeMap<>();
        for (Map.Entry<Integer, Field> each : fieldsOf(type).entrySet()) {
            if (kind == Kind.NULLS || random.nextBoolean()) values.put(each.getKey(), value(each.getValue().type));
        }
        if (kind == Kind.ANY) {
            for (int left = random.nextInt(8) / 5; left > 0; left--) {
                int tag = UNKNOWN_TAG_MIN + random.nextInt(Integer.MAX_VALUE - UNKNOWN_TAG_MIN >>> random.nextInt(28));
                values.put(tag, new RawTaggedField(tag, bytes()));
            }
        }
        return values;
    }

    // kafka-clients 3.9.1 cannot tell them; no message that is made with it has any.
    @SuppressWarnings("unchecked")
    private static Map<Integer, Field> fieldsOf(TaggedFields type) throws ReflectiveOperationException {
        if (type.numFields() == 0) return Map.of();
        return (Map<Integer, Field>) TaggedFields.class.getMethod("fields").invoke(type);
    }

    private Object scalar(String type) {
        switch (type.replace("COMPACT_", "").replace("NULLABLE_", "")) {
            case "BOOLEAN": return kind != Kind.ZEROS && random.nextBoolean();
            case "INT8": return (byte) integer(8);
            case "INT16": return (short) integer(16);
            case "UINT16": return (int) integer(16) & 0xFFFF;
            case "INT32": return (int) integer(32);
            case "INT64": return integer(64);
            case "FLOAT64": return kind == Kind.ZEROS ? 0.0 : (random.nextDouble() - 0.5) * Math.pow(10, random.nextInt(40));
            case "UUID": return kind == Kind.ZEROS ? Uuid.ZERO_UUID : new Uuid(random.nextLong(), random.nextLong());
            case "STRING": return text();
            case "BYTES": return ByteBuffer.wrap(bytes());
            case "RECORDS": return records(bytes());
            default: throw new IllegalArgumentException("no random " + type);
        }
    }

    // As many small ones as large ones, of either sign, and the extremes; and often -1, the default of many fields.
    private long integer(int bits) {
        if (kind == Kind.ZEROS) return 0;
        switch (random.nextInt(8)) {
            case 0: return (random.nextBoolean() ? Long.MIN_VALUE : Long.MAX_VALUE) >> 64 - bits;
            case 1: return -1;
            default: break;
        }
        return random.nextLong() >> 64 - 1 - random.nextInt(bits);
    }

    private int size() {
        if (kind == Kind.ZEROS) return 0;
        if (!hasLarge && random.nextInt(100) == 0) return LARGE_SIZES[random.nextInt(LARGE_SIZES.length)];
        return SIZES[random.nextInt(random.nextInt(4) == 0 ? SIZES.length : 4)];
    }

    private byte[] bytes() {
        byte[] bytes = new byte[size()];
        random.nextBytes(bytes);
        return bytes;
    }

    // The class has moved between Kafka's versions; the type makes one.
    private static Object records(byte[] bytes) {
        return Type.RECORDS.read(ByteBuffer.allocate(4 + bytes.length).putInt(bytes.length).put(bytes).flip());
    }

    // Any characters, of one to four bytes each; a string's length counts bytes.
    private String text() {
        int size = size();
        StringBuilder text = new StringBuilder();
        for (int left = size; left > 0; ) {
            int character = random.nextInt(4) > 0 ? 1 + random.nextInt(127) : random.nextInt(Character.MAX_CODE_POINT + 1);
            if (character >= Character.MIN_SURROGATE && character <= Character.MAX_SURROGATE) continue;
            int width = Character.toString(character).getBytes(StandardCharsets.UTF_8).length;
            if (width > left) continue;
            text.appendCodePoint(character);
            left -= width;
        }
        return text.toString();
    }
}
