import java.io.PrintStream;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Properties;
import java.util.function.Consumer;
import kafka.server.KafkaConfig;
import kafka.tools.TestRaftServer;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.raft.BatchReader;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.RaftClient;
import org.apache.kafka.snapshot.SnapshotReader;

/**
 * Apache Kafka's own raft: kafka.tools.TestRaftServer, Kafka's standalone server for performance tests. Its built-in generator
 * appends one record a second; the load comes from here, by the same two calls (prepareAppend, schedulePreparedAppend).
 *
 * <p>usage: KafkaRaft PROPERTIES-FILE DIRECTORY-ID
 */
public final class KafkaRaft implements Load.Target, RaftClient.Listener<byte[]> {
    private record Waiting(long offset, Consumer<Throwable> done) {}

    private final RaftClient<byte[]> client;
    private final int id;
    private final ArrayDeque<Waiting> waiting = new ArrayDeque<>();
    private int epoch;

    private KafkaRaft(TestRaftServer server, int id) {
        client = server.raftManager().client();
        this.id = id;
        client.register(this);
    }

    @Override
    public boolean leads() {
        return client.leaderAndEpoch().isLeader(id);
    }

    @Override
    public void append(byte[][] values, Consumer<Throwable> done) {
        synchronized (waiting) {
            waiting.add(new Waiting(client.prepareAppend(epoch, Arrays.asList(values)), done));
        }
        client.schedulePreparedAppend();
    }

    @Override
    public void handleCommit(BatchReader<byte[]> reader) {
        long last = -1;
        while (reader.hasNext()) last = reader.next().lastOffset();
        reader.close();
        for (Waiting each = next(last); each != null; each = next(last)) each.done().accept(null);
    }

    private Waiting next(long committed) {
        synchronized (waiting) {
            return !waiting.isEmpty() && waiting.peek().offset() <= committed ? waiting.poll() : null;
        }
    }

    @Override
    public void handleLeaderChange(LeaderAndEpoch change) {
        ArrayDeque<Waiting> lost;
        synchronized (waiting) {
            epoch = change.epoch();
            lost = new ArrayDeque<>(waiting);
            waiting.clear();
        }
        for (Waiting each : lost) each.done().accept(new IllegalStateException("the leadership was lost"));
    }

    @Override
    public void handleLoadSnapshot(SnapshotReader<byte[]> reader) {
        reader.close();
    }

    @Override
    public void handleLoadBootstrap(SnapshotReader<byte[]> reader) {
        reader.close();
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err); // where Kafka prints its own figures
        Properties properties = Utils.loadProps(arguments[0]);
        properties.put("process.roles", "controller");
        KafkaConfig config = new KafkaConfig(properties, false);
        TestRaftServer server = new TestRaftServer(config, Uuid.fromString(arguments[1]), 1, 100);
        server.startup();
        Load.serve(new KafkaRaft(server, config.nodeId()), out);
        Runtime.getRuntime().halt(0); // nothing is left to be saved
    }
}
