import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLHandshakeException;
import javax.net.ssl.TrustManagerFactory;

/**
 * Ids from an idmint service: https, failover, and a stock of ids, so that most cost no round trip.
 *
 * <p>Copy this file. It needs Java 17 and nothing else:
 *
 * <pre>
 * var ids = new Idmint(List.of("http://10.0.0.1:8080", "http://10.0.0.2:8080"), "snowflake", new Idmint.Options().token("…"));
 * long id = ids.next();            // by any number of threads
 * String text = ids.nextText();    // a text, for formats of any kind
 * ids.mint(1000);                  // and decode("1573542478315782144"), append("aa77f99c", List.of("{\"event\":…}"))
 * ids.number("acme-2026", "order-4711"); // the next of a series without gaps, always the same for an order
 * ids.close();                     // an Idmint.Failure with a status says what to mend; one that isTransient passes
 * </pre>
 *
 * <p>One object for a process: Java cannot fork without exec. Where a process or machine is copied while it runs (CRaC, SnapStart, a
 * snapshot that is restored twice), make the object after the copy: nothing in a process tells that it was copied. Time in which the
 * machine sleeps does not count as age here.
 */
public final class Idmint implements AutoCloseable {
    private static final long PAUSE_MIN_MS = 100;
    private static final long PAUSE_MAX_MS = 5_000;

    /** What the service cannot know: where the mistake is mended. */
    private static final Map<Integer, String> REMEDIES = Map.of(
            401, "set Options.token to a token that http.tokens of the service has",
            403, "the token does not cover this: its scopes and formats are in http.tokens of the service",
            421, "ask by a name that the service answers for, or add this one to its http.hosts");

    /** What need not be said. */
    public static final class Options {
        private String token;
        private int prefetchCount = 100;
        private int prefetchCountMax = 10_000;
        private Duration prefetchValidity = Duration.ofSeconds(60);
        private Duration timeout = Duration.ofSeconds(10);
        private Path caFile;
        private final Map<String, String> query = new LinkedHashMap<>();

        /** What is shown with each request. */
        public Options token(String token) {
            this.token = token;
            return this;
        }

        /** How many ids are asked for at once, 100; grows with the rate of use. */
        public Options prefetchCount(int count) {
            prefetchCount = count;
            return this;
        }

        /** Up to so many, 10 000. */
        public Options prefetchCountMax(int count) {
            prefetchCountMax = count;
            return this;
        }

        /** How long an id may be handed out after it was asked for, so the longest outage that is bridged; a minute. */
        public Options prefetchValidity(Duration validity) {
            prefetchValidity = validity;
            return this;
        }

        /** After which a call gives up; 10 seconds. */
        public Options timeout(Duration timeout) {
            this.timeout = timeout;
            return this;
        }

        /** Whom to trust with https, as PEM; whom Java trusts. */
        public Options caFile(Path file) {
            caFile = file;
            return this;
        }

        /** What else the format needs, as {@code query("type", "message")}. */
        public Options query(String name, String value) {
            query.put(name, value);
            return this;
        }
    }

    /** No answer. */
    public static final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1;
        /** What the service answered; 0 if none did. */
        public final int status;
        /** The kind, as in /problems/{slug}, and why, as one word; null if that is not said. */
        public final String slug, reason;
        /** How long the service asks to wait. */
        public final long retryAfterMs;
        private final transient Map<String, Object> problem;

        private Failure(String message, int status, Map<String, Object> problem, long retryAfterMs, Throwable cause) {
            super(message, cause);
            this.status = status;
            this.problem = problem;
            this.retryAfterMs = retryAfterMs;
            slug = problem.get("type") instanceof String type ? type.substring(type.lastIndexOf('/') + 1) : null;
            reason = problem.get("reason") instanceof String word ? word : null;
        }

        /** Whether the same request may work later. */
        public boolean isTransient() {
            return switch (status) {
                case 429, 502, 503, 504 -> true;
                case 0 -> getCause() != null && !(getCause() instanceof SSLHandshakeException);
                default -> false;
            };
        }
    }

    private interface Fetch {
        List<Piece> fetch(int count);
    }

    /** Ids that were asked for together: a row of numbers, or texts. */
    private static final class Piece {
        /** How many were taken, or tried to be: no place is taken twice. */
        final AtomicLong taken = new AtomicLong();
        final long first;
        final long step;
        final List<String> texts;
        final long count;
        long asked;
        long validity;
        /** Whether more are to be fetched when it is begun. */
        boolean isSecondHalf;

        Piece(long first, long step, List<String> texts, long count) {
            this.first = first;
            this.step = step;
            this.texts = texts;
            this.count = count;
        }

        boolean isFresh() {
            return System.nanoTime() - asked < validity;
        }

        Piece part(long from, long to) {
            var part = texts == null ? null : texts.subList((int) from, (int) to);
            return new Piece(first + from * step, step, part, to - from);
        }
    }

    /** Texts of numbers, where they are decimal, hex or base 36 and nothing more; a radix of 0 where only the service makes them. */
    private record NumberText(int radix, boolean isUpper, int length) {
        static final NumberText OF_SERVICE = new NumberText(0, false, 0);

        String textOf(long id) {
            var text = Long.toString(id, radix);
            return "0".repeat(Math.max(0, length - text.length())) + (isUpper ? text.toUpperCase(Locale.ROOT) : text);
        }

        /** What GET /formats/{format} says. */
        static NumberText of(Map<String, Object> format, Map<String, String> query) {
            boolean hasNumbers = "sequenced".equals(format.get("rule")) && Boolean.TRUE.equals(format.get("minted"));
            if (!hasNumbers || !(format.get("bits") instanceof Double bits && bits <= 64) || query.containsKey("prefix")) {
                return OF_SERVICE;
            }
            for (var item : (List<?>) format.get("encodings")) {
                var encoding = (Map<?, ?>) item;
                var name = (String) encoding.get("name");
                if (!query.getOrDefault("encoding", name).equals(name)) {
                    continue;
                }
                var example = (Map<?, ?>) format.get("example");
                var text = ((Map<?, ?>) example.get("encodings")).get(name);
                var pattern = (String) encoding.get("pattern");
                int length = encoding.get("length") instanceof Double fixed ? fixed.intValue() : 0;
                for (var span : List.of("", "a-f", "A-F", "a-z", "A-Z")) {
                    var free = "\\^\\(\\?:0\\|\\[1-9" + span + "]\\[0-9" + span + "]\\{0,\\d+}\\)\\$";
                    if (pattern.equals("^[0-9" + span + "]{" + length + "}$") || pattern.matches(free)) {
                        int radix = span.isEmpty() ? 10 : span.toLowerCase(Locale.ROOT).endsWith("f") ? 16 : 36;
                        var numberText = new NumberText(radix, span.startsWith("A"), length);
                        // An alphabet in another order has the same pattern.
                        boolean isSame = numberText.textOf(Long.parseLong((String) example.get("value"))).equals(text);
                        return isSame ? numberText : OF_SERVICE;
                    }
                }
                break;
            }
            return OF_SERVICE;
        }
    }

    private final Requests requests;
    private final String format;
    private final Map<String, String> query;
    /** What makes a text of a number; null until that is known. */
    private volatile NumberText numberText;
    private final Stock numbers;
    private final Stock texts;

    /** Nothing is sent yet. */
    public Idmint(List<String> urls, String format, Options options) {
        if (options.prefetchCount < 1 || options.prefetchCount > options.prefetchCountMax) {
            throw new IllegalArgumentException("prefetchCount is " + options.prefetchCount
                    + ", it must be from 1 to prefetchCountMax (" + options.prefetchCountMax + ")");
        }
        if (options.prefetchValidity.toNanos() <= 0 || options.timeout.toNanos() <= 0) {
            throw new IllegalArgumentException("prefetchValidity and timeout are above 0");
        }
        requests = new Requests(urls, options);
        this.format = encoded(format);
        query = new LinkedHashMap<>(options.query);
        numbers = new Stock(this::fetchRows, options);
        texts = new Stock(this::fetchTexts, options);
    }

    /** The next id, of a format of up to 63 bits. Waits only when there is none here. */
    public long next() {
        while (true) {
            var piece = numbers.current;
            long place = piece.taken.getAndIncrement();
            if (place < piece.count && piece.isFresh()) {
                return piece.first + place * piece.step;
            }
            numbers.advance(piece);
        }
    }

    /** How the texts of this format are made. */
    private synchronized NumberText learn() {
        if (numberText == null) {
            try {
                numberText = NumberText.of(requests.json("GET", "/formats/" + format, Map.of(), null), query);
            } catch (Failure refused) {
                if (refused.isTransient() || refused.status == 0) {
                    throw refused;
                }
                // Who may mint need not be allowed to read formats; what else is wrong the request for texts says.
                numberText = NumberText.OF_SERVICE;
            }
        }
        return numberText;
    }

    /** The next id as a text. */
    public String nextText() {
        var numberText = this.numberText == null ? learn() : this.numberText;
        if (numberText.radix > 0) {
            try {
                return numberText.textOf(next());
            } catch (Failure wide) {
                if (wide.status != 200) {
                    throw wide;
                }
                this.numberText = NumberText.OF_SERVICE;
            }
        }
        while (true) {
            var piece = texts.current;
            long place = piece.taken.getAndIncrement();
            if (place < piece.count && piece.isFresh()) {
                return piece.texts.get((int) place);
            }
            texts.advance(piece);
        }
    }

    /** So many ids as texts, minted now: all of them or none. A retry mints others, so no id comes twice. */
    public List<String> mint(int count) {
        return textsOf(requests.json("POST", target(count), Map.of(), null).get("ids"));
    }

    /** What the text can be: the answer of GET /decode/{id}. A Failure with status 404 if it is no id. */
    public Map<String, Object> decode(String text) {
        return requests.json("GET", "/decode/" + encoded(text), Map.of(), null);
    }

    /** Appends events, each in JSON, to a ledger and gives their ids. Done once, however often it must be sent. */
    public List<String> append(String ledger, List<String> events) {
        var headers = Map.of("Idempotency-Key", UUID.randomUUID().toString(), "Content-Type", "application/json");
        var body = "{\"events\":[" + String.join(",", events) + "]}";
        return textsOf(requests.json("POST", "/ledgers/" + encoded(ledger) + "/events", headers, body).get("ids"));
    }

    /** A number of a series, and its text. */
    public record SeriesNumber(long number, String text) {}

    /** The next number of a series without gaps. The same key is given the same for ever. */
    public SeriesNumber number(String series, String key) {
        var answer = requests.json("POST", "/numbers/" + encoded(series), Map.of("Idempotency-Key", key), null);
        return new SeriesNumber(Long.parseLong((String) answer.get("number")), (String) answer.get("text"));
    }

    /** Gives back what is open. Ids that were not handed out stay gaps. */
    @Override
    public void close() {
        requests.close();
        numbers.close();
        texts.close();
    }

    private String target(int count) {
        var target = new StringBuilder("/ids/").append(format).append("?count=").append(count);
        query.forEach((name, value) -> target.append('&').append(encoded(name)).append('=').append(encoded(value)));
        return target.toString();
    }

    private List<Piece> fetchRows(int count) {
        var answer = requests.json("POST", target(count), Map.of("Accept", "application/vnd.idmint.rows+json"), null);
        var pieces = new ArrayList<Piece>();
        for (var row : (List<?>) answer.get("rows")) {
            var members = (Map<?, ?>) row;
            try {
                long first = Long.parseLong((String) members.get("first"));
                long step = Long.parseLong((String) members.get("step"));
                pieces.add(new Piece(first, step, null, ((Double) members.get("count")).longValue()));
            } catch (NumberFormatException wide) {
                throw new Failure("ids of this format have more than 63 bits: take nextText", 200, Map.of(), 0, wide);
            }
        }
        return pieces;
    }

    private List<Piece> fetchTexts(int count) {
        var minted = mint(count);
        return List.of(new Piece(0, 0, minted, minted.size()));
    }

    private static List<String> textsOf(Object ids) {
        return ((List<?>) ids).stream().map(String.class::cast).toList();
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    /** Ids that are here already: when the second half is begun, more are fetched, by one request at a time. */
    private static final class Stock {
        volatile Piece current = new Piece(0, 0, null, 0);
        private final Fetch fetch;
        private final long validity;
        private final ArrayDeque<Piece> pieces = new ArrayDeque<>();
        private int count;
        private int countMin;
        private int countMax;
        private long filledAt;
        private Thread filler;
        private RuntimeException failure;
        private boolean isClosed;

        Stock(Fetch fetch, Options options) {
            this.fetch = fetch;
            validity = options.prefetchValidity.toNanos();
            count = countMin = options.prefetchCount;
            countMax = options.prefetchCountMax;
        }

        /** Puts another piece in the place of one that has no more ids, or too old ones. Waits only when there is none here. */
        synchronized void advance(Piece used) {
            boolean wasUsedUp = used.isFresh();
            while (current == used) {
                if (isClosed) {
                    throw closed();
                }
                while (!pieces.isEmpty() && !pieces.peek().isFresh()) {
                    if (pieces.remove().isSecondHalf) {
                        // Fewer are used than are fetched.
                        count = Math.max(countMin, count / 2);
                    }
                }
                if (filler == null && (pieces.isEmpty() || pieces.peek().isSecondHalf)) {
                    if (wasUsedUp && System.nanoTime() - filledAt < 1_000_000_000L) {
                        count = Math.min(countMax, count * 2);
                    }
                    filler = new Thread(this::fill, "idmint");
                    filler.setDaemon(true);
                    filler.start();
                }
                if (!pieces.isEmpty()) {
                    current = pieces.remove();
                    return;
                }
                var waitedFor = filler;
                while (filler == waitedFor) {
                    try {
                        wait();
                    } catch (InterruptedException interrupted) {
                        Thread.currentThread().interrupt();
                        throw new Failure("interrupted while waiting for ids", 0, Map.of(), 0, null);
                    }
                }
                if (failure != null && filler == null && pieces.isEmpty() && current == used && !isClosed) {
                    throw failure;
                }
            }
        }

        private void fill() {
            List<Piece> filled = List.of();
            RuntimeException failed = null;
            try {
                filled = fetchAsManyAsThereAre();
            } catch (RuntimeException any) {
                failed = any;
            }
            synchronized (this) {
                if (!isClosed) {
                    pieces.addAll(filled);
                }
                filledAt = System.nanoTime();
                failure = failed;
                filler = null;
                notifyAll();
            }
        }

        private List<Piece> fetchAsManyAsThereAre() {
            int wanted;
            synchronized (this) {
                wanted = count;
            }
            long asked = System.nanoTime();
            List<Piece> fetched;
            try {
                fetched = fetch.fetch(wanted);
            } catch (Failure refused) {
                int most = refused.problem.get("limit") instanceof String limit && limit.matches("[0-9]{1,8}") ? Integer.parseInt(limit) : 0;
                if (refused.status != 422 || !"count".equals(refused.reason) || most < 1 || most >= wanted) {
                    throw refused;
                }
                synchronized (this) {
                    // So many are never had at once: from now on as many as are.
                    count = countMax = most;
                    countMin = Math.min(countMin, most);
                }
                fetched = fetch.fetch(most);
            }
            var cut = halved(fetched);
            for (var piece : cut) {
                piece.asked = asked;
                piece.validity = validity;
            }
            return cut;
        }

        /** Cuts pieces so that one begins in the middle of all ids. */
        private static List<Piece> halved(List<Piece> whole) {
            long half = whole.stream().mapToLong(piece -> piece.count).sum() / 2;
            long before = 0;
            boolean isCut = false;
            var cut = new ArrayList<Piece>();
            for (var piece : whole) {
                if (isCut || before + piece.count <= half) {
                    cut.add(piece);
                } else {
                    long kept = half - before;
                    if (kept > 0) {
                        cut.add(piece.part(0, kept));
                    }
                    var second = piece.part(kept, piece.count);
                    second.isSecondHalf = true;
                    cut.add(second);
                    isCut = true;
                }
                before += piece.count;
            }
            return cut;
        }

        void close() {
            Thread last;
            synchronized (this) {
                isClosed = true;
                pieces.clear();
                current = new Piece(0, 0, null, 0);
                last = filler;
            }
            if (last != null) {
                try {
                    last.join();
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                }
            }
        }
    }

    private static Failure closed() {
        return new Failure("this Idmint is closed", 0, Map.of(), 0, null);
    }

    /** Requests to whichever address answers. */
    private static final class Requests {
        private final HttpClient http;
        private final List<String> urls = new ArrayList<>();
        private final String token;
        private final long timeoutNanos;
        private final long[] notBefore;
        private final Failure[] refusals;
        /** The address that answered last. */
        private volatile int first;
        private volatile boolean isClosed;

        Requests(List<String> given, Options options) {
            if (given.isEmpty()) {
                throw new IllegalArgumentException("urls names no address");
            }
            for (var url : given) {
                var whole = url.contains("://") ? url : "http://" + url;
                var parsed = URI.create(whole);
                if (!List.of("http", "https").contains(parsed.getScheme()) || parsed.getHost() == null) {
                    throw new IllegalArgumentException(url + " is no http or https address");
                }
                urls.add(whole.replaceAll("/+$", ""));
            }
            token = options.token;
            timeoutNanos = options.timeout.toNanos();
            notBefore = new long[urls.size()];
            java.util.Arrays.fill(notBefore, System.nanoTime());
            refusals = new Failure[urls.size()];
            var builder = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1);
            http = (options.caFile == null ? builder : builder.sslContext(trusting(options.caFile))).build();
        }

        private static SSLContext trusting(Path caFile) {
            try (InputStream pem = Files.newInputStream(caFile)) {
                var store = KeyStore.getInstance(KeyStore.getDefaultType());
                store.load(null, null);
                for (var authority : CertificateFactory.getInstance("X.509").generateCertificates(pem)) {
                    store.setCertificateEntry("ca-" + store.size(), authority);
                }
                var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
                trust.init(store);
                var context = SSLContext.getInstance("TLS");
                context.init(null, trust.getTrustManagers(), null);
                return context;
            } catch (IOException | GeneralSecurityException unreadable) {
                throw new IllegalArgumentException(caFile + " has no certificate in PEM", unreadable);
            }
        }

        synchronized void close() {
            isClosed = true;
            notifyAll();
        }

        /** The answer to a request that may be sent more than once. */
        Map<String, Object> json(String method, String target, Map<String, String> headers, String body) {
            long deadline = System.nanoTime() + timeoutNanos;
            for (long pause = PAUSE_MIN_MS; ; pause = Math.min(pause * 2, PAUSE_MAX_MS)) {
                Failure failure = null;
                long untilEarliest = Long.MAX_VALUE;
                int begin = first;
                for (int place = 0; place < urls.size(); place++) {
                    int at = (begin + place) % urls.size();
                    long until = putOffFor(at);
                    if (until > 0) {
                        failure = failure == null ? refusalOf(at) : failure;
                    } else {
                        if (isClosed) {
                            throw closed();
                        }
                        try {
                            var answer = ask(urls.get(at), method, target, headers, body, deadline);
                            first = at;
                            return answer;
                        } catch (Failure refused) {
                            if (!refused.isTransient()) {
                                throw refused;
                            }
                            failure = refused;
                            until = refused.retryAfterMs * 1_000_000L;
                            putOff(at, until, refused);
                        }
                    }
                    untilEarliest = Math.min(untilEarliest, until);
                }
                long wait = Math.max(untilEarliest, (long) (pause * 1_000_000L * ThreadLocalRandom.current().nextDouble(0.5, 1.0)));
                if (System.nanoTime() + wait - deadline > 0) {
                    throw failure;
                }
                sleep(wait);
            }
        }

        private synchronized long putOffFor(int at) {
            return notBefore[at] - System.nanoTime();
        }

        private synchronized Failure refusalOf(int at) {
            return refusals[at];
        }

        private synchronized void putOff(int at, long nanos, Failure refused) {
            notBefore[at] = System.nanoTime() + nanos;
            refusals[at] = refused;
        }

        private synchronized void sleep(long nanos) {
            long end = System.nanoTime() + nanos;
            try {
                for (long left = nanos; left > 0 && !isClosed; left = end - System.nanoTime()) {
                    wait(left / 1_000_000 + 1);
                }
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                throw new Failure("interrupted while waiting for a service", 0, Map.of(), 0, null);
            }
            if (isClosed) {
                throw closed();
            }
        }

        private Map<String, Object> ask(String url, String method, String target, Map<String, String> headers, String body, long deadline) {
            // Each address gets its share of the time.
            long share = Math.max(50_000_000L, Math.min(timeoutNanos / (urls.size() + 1), deadline - System.nanoTime()));
            var request = HttpRequest.newBuilder(URI.create(url + target)).timeout(Duration.ofNanos(share));
            request.method(method, body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body));
            if (token != null) {
                request.header("Authorization", "Bearer " + token);
            }
            headers.forEach(request::header);
            HttpResponse<String> response;
            try {
                response = http.send(request.build(), HttpResponse.BodyHandlers.ofString());
            } catch (SSLHandshakeException untrusted) {
                throw new Failure(url + " is not trusted; set Options.caFile to the certificate of its authority", 0, Map.of(), 0, untrusted);
            } catch (IOException unreachable) {
                throw new Failure(url + " does not answer: " + unreachable, 0, Map.of(), 0, unreachable);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                throw new Failure("interrupted while waiting for a service", 0, Map.of(), 0, null);
            }
            Map<String, Object> members;
            try {
                members = new Json(response.body()).object();
            } catch (IllegalArgumentException | IndexOutOfBoundsException other) {
                members = null;
            }
            if (response.statusCode() >= 300) {
                throw refusal(url, response, members == null ? Map.of() : members);
            }
            if (members == null) {
                throw new Failure("what answers at " + url + " is no idmint service", response.statusCode(), Map.of(), 0, null);
            }
            return members;
        }

        private static Failure refusal(String url, HttpResponse<String> response, Map<String, Object> problem) {
            int status = response.statusCode();
            var remedy = REMEDIES.getOrDefault(status, problem.containsKey("example") ? "this works: " + problem.get("example") : null);
            var message = url + " answers " + status + ": " + problem.getOrDefault("detail", "no reason is given");
            var header = response.headers().firstValue("Retry-After").filter(text -> text.matches("[0-9]{1,9}"));
            long retryAfterMs = problem.get("retry_after_ms") instanceof Double millis
                    ? millis.longValue()
                    : header.map(seconds -> Long.parseLong(seconds) * 1000).orElse(0L);
            return new Failure(remedy == null ? message : message + "; " + remedy, status, problem, retryAfterMs, null);
        }
    }

    /** Reads JSON: objects are maps, numbers doubles. */
    private static final class Json {
        private final String text;
        private int at;

        Json(String text) {
            this.text = text;
        }

        Map<String, Object> object() {
            if (!(value() instanceof Map<?, ?> members)) {
                throw new IllegalArgumentException("no object");
            }
            var object = new HashMap<String, Object>();
            members.forEach((name, value) -> object.put((String) name, value));
            return object;
        }

        private char next() {
            while (Character.isWhitespace(text.charAt(at))) {
                at++;
            }
            return text.charAt(at);
        }

        private boolean takes(char wanted) {
            boolean is = next() == wanted;
            at += is ? 1 : 0;
            return is;
        }

        private void expect(char wanted) {
            if (!takes(wanted)) {
                throw new IllegalArgumentException("no " + wanted + " at " + at);
            }
        }

        private Object value() {
            switch (next()) {
                case '{' -> {
                    var members = new LinkedHashMap<String, Object>();
                    expect('{');
                    while (!takes('}')) {
                        var name = string();
                        expect(':');
                        members.put(name, value());
                        if (!takes(',') && next() != '}') {
                            throw new IllegalArgumentException("no comma at " + at);
                        }
                    }
                    return members;
                }
                case '[' -> {
                    var items = new ArrayList<Object>();
                    expect('[');
                    while (!takes(']')) {
                        items.add(value());
                        if (!takes(',') && next() != ']') {
                            throw new IllegalArgumentException("no comma at " + at);
                        }
                    }
                    return items;
                }
                case '"' -> {
                    return string();
                }
                default -> {
                    int begin = at;
                    while (at < text.length() && "{}[],: \n".indexOf(text.charAt(at)) < 0) {
                        at++;
                    }
                    var word = text.substring(begin, at);
                    return switch (word) {
                        case "null" -> null;
                        case "true", "false" -> Boolean.valueOf(word);
                        default -> Double.valueOf(word);
                    };
                }
            }
        }

        private String string() {
            expect('"');
            var out = new StringBuilder();
            for (char c = text.charAt(at++); c != '"'; c = text.charAt(at++)) {
                if (c != '\\') {
                    out.append(c);
                    continue;
                }
                char escaped = text.charAt(at++);
                int place = "bfnrt".indexOf(escaped);
                if (escaped == 'u') {
                    out.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                    at += 4;
                } else {
                    out.append(place < 0 ? escaped : "\b\f\n\r\t".charAt(place));
                }
            }
            return out.toString();
        }
    }
}
