import com.sun.net.httpserver.HttpServer;
import idmint.client.Idmint;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

/** What is wrong is said with what to mend; no id is older than its validity; an append that must be sent again is done once. */
class Errors {
    static final HttpClient HTTP = HttpClient.newHttpClient();

    static void claim(boolean holds, Object otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }

    static Idmint open(String url, String format, Idmint.Options options) {
        return new Idmint(List.of(url), format, options);
    }

    static Idmint.Options options() {
        return new Idmint.Options().timeout(Duration.ofMinutes(1));
    }

    static Idmint.Failure failureOf(Runnable act) {
        try {
            act.run();
        } catch (Idmint.Failure failure) {
            return failure;
        }
        throw new AssertionError("nothing was refused");
    }

    /** Wants both ways to take an id refused with these words. */
    static void refuse(int status, String url, String format, Idmint.Options options, String... words) {
        try (var ids = open(url, format, options)) {
            for (Consumer<Idmint> take : List.<Consumer<Idmint>>of(Idmint::next, Idmint::nextText)) {
                var failure = failureOf(() -> take.accept(ids));
                claim(failure.status() == status, failure);
                for (var word : words) {
                    claim(failure.getMessage().contains(word), word + " is not in " + failure);
                }
            }
        }
    }

    /** Wants the constructor to refuse without a secret in its words. */
    static void wrong(String url, Idmint.Options options) {
        try (var ids = open(url, "snowflake", options)) {
            throw new AssertionError(ids);
        } catch (IllegalArgumentException wrong) {
            claim(!wrong.toString().contains("hunter2") && wrong.getCause() == null, wrong);
        }
    }

    static long unixMs(long snowflake) {
        return (snowflake >> 22) + 1_420_070_400_000L;
    }

    static String send(String method, String url, String token, byte[] body) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(url)).header("Authorization", "Bearer " + token);
        request.header("Content-Type", "application/json").method(method, HttpRequest.BodyPublishers.ofByteArray(body));
        return HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString()).body();
    }

    public static void main(String[] args) throws Exception {
        var plain = "http://127.0.0.1:" + args[0];
        var token = args[1];
        var secured = "https://127.0.0.1:" + args[3];

        refuse(401, plain, "snowflake", options(), "Options.token", "http.tokens");
        refuse(403, plain, "snowflake", options().token(args[2]), "scopes", "http.tokens");
        refuse(404, plain, "invoice", options().token(token), "invoice");
        refuse(422, plain, "siq", options().token(token), "this works: POST /ids/siq?type=");
        refuse(0, "http://127.0.0.1:1", "snowflake", options().timeout(Duration.ofSeconds(1)), "http://127.0.0.1:1");
        refuse(0, secured, "snowflake", options(), "Options.caFile");
        try (var uuids = open(plain, "uuid7", options().token(token))) {
            var refused = failureOf(uuids::next);
            claim(refused.status() == 406 && refused.reason().equals("rows") && refused.kind() == Idmint.Kind.REFUSED, refused);
            claim(uuids.nextText().length() == 36, "a UUID");
        }

        Set<Long> seen = new HashSet<>();
        try (var ids = new Idmint(List.of("127.0.0.1:1", secured), "snowflake", options().caFile(Path.of(args[4])))) {
            for (int i = 0; i < 1000; i++) {
                seen.add(ids.next());
            }
        }
        claim(seen.size() == 1000, "ids came twice");

        try (var old = open(plain, "snowflake", options().token(token).prefetchValidity(Duration.ofMillis(300)))) {
            long first = old.next();
            Thread.sleep(400);
            long asked = System.currentTimeMillis();
            long second = old.next();
            claim(unixMs(first) < asked - 300 && unixMs(second) > asked - 300, first + " " + second + " at " + asked);
        }
        try (var most = open(plain, "payment", options().token(token).prefetchCountMax(90_000).prefetchCount(90_000))) {
            claim(most.next() < most.next(), "as many as there are");
        }
        try (var siq = open(plain, "siq", options().token(token).query("type", "message"))) {
            claim(failureOf(siq::next).getMessage().contains("nextText"), "a number of 112 bits");
            claim(siq.nextText().length() == 28, "a SIQ");
        }

        // Texts that are made of numbers, and those that the service makes, are the same.
        for (var row : List.of(
                List.of("snowflake", "", "", "[1-9][0-9]{17,18}"),
                List.of("snowflake", "encoding", "hex", "[1-9a-f][0-9a-f]{15}"),
                List.of("snowflake", "encoding", "hex_padded", "[0-9a-f]{16}"),
                List.of("snowflake", "encoding", "base64", ".{12}"),
                List.of("payment", "", "", "[0-9A-Z]{9}"),
                List.of("siq", "type", "message", "00[0-9a-f]{26}"),
                List.of("uuid7", "encoding", "hex_padded", "[0-9a-f]{32}"))) {
            for (var allowed : List.of(token, args[6])) {
                var options = options().token(allowed);
                try (var ids = open(plain, row.get(0), row.get(1).isEmpty() ? options : options.query(row.get(1), row.get(2)))) {
                    var first = ids.nextText();
                    var second = ids.nextText();
                    claim(!first.equals(second) && first.matches(row.get(3)) && second.matches(row.get(3)), first + " " + second);
                    claim(!allowed.equals(token) || ids.decode(first).get("matches").toString().contains("format=" + row.get(0)), first);
                }
            }
        }

        var created = send("POST", plain + "/ledgers", token, Files.readAllBytes(Path.of(args[5])));
        var ledger = created.replaceAll(".*\"ledger\":\"([0-9a-f]{8})\".*\\s*", "$1");
        var lost = new AtomicInteger();
        var losing = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        losing.createContext("/", exchange -> {
            try {
                var request = HttpRequest.newBuilder(URI.create(plain + exchange.getRequestURI()));
                for (var name : List.of("Authorization", "Content-Type", "Idempotency-Key")) {
                    var value = exchange.getRequestHeaders().getFirst(name);
                    if (value != null) {
                        request.header(name, value);
                    }
                }
                var body = HttpRequest.BodyPublishers.ofByteArray(exchange.getRequestBody().readAllBytes());
                request.method(exchange.getRequestMethod(), body);
                var answer = HTTP.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
                if (lost.incrementAndGet() > 2) {
                    exchange.sendResponseHeaders(answer.statusCode(), answer.body().length);
                    exchange.getResponseBody().write(answer.body());
                }
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
            exchange.close();
        });
        losing.start();
        var event = "{\"event\":\"Paid\",\"entities\":{}}";
        var through = "http://127.0.0.1:" + losing.getAddress().getPort();
        try (var ids = open(through, "snowflake", options().token(token).timeout(Duration.ofMinutes(1)))) {
            var appended = ids.append(ledger, List.of(event));
            claim(appended.size() == 1 && lost.get() == 3, appended + " after " + lost);
            var again = ids.append(ledger, List.of(event));
            claim(!again.equals(appended), again);
            for (var key : List.of("order-1", "order-1", "order-2")) {
                long expected = key.equals("order-1") ? 1 : 2;
                var given = ids.number("java", key);
                claim(given.equals(new Idmint.SeriesNumber(expected, Long.toString(expected))), given);
            }
            var chain = send("GET", plain + "/ledgers/" + ledger + "/ids", token, new byte[0]);
            // Genesis and two events, though the first was sent three times.
            claim(chain.contains(appended.get(0)) && chain.contains(again.get(0)), chain);
            claim(chain.split("\"place\":").length - 1 <= 3, chain);
            var texts = ids.mint(1000);
            claim(new HashSet<>(texts).size() == 1000, texts.size());
            claim(ids.decode(texts.get(0)).get("id").equals(texts.get(0)), texts.get(0));
            var unread = failureOf(() -> ids.decode("no id at all"));
            claim(unread.status() == 404 && unread.slug().equals("no-format-matches"), unread);
        }
        losing.stop(0);
        for (var wrong : List.of(" \n", "hunter2\r\nx: y", "hunter2\u00e9")) {
            wrong(plain, options().token(wrong));
        }
        for (var wrong : List.of("http://user:hunter2@x", "ftp://user:hunter2@x:port", "ftp://x", "http://hunter2 @x")) {
            wrong(wrong, options());
        }
        try (var trimmed = open(plain, "snowflake", options().token(" " + token + "\n"))) {
            claim(trimmed.next() > 0, "a token with white space around it");
        }
        System.out.println("done");
        System.exit(0);
    }
}
