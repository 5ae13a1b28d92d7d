import idmint.client.Idmint;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.TreeSet;
import java.util.function.Function;

/** Calls a server that misbehaves: see hostile/mod.rs. */
class Hostile {
    static String call(String token, String url, String name, String kind, int seconds, Function<Idmint, Object> act) {
        var options = new Idmint.Options().token(token + "\n").timeout(Duration.ofMillis(seconds > 0 ? 500 : 3000));
        if (name.equals("bulk")) {
            options.prefetchCount(10_000);
        }
        long until = System.nanoTime() + seconds * 1_000_000_000L;
        var seen = new ArrayList<Object>();
        var messages = new TreeSet<String>();
        Idmint.Failure failure = null;
        long longest = 0;
        try (var ids = new Idmint(List.of(url), "snowflake", options)) {
            while (true) {
                long begun = System.nanoTime();
                try {
                    seen.add(act.apply(ids));
                } catch (Idmint.Failure failed) {
                    failure = failed;
                    messages.add(failed.slug() + " " + options + " " + ids);
                    for (Throwable cause = failed; cause != null; cause = cause.getCause()) {
                        messages.add(cause.toString());
                    }
                }
                longest = Math.max(longest, System.nanoTime() - begun);
                if (System.nanoTime() - until >= 0) {
                    break;
                }
                try {
                    Thread.sleep(10);
                } catch (InterruptedException interrupted) {
                    throw new AssertionError(interrupted);
                }
            }
        }
        var failed = failure == null ? "" : failure.kind().name().toLowerCase(Locale.ROOT).replace('_', '-');
        boolean unknown = failure != null && failure.outcomeUnknown();
        long wait = failure == null ? 0 : failure.retryAfter().toMillis();
        return String.join("\t", name, kind, failed, "" + unknown, "" + wait, "" + longest / 1_000_000, "" + seen.size(),
                "" + new HashSet<>(seen).size(), String.join(" ", messages).replaceAll("\\s+", " ")) + "\n";
    }

    public static void main(String[] args) throws InterruptedException {
        var running = new ArrayList<Thread>();
        var lines = new String[args.length];
        for (int at = 1; at < args.length; at++) {
            int mine = at;
            var name = args[at].substring(0, args[at].indexOf('='));
            var url = args[at].substring(name.length() + 1);
            var thread = new Thread(() -> lines[mine] = call(args[0], url, name, "next", 10, Idmint::next)
                    + call(args[0], url, name, "append", 0, ids -> ids.append("aa77f99c", List.of("{\"event\":\"Paid\",\"entities\":{}}"))));
            thread.start();
            running.add(thread);
        }
        for (var thread : running) {
            thread.join();
        }
        for (int at = 1; at < args.length; at++) {
            System.out.print(lines[at]);
        }
        System.exit(0);
    }
}
