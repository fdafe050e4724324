import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What every Java contender's program shares: commands from stdin, a JSON object a line, each answered with one on stdout;
 * the end of stdin ends the program. The lines and the loops are those of bench/compare/workload.py.
 */
final class Load {
    /** One member of a quorum, or a client of one. */
    interface Target {
        boolean leads() throws Exception;

        /** Calls back, from whichever thread, with null once the values are committed, or with what went wrong. */
        void append(byte[][] values, Consumer<Throwable> done) throws Exception;
    }

    private static final double[] RANKS = {1, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99, 100};
    private static final long TICK_NS = 500_000, GRACE_NS = 1_000_000_000;
    private static final int ERRORS_MAX = 1000;

    private final Target target;
    private final int inFlightMax, batch;
    private final double rate, seconds;
    private final byte[][] values;
    private final AtomicInteger inFlight = new AtomicInteger();
    private long began;
    private long[] took = new long[1 << 16];
    private int count, errors;
    private Throwable last;

    private Load(Target target, String command) {
        this.target = target;
        inFlightMax = (int) number(command, "in_flight");
        batch = (int) number(command, "batch");
        rate = number(command, "rate");
        seconds = number(command, "seconds");
        values = new byte[batch][(int) number(command, "value_bytes")];
        for (byte[] value : values) Arrays.fill(value, (byte) 'x');
    }

    /** Answers commands until stdin ends. {@code out} is the real stdout. */
    static void serve(Target target, PrintStream out) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.contains("\"who\"")) out.println("{\"leads\": " + target.leads() + "}");
            else out.println(new Load(target, line).run());
            out.flush();
        }
    }

    private static double number(String command, String name) {
        Matcher found = Pattern.compile("\"" + name + "\":\\s*([-0-9.eE]+)").matcher(command);
        if (!found.find()) throw new IllegalArgumentException("no " + name + " in " + command);
        return Double.parseDouble(found.group(1));
    }

    private String run() {
        began = System.nanoTime();
        long appends = rate == 0 ? 0 : (long) (seconds * rate / batch), sent = 0;
        if (rate == 0) for (int n = 0; n < inFlightMax; n++) append(System.nanoTime());
        else sent = offer(appends);
        while (inFlight.get() > 0) LockSupport.parkNanos(TICK_NS);
        return figures((System.nanoTime() - began) / 1e9, (appends - sent) * batch);
    }

    /** An open loop on an absolute schedule; how many appends were sent. */
    private long offer(long appends) {
        double interval = batch / rate * 1e9;
        long sent = 0;
        while (sent < appends && System.nanoTime() - began < seconds * 1e9 + GRACE_NS) {
            long due = Math.min(appends, (long) ((System.nanoTime() - began) / interval) + 1);
            for (; sent < due && inFlight.get() < inFlightMax; sent++) append(began + (long) (sent * interval));
            LockSupport.parkNanos(TICK_NS);
        }
        return sent;
    }

    private void append(long since) {
        inFlight.incrementAndGet();
        try {
            target.append(values, error -> done(since, error));
        } catch (Exception error) {
            record(since, error);
            inFlight.decrementAndGet();
        }
    }

    private void done(long since, Throwable error) {
        boolean isGoingOn = record(since, error) && rate == 0 && System.nanoTime() - began < seconds * 1e9;
        if (isGoingOn) append(System.nanoTime());
        inFlight.decrementAndGet();
    }

    /** False once there were too many errors. */
    private synchronized boolean record(long since, Throwable error) {
        if (error != null) {
            errors++;
            last = error;
        } else {
            if (count == took.length) took = Arrays.copyOf(took, 2 * count);
            took[count++] = System.nanoTime() - since;
        }
        return errors <= ERRORS_MAX;
    }

    private synchronized String figures(double took_s, long notSent) {
        Arrays.sort(took, 0, count);
        StringBuilder ranks = new StringBuilder();
        for (double rank : RANKS) {
            if (count == 0) break;
            double us = took[(int) Math.min(count - 1, count * rank / 100)] / 1e3;
            ranks.append(String.format(Locale.ROOT, "%s\"%s\": %.1f", ranks.isEmpty() ? "" : ", ", rank, us));
        }
        String error = last == null ? "" : last.toString().replaceAll("[\"\\\\\\p{Cntrl}]", " ");
        return String.format(
                Locale.ROOT,
                "{\"commits\": %d, \"seconds\": %.6f, \"errors\": %d, \"not_sent\": %d, \"percentiles_us\": {%s}, \"error\": \"%s\"}",
                (long) count * batch, took_s, errors, notSent, ranks, error);
    }
}
