// Apache Kafka's command-line tools, one after the other in one JVM: started anew for each, most of the time is Java's start.
//
// Each line on stdin is {"class", "arguments", "timeout_ms"}, and gets one line back: [exit code, stdout, stderr]. A tool that
// takes longer is left behind, with exit code -1.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.common.utils.Exit;

public class Tools {
    private static final ObjectMapper JSON = new ObjectMapper();

    private static final class Exited extends Error {
        private static final long serialVersionUID = 1L;
    }

    // Scala keeps the streams that it finds first, so they stay the same.
    private static final ByteArrayOutputStream OUT = new ByteArrayOutputStream();
    private static final ByteArrayOutputStream ERR = new ByteArrayOutputStream();

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(new PrintStream(OUT, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(ERR, true, StandardCharsets.UTF_8));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ArrayNode answer = JSON.createArrayNode().add(run(JSON.readTree(line)));
            answers.println(answer.add(said(OUT)).add(said(ERR)));
        }
        System.exit(0);
    }

    private static String said(ByteArrayOutputStream stream) {
        String text = stream.toString(StandardCharsets.UTF_8);
        stream.reset();
        return text;
    }

    private static int run(JsonNode asked) throws Exception {
        Method main = Class.forName(asked.get("class").asText()).getMethod("main", String[].class);
        String[] words = JSON.convertValue(asked.get("arguments"), String[].class);
        AtomicReference<Integer> code = new AtomicReference<>();
        // The first one counts: a tool may catch what stops it here, and exit again.
        Exit.setExitProcedure((status, message) -> {
            code.compareAndSet(null, status);
            throw new Exited();
        });
        Thread tool = new Thread(() -> code.compareAndSet(null, call(main, words)), "tool");
        tool.setDaemon(true);
        tool.start();
        tool.join(asked.get("timeout_ms").asLong());
        return tool.isAlive() ? -1 : code.get();
    }

    private static int call(Method main, String[] words) {
        try {
            main.invoke(null, (Object) words);
            return 0;
        } catch (InvocationTargetException | IllegalAccessException e) {
            if (!(e.getCause() instanceof Exited)) e.printStackTrace();
            return 1;
        }
    }
}
