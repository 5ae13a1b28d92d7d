import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import idmint.client.Idmint;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Function;

/** Checks that errors name the remedy, that no id is older than its validity, and that a repeated append is applied only once. */
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

    /** Asserts that next() and nextText() fail with this status, and that both messages contain these words. */
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

    /** Asserts that the constructor fails, and that its message does not contain the secret. */
    static void wrong(String url, Idmint.Options options) {
        try (var ids = open(url, "snowflake", options)) {
            throw new AssertionError(ids);
        } catch (IllegalArgumentException wrong) {
            claim(!wrong.toString().contains("hunter2") && wrong.getCause() == null, wrong);
        }
    }

    /** Starts a service that responds to each request with a status and a body. */
    static HttpServer stub(Function<HttpExchange, Map.Entry<Integer, String>> answer) throws IOException {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", exchange -> {
            var said = answer.apply(exchange);
            var body = said.getValue().getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(said.getKey(), body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
        return server;
    }

    static String urlOf(HttpServer server) {
        return "http://127.0.0.1:" + server.getAddress().getPort();
    }

    static void tokenInSuccess() throws IOException {
        var server = stub(exchange -> Map.entry(200, "{\"number\":\"1\",\"text\":\"INV-acme-00001\"}"));
        try (var ids = open(urlOf(server), "snowflake", options().token("acme"))) {
            claim(ids.number("acme-2026", "order-1").text().equals("INV-acme-00001"), "the token is replaced in a success");
        }
        server.stop(0);
    }

    /** If one address closes each connection during the TLS handshake, the client uses the other address. */
    static void cutHandshake(String secured, Path caFile) throws IOException {
        try (var cutting = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            var thread = new Thread(() -> {
                try {
                    while (true) {
                        cutting.accept().close();
                    }
                } catch (IOException closed) {
                    // The test has ended.
                }
            });
            thread.start();
            var cut = "https://127.0.0.1:" + cutting.getLocalPort();
            try (var ids = new Idmint(List.of(cut, secured), "snowflake", options().caFile(caFile))) {
                claim(ids.mint(1).size() == 1, "an id");
            }
        }
    }

    /** If the certificate of an address is not trusted, the client uses another address. Without another one, the call ends at once. */
    static void untrusted(String secured, String plain, String token) {
        var options = new Idmint.Options().token(token).timeout(Duration.ofDays(1));
        try (var both = new Idmint(List.of(secured, plain), "snowflake", options); var alone = open(secured, "snowflake", options)) {
            for (int i = 0; i < 3; i++) {
                claim(both.mint(1).size() == 1, "an id");
                var refused = failureOf(() -> alone.mint(1));
                claim(refused.kind() == Idmint.Kind.REFUSED, refused);
            }
        }
    }

    /** If ids do not fit into a long, the client requests their texts from the service. */
    static void wideExample() throws IOException {
        var format = "{\"rule\":\"sequenced\",\"minted\":true,\"bits\":64,"
                + "\"encodings\":[{\"name\":\"decimal\",\"length\":null,\"pattern\":\"^(?:0|[1-9][0-9]{0,19})$\"}],"
                + "\"example\":{\"value\":\"14824562805964800007\",\"encodings\":{\"decimal\":\"14824562805964800007\"}}}";
        var server = stub(exchange -> Map.entry(200, exchange.getRequestURI().getPath().startsWith("/formats/")
                ? format : "{\"ids\":[\"14824562805964800008\"]}"));
        try (var ids = open(urlOf(server), "big", options().prefetchCount(1).prefetchCountMax(1))) {
            claim(ids.nextText().equals("14824562805964800008"), "a text of the service");
        }
        server.stop(0);
    }

    static void serialized(Idmint.Failure failure) throws Exception {
        var bytes = new ByteArrayOutputStream();
        try (var out = new ObjectOutputStream(bytes)) {
            out.writeObject(failure);
        }
        try (var in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
            var read = (Idmint.Failure) in.readObject();
            claim(read.slug().equals(failure.slug()) && Objects.equals(read.reason(), failure.reason()), read);
        }
    }

    /** After a 503 for one kind of request, the client still sends other requests to the same address. */
    static void partlyUnable() throws IOException {
        var asked = new AtomicInteger();
        var server = stub(exchange -> {
            int count = asked.incrementAndGet();
            var path = exchange.getRequestURI().getPath();
            return path.startsWith("/numbers/") ? Map.entry(503, "{\"type\":\"/problems/numbers-held\"}")
                    : path.startsWith("/ledgers/slow/") && count == 1 ? Map.entry(408, "{}")
                    : path.startsWith("/ledgers/importing/") ? Map.entry(409, "{\"type\":\"/problems/ledger-importing\"}")
                    : path.startsWith("/ledgers/aa77f99c/") ? Map.entry(503, "{\"type\":\"/problems/clock-behind\",\"retry_after_ms\":20000}")
                    : Map.entry(200, "{\"ids\":[\"1\"]}");
        });
        try (var ids = open(urlOf(server), "snowflake", new Idmint.Options())) {
            claim(ids.append("slow", List.of("{}")).equals(List.of("1")) && asked.get() == 2, asked);
            var importing = failureOf(() -> ids.append("importing", List.of("{}")));
            claim(importing.slug().equals("ledger-importing") && importing.kind() == Idmint.Kind.UNAVAILABLE, importing);
            claim(ids.mint(1).equals(List.of("1")), "an id");
            claim(failureOf(() -> ids.number("acme-2026", "order-1")).slug().equals("numbers-held"), "a held series");
            claim(ids.mint(1).equals(List.of("1")), "an id");
            claim(failureOf(() -> ids.append("aa77f99c", List.of("{}"))).slug().equals("clock-behind"), "a clock that is behind");
            claim(ids.mint(1).equals(List.of("1")), "an id");
        }
        // The client retries none of the three requests. A held series and an import wait for an
        // operator, and the other response asks for a wait that is longer than the timeout.
        claim(asked.get() == 8, asked);
        // One address is down, and the other one refuses this request with a 503. The client must
        // report the 503, and must use that address for the next call.
        try (var ids = new Idmint(List.of("http://127.0.0.1:1", urlOf(server)), "snowflake", options())) {
            var held = failureOf(() -> ids.number("acme-2026", "order-1"));
            claim("numbers-held".equals(held.slug()) && asked.get() == 9, held);
            claim(ids.mint(1).equals(List.of("1")), "an id");
        }
        server.stop(0);
    }

    /**
     * Checks that the timeout of 1 s covers a whole call. The service takes 0.45 s to describe the
     * format and 0.45 s for each id. The slower of two concurrent calls needs 1.35 s, so it must
     * fail.
     */
    static void oneDeadline() throws Exception {
        var server = stub(exchange -> {
            try {
                new CountDownLatch(1).await(450, TimeUnit.MILLISECONDS);
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
            return exchange.getRequestMethod().equals("POST") ? Map.entry(200, "{\"ids\":[\"1\"]}") : Map.entry(404, "{}");
        });
        var late = new AtomicInteger();
        var options = new Idmint.Options().timeout(Duration.ofSeconds(1)).prefetchCount(1).prefetchCountMax(1);
        try (var ids = open(urlOf(server), "snowflake", options)) {
            var threads = new ArrayList<Thread>();
            for (int at = 0; at < 2; at++) {
                threads.add(new Thread(() -> {
                    try {
                        ids.nextText();
                    } catch (Idmint.Failure failure) {
                        late.incrementAndGet();
                    }
                }));
                threads.get(at).start();
            }
            for (var thread : threads) {
                thread.join();
            }
        }
        claim(late.get() > 0, "both ids came within 1 s");
        server.stop(0);
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
        refuse(0, "http://127.0.0.1:1", "snowflake", options().timeout(Duration.ofSeconds(5)), "http://127.0.0.1:1");
        refuse(0, secured, "snowflake", options(), "Options.caFile");
        untrusted(secured, plain, token);
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

        // Texts that the client makes from numbers, and texts of the service, must have the same form.
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
        var lastPath = new AtomicReference<String>();
        losing.createContext("/", exchange -> {
            lastPath.set(exchange.getRequestURI().getRawPath());
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
            var keyed = ids.append(ledger, List.of(event), "order-1");
            claim(!keyed.equals(again) && ids.append(ledger, List.of(event), "order-1").equals(keyed), keyed);
            for (var key : List.of("order-1", "order-1", "order-2")) {
                long expected = key.equals("order-1") ? 1 : 2;
                var given = ids.number("java", key);
                claim(given.equals(new Idmint.SeriesNumber(expected, Long.toString(expected))), given);
            }
            var chain = send("GET", plain + "/ledgers/" + ledger + "/ids", token, new byte[0]);
            // The ledger has its first event and three more, although one was sent three times and another one twice.
            claim(chain.contains(appended.get(0)) && chain.contains(again.get(0)), chain);
            claim(chain.split("\"place\":").length - 1 <= 4, chain);
            var texts = ids.mint(1000);
            claim(new HashSet<>(texts).size() == 1000, texts.size());
            claim(ids.decode(texts.get(0)).get("id").equals(texts.get(0)), texts.get(0));
            // The client does not send half of a surrogate pair.
            var half = "{\"event\":\"Paid\",\"entities\":{},\"data\":{\"note\":\"\ud800\"}}";
            for (var act : List.<Runnable>of(() -> ids.append(ledger, List.of(half)), () -> ids.decode("\ud800"))) {
                var unsent = failureOf(act);
                claim(unsent.kind() == Idmint.Kind.REFUSED && unsent.status() == 0, unsent);
            }
            // The client escapes dots, so that they stay a segment of the path.
            for (var dots : List.of(".", "..")) {
                claim(failureOf(() -> ids.decode(dots)).status() == 404, dots);
                claim(failureOf(() -> ids.number(dots, "order-1")).status() == 422, dots);
            }
            claim(lastPath.get().equals("/numbers/%252E%252E"), lastPath);
            var unread = failureOf(() -> ids.decode("no id at all"));
            claim(unread.status() == 404 && unread.slug().equals("no-format-matches"), unread);
            serialized(unread);
        }
        losing.stop(0);
        tokenInSuccess();
        oneDeadline();
        partlyUnable();
        wideExample();
        cutHandshake(secured, Path.of(args[4]));
        for (var wrong : List.of(" \n", "hunter2\r\nx: y", "hunter2\u00e9")) {
            wrong(plain, options().token(wrong));
        }
        for (var wrong : List.of("http://user:hunter2@x", "ftp://user:hunter2@x:port", "ftp://x", "http://hunter2 @x")) {
            wrong(wrong, options());
        }
        wrong(plain, options().timeout(ChronoUnit.FOREVER.getDuration()));
        try (var trimmed = open(plain, "snowflake", options().token(" " + token + "\n"))) {
            claim(trimmed.next() > 0, "a token with white space around it");
        }
        System.out.println("done");
        System.exit(0);
    }
}
