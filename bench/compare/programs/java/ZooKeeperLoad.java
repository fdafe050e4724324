import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.function.Consumer;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;

/**
 * ZooKeeper's own client, asynchronous: a value is a setData on one of a few nodes, a batch is one multi of as many.
 *
 * <p>usage: ZooKeeperLoad HOST:PORT
 */
public final class ZooKeeperLoad implements Load.Target {
    private static final int SESSIONS = 4, NODES = 100, SESSION_MS = 30_000;

    private final List<ZooKeeper> sessions = new ArrayList<>();
    private int next;

    private ZooKeeperLoad(String address) throws Exception {
        for (int n = 0; n < SESSIONS; n++) {
            CountDownLatch connected = new CountDownLatch(1);
            sessions.add(new ZooKeeper(address, SESSION_MS, event -> {
                if (event.getState() == KeeperState.SyncConnected) connected.countDown();
            }));
            connected.await();
        }
        for (int n = 0; n < NODES; n++) {
            try {
                sessions.get(0).create("/" + n, new byte[0], Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            } catch (KeeperException.NodeExistsException there) {
                continue; // by an earlier client
            }
        }
    }

    @Override
    public boolean leads() {
        return true;
    }

    @Override
    public void append(byte[][] values, Consumer<Throwable> done) {
        int number;
        synchronized (this) {
            number = next++ & Integer.MAX_VALUE;
        }
        ZooKeeper session = sessions.get(number % SESSIONS);
        if (values.length == 1) {
            session.setData("/" + number % NODES, values[0], -1, (code, path, context, stat) -> tell(done, code), null);
            return;
        }
        List<Op> all = new ArrayList<>(values.length);
        for (int n = 0; n < values.length; n++) all.add(Op.setData("/" + n % NODES, values[n], -1));
        session.multi(all, (code, path, context, results) -> tell(done, code), null);
    }

    private static void tell(Consumer<Throwable> done, int code) {
        done.accept(code == 0 ? null : KeeperException.create(Code.get(code)));
    }

    public static void main(String[] arguments) throws Exception {
        Load.serve(new ZooKeeperLoad(arguments[0]), System.out);
        Runtime.getRuntime().halt(0); // the sessions end by themselves
    }
}
