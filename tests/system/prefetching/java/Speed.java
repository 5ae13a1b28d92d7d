import idmint.client.Idmint;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/** Prints how many nanoseconds next(), a version 4 UUID and an atomic counter take: the median of 21 runs on one thread. */
class Speed {
    static final int CALLS = 20_000;
    static final int RUNS = 21;
    static long sum;

    static double nanos(LongSupplier call) {
        var times = new double[RUNS];
        for (int run = -RUNS; run < RUNS; run++) {
            long begun = System.nanoTime();
            for (int at = 0; at < CALLS; at++) {
                sum += call.getAsLong();
            }
            // The runs below 0 warm up the JIT compiler, and run 0 overwrites their times.
            times[Math.max(0, run)] = (double) (System.nanoTime() - begun) / CALLS;
        }
        Arrays.sort(times);
        return times[RUNS / 2];
    }

    public static void main(String[] args) {
        var options = new Idmint.Options().prefetchCountMax(100_000).prefetchCount(100_000);
        try (var ids = new Idmint(List.of(args[0]), "snowflake", options)) {
            var counter = new AtomicLong();
            double next = nanos(ids::next);
            double uuid4 = nanos(() -> UUID.randomUUID().getLeastSignificantBits());
            System.out.printf(Locale.ROOT, "%.1f %.1f %.1f%n", next, uuid4, nanos(counter::incrementAndGet));
        }
        System.exit(0);
    }
}
