import idmint.client.Idmint;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/** Starts as many threads as this process may have. A call must then fail and not hang. After these threads end, calls must succeed. */
class NoThreads {
    public static void main(String[] args) throws InterruptedException {
        var options = new Idmint.Options().prefetchCount(1).prefetchCountMax(1).timeout(Duration.ofSeconds(20));
        try (var ids = new Idmint(List.of(args[0]), "snowflake", options)) {
            long last = ids.next();
            var ended = new CountDownLatch(1);
            var threads = new ArrayList<Thread>();
            // A thread of Java itself may end later. Fill up again until several attempts in a row have failed.
            for (int failures = 0; failures < 20; ) {
                try {
                    var thread = new Thread(() -> {
                        try {
                            ended.await();
                        } catch (InterruptedException interrupted) {
                            Thread.currentThread().interrupt();
                        }
                    });
                    thread.start();
                    threads.add(thread);
                    failures = 0;
                } catch (OutOfMemoryError none) {
                    failures++;
                    Thread.sleep(50);
                }
            }
            try {
                // Each request fetches a single id, so the second call needs a thread at the latest.
                for (int call = 0; call < 3; call++) {
                    ids.next();
                }
                throw new AssertionError("a thread was started");
            } catch (Idmint.Failure failed) {
                if (failed.kind() != Idmint.Kind.UNAVAILABLE || !failed.getMessage().contains("thread")) {
                    throw failed;
                }
            }
            ended.countDown();
            for (var thread : threads) {
                thread.join();
            }
            for (int attempt = 0; ; attempt++) {
                try {
                    if (ids.next() <= last) {
                        throw new AssertionError("an old id");
                    }
                    break;
                } catch (Idmint.Failure failed) {
                    // The client waits before it retries.
                    if (attempt == 10_000) {
                        throw failed;
                    }
                    Thread.sleep(10);
                }
            }
        }
        System.out.println("done");
        System.exit(0);
    }
}
