// Apache Kafka's PartitionChangeBuilder, asked line by line. Each line on stdin is a JSON list of partitions and of what
// becomes of them; back comes a list of the records that follow, as Kafka prints them, null where there is none.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.function.IntPredicate;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecordJsonConverter;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.Replicas;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

public class Elections {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ArrayNode said = JSON.createArrayNode();
            for (JsonNode asked : JSON.readTree(line)) {
                Optional<ApiMessageAndVersion> change = change(asked);
                if (change.isEmpty()) {
                    said.addNull();
                } else {
                    said.add(PartitionChangeRecordJsonConverter.write(
                        (PartitionChangeRecord) change.get().message(), change.get().version()));
                }
            }
            out.println(JSON.writeValueAsString(said));
        }
    }

    private static Optional<ApiMessageAndVersion> change(JsonNode asked) {
        PartitionRegistration before = partition(asked.get("partition"));
        List<Integer> active = integers(asked.get("active"));
        IntPredicate isAcceptable = broker -> {
            // Kafka's own throws where the broker holds no replica yet: an unclean election while one is being added.
            if (!active.contains(broker) || !Replicas.contains(before.replicas, broker)) return false;
            List<Uuid> online = uuids(asked.get("online").get(Integer.toString(broker)));
            Collections.sort(online);
            return DirectoryId.isOnline(before.directory(broker), online);
        };
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            before,
            Uuid.fromString(asked.get("topicId").asText()),
            0,
            isAcceptable,
            MetadataVersion.fromFeatureLevel((short) asked.get("level").asInt()),
            asked.get("minIsr").asInt(),
            asked.get("isElrEnabled").asBoolean());
        builder.setElection(PartitionChangeBuilder.Election.valueOf(asked.get("election").asText()));
        builder.setDefaultDirProvider(
            broker -> Uuid.fromString(asked.get("defaults").get(Integer.toString(broker)).asText()));
        builder.setTargetIsr(integers(asked.get("isr")));
        builder.setTargetReplicas(integers(asked.get("replicas")));
        builder.setTargetRemoving(integers(asked.get("removing")));
        builder.setTargetAdding(integers(asked.get("adding")));
        builder.setTargetLeaderRecoveryState(LeaderRecoveryState.of((byte) asked.get("recovery").asInt()));
        builder.setUncleanShutdownReplicas(integers(asked.get("unclean")));
        return builder.build();
    }

    private static PartitionRegistration partition(JsonNode node) {
        return new PartitionRegistration.Builder().
            setReplicas(array(node.get("replicas"))).
            setDirectories(uuids(node.get("directories")).toArray(new Uuid[0])).
            setIsr(array(node.get("isr"))).
            setRemovingReplicas(array(node.get("removing"))).
            setAddingReplicas(array(node.get("adding"))).
            setElr(array(node.get("elr"))).
            setLastKnownElr(array(node.get("lastKnownElr"))).
            setLeader(node.get("leader").asInt()).
            setLeaderRecoveryState(LeaderRecoveryState.of((byte) node.get("recovery").asInt())).
            setLeaderEpoch(node.get("leaderEpoch").asInt()).
            setPartitionEpoch(node.get("partitionEpoch").asInt()).
            build();
    }

    private static List<Integer> integers(JsonNode node) {
        List<Integer> found = new ArrayList<>();
        node.forEach(each -> found.add(each.asInt()));
        return found;
    }

    private static int[] array(JsonNode node) {
        return integers(node).stream().mapToInt(Integer::intValue).toArray();
    }

    private static List<Uuid> uuids(JsonNode node) {
        List<Uuid> found = new ArrayList<>();
        node.forEach(each -> found.add(Uuid.fromString(each.asText())));
        return found;
    }
}
