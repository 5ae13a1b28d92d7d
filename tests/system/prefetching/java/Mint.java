import idmint.client.Idmint;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;

/** Mints ids. ../mod.rs describes the arguments, the input and the output. */
class Mint {
    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[2]);
        int count = Integer.parseInt(args[3]);
        var validity = Duration.ofSeconds(Long.parseLong(args[4]));
        var options = new Idmint.Options().prefetchValidity(validity).timeout(Duration.ofMinutes(2));
        var ids = new Idmint(List.of(args[0].split(",")), args[1], options);
        var failed = new AtomicReference<Throwable>();
        var orders = new BufferedReader(new InputStreamReader(System.in));
        while (orders.readLine() != null) {
            var records = ByteBuffer.allocate(16 * count);
            var running = new ArrayList<Thread>();
            for (int thread = 0; thread < threads; thread++) {
                int begin = (int) ((long) count * thread / threads);
                int end = (int) ((long) count * (thread + 1) / threads);
                var worker = new Thread(() -> {
                    for (int at = begin; at < end; at++) {
                        long asked = System.currentTimeMillis();
                        records.putLong(16 * at, ids.next()).putLong(16 * at + 8, asked);
                    }
                });
                worker.setUncaughtExceptionHandler((which, why) -> failed.set(why));
                worker.start();
                running.add(worker);
            }
            for (var worker : running) {
                worker.join();
            }
            if (failed.get() != null) {
                failed.get().printStackTrace();
                System.exit(1);
            }
            System.out.write(records.array());
            System.out.flush();
        }
        ids.close();
        try {
            ids.next();
            System.exit(1);
        } catch (Idmint.Failure closed) {
            System.exit(closed.kind() == Idmint.Kind.CLOSED ? 0 : 1);
        }
    }
}
