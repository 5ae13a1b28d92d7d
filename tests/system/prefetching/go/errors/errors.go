// Checks that errors name the remedy, that no id is older than its validity, and that a repeated append is applied only once.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"ids/idmint"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func claim(holds bool, otherwise ...any) {
	if !holds {
		check(errors.New(fmt.Sprint(otherwise...)))
	}
}

func open(url, format string, options idmint.Options) *idmint.Ids {
	if options.Timeout == 0 {
		options.Timeout = time.Minute
	}
	ids, err := idmint.New([]string{url}, format, options)
	check(err)
	return ids
}

// refuse asserts that Next and NextText fail with this status, and that both errors contain these words.
func refuse(status int, url, format string, options idmint.Options, words ...string) {
	ids := open(url, format, options)
	defer ids.Close()
	_, ofNumber := ids.Next(context.Background())
	_, ofText := ids.NextText(context.Background())
	for _, err := range []error{ofNumber, ofText} {
		var refused *idmint.Error
		claim(errors.As(err, &refused) && refused.Status == status, status, ": ", err)
		for _, word := range words {
			claim(strings.Contains(err.Error(), word), word, " is not in ", err)
		}
	}
}

// lastPath is the path of the last request, as it was sent.
var lastPath atomic.Value

// losing starts a proxy that forwards requests to a service, but drops the first two responses.
func losing(to string) (string, *atomic.Int32) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	lost := new(atomic.Int32)
	pass := func(answer http.ResponseWriter, request *http.Request) {
		lastPath.Store(request.RequestURI)
		body, err := io.ReadAll(request.Body)
		check(err)
		passed, err := http.NewRequest(request.Method, to+request.URL.String(), bytes.NewReader(body))
		check(err)
		passed.Header = request.Header
		answered, err := http.DefaultClient.Do(passed)
		check(err)
		defer answered.Body.Close()
		if lost.Add(1) <= 2 {
			panic(http.ErrAbortHandler)
		}
		answer.WriteHeader(answered.StatusCode)
		_, err = io.Copy(answer, answered.Body)
		check(err)
	}
	go http.Serve(listener, http.HandlerFunc(pass))
	return "http://" + listener.Addr().String(), lost
}

// stub starts a server that responds to each request with a status and a body.
func stub(answer func(*http.Request) (int, string)) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go http.Serve(listener, http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
		status, body := answer(request)
		out.WriteHeader(status)
		_, _ = io.WriteString(out, body)
	}))
	return "http://" + listener.Addr().String()
}

func main() {
	plain, token, reader, secured, caFile := "http://127.0.0.1:"+os.Args[1], os.Args[2], os.Args[3], "https://127.0.0.1:"+os.Args[4], os.Args[5]
	genesis, err := os.ReadFile(os.Args[6])
	check(err)
	may := idmint.Options{Token: token}

	refuse(401, plain, "snowflake", idmint.Options{}, "Options.Token", "http.tokens")
	refuse(403, plain, "snowflake", idmint.Options{Token: reader}, "scopes", "http.tokens")
	refuse(404, plain, "invoice", may, "invoice")
	refuse(422, plain, "siq", may, "this works: POST /ids/siq?type=")
	refuse(0, "http://127.0.0.1:1", "snowflake", idmint.Options{Timeout: 5 * time.Second}, "http://127.0.0.1:1")
	refuse(0, secured, "snowflake", idmint.Options{}, "Options.CAFile")
	// If the certificate of an address is not trusted, the client uses another address. Without another one, the call ends at once.
	for _, urls := range [][]string{{secured, plain}, {secured}} {
		some, err := idmint.New(urls, "snowflake", idmint.Options{Token: token, Timeout: 24 * time.Hour})
		check(err)
		for i := 0; i < 3; i++ {
			_, err = some.Mint(context.Background(), 1)
			claim(len(urls) == 2 && err == nil || len(urls) == 1 && errors.Is(err, idmint.ErrRefused), err)
		}
		some.Close()
	}
	uuids := open(plain, "uuid7", may)
	_, err = uuids.Next(context.Background())
	var refused *idmint.Error
	claim(errors.As(err, &refused) && refused.Status == 406 && refused.Reason == "rows" && errors.Is(err, idmint.ErrRefused), err)
	uuid, err := uuids.NextText(context.Background())
	claim(err == nil && len(uuid) == 36, uuid, err)
	uuids.Close()

	trusting := open(secured, "snowflake", idmint.Options{CAFile: caFile})
	seen := map[uint64]bool{}
	for i := 0; i < 1000; i++ {
		id, err := trusting.Next(context.Background())
		check(err)
		seen[id] = true
	}
	claim(len(seen) == 1000, "ids came twice")
	trusting.Close()

	old := open(plain, "snowflake", idmint.Options{Token: token, PrefetchValidity: 300 * time.Millisecond})
	first, err := old.Next(context.Background())
	check(err)
	time.Sleep(400 * time.Millisecond)
	asked := time.Now().UnixMilli()
	second, err := old.Next(context.Background())
	check(err)
	unixMs := func(id uint64) int64 { return int64(id>>22) + 1_420_070_400_000 }
	claim(unixMs(first) < asked-300 && unixMs(second) > asked-300, first, " ", second, " at ", asked)
	old.Close()

	most := open(plain, "payment", idmint.Options{Token: token, PrefetchCount: 90_000, PrefetchCountMax: 90_000})
	_, err = most.Next(context.Background())
	check(err)
	most.Close()

	// Texts that the client makes from numbers, and texts of the service, must have the same form.
	for _, try := range []struct{ format, name, value, form string }{
		{"snowflake", "", "", "^[1-9][0-9]{17,18}$"},
		{"snowflake", "encoding", "hex", "^[1-9a-f][0-9a-f]{15}$"},
		{"snowflake", "encoding", "hex_padded", "^[0-9a-f]{16}$"},
		{"snowflake", "encoding", "base64", "^.{12}$"},
		{"payment", "", "", "^[0-9A-Z]{9}$"},
		{"siq", "type", "message", "^00[0-9a-f]{26}$"},
		{"uuid7", "encoding", "hex_padded", "^[0-9a-f]{32}$"},
	} {
		for _, allowed := range []string{token, os.Args[7]} {
			query := url.Values{}
			if try.name != "" {
				query.Set(try.name, try.value)
			}
			ids := open(plain, try.format, idmint.Options{Token: allowed, Query: query})
			first, err := ids.NextText(context.Background())
			check(err)
			second, err := ids.NextText(context.Background())
			check(err)
			form := regexp.MustCompile(try.form)
			claim(first != second && form.MatchString(first) && form.MatchString(second), first, " ", second)
			if allowed == token {
				read, err := ids.Decode(context.Background(), first)
				check(err)
				claim(strings.Contains(fmt.Sprint(read["matches"]), "format:"+try.format), first, " is no ", try.format)
			}
			ids.Close()
		}
	}

	request, err := http.NewRequest("POST", plain+"/ledgers", bytes.NewReader(genesis))
	check(err)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	created, err := http.DefaultClient.Do(request)
	check(err)
	var ledger struct{ Ledger string }
	check(json.NewDecoder(created.Body).Decode(&ledger))
	proxy, lost := losing(plain)
	ids := open(proxy, "snowflake", idmint.Options{Token: token, Timeout: time.Minute})
	appended, err := ids.Append(context.Background(), ledger.Ledger, []any{map[string]any{"event": "Paid", "entities": map[string]any{}}})
	check(err)
	claim(len(appended) == 1 && lost.Load() == 3, appended, lost.Load())
	again, err := ids.Append(context.Background(), ledger.Ledger, []any{map[string]any{"event": "Paid", "entities": map[string]any{}}})
	check(err)
	claim(again[0] != appended[0], again)
	for i := 0; i < 2; i++ {
		keyed, err := ids.AppendWithKey(context.Background(), ledger.Ledger, []any{map[string]any{"event": "Paid", "entities": map[string]any{}}}, "order-1")
		check(err)
		claim(i == 0 || keyed[0] == again[0], keyed)
		again = keyed
	}
	_, err = ids.AppendWithKey(context.Background(), ledger.Ledger, nil, "two words")
	claim(err != nil && strings.Contains(err.Error(), "visible ASCII"), err)
	// The client does not send invalid UTF-8. The character U+FFFD and its escape sequence are ordinary text.
	invalid := []any{map[string]any{"event": "Paid", "entities": map[string]any{}, "data": map[string]any{"note": "a\xff"}}}
	_, err = ids.Append(context.Background(), ledger.Ledger, invalid)
	claim(errors.Is(err, idmint.ErrRefused) && strings.Contains(err.Error(), "UTF-8"), err)
	valid := []any{map[string]any{"event": "Paid", "entities": map[string]any{}, "data": map[string]any{"note": "\ufffd \\ufffd"}}}
	_, err = ids.Append(context.Background(), ledger.Ledger, valid)
	check(err)
	for _, try := range []struct {
		key    string
		number uint64
	}{{"order-1", 1}, {"order-1", 1}, {"order-2", 2}} {
		number, text, err := ids.Number(context.Background(), "go", try.key)
		check(err)
		claim(number == try.number && text == fmt.Sprint(number), number, text)
	}
	// The ledger has the first event and the appended ones. The append that was sent three times was applied once.
	request, err = http.NewRequest("GET", plain+"/ledgers/"+ledger.Ledger+"/ids", nil)
	check(err)
	request.Header.Set("Authorization", "Bearer "+token)
	listed, err := http.DefaultClient.Do(request)
	check(err)
	chain, err := io.ReadAll(listed.Body)
	check(err)
	claim(strings.Count(string(chain), ledger.Ledger) >= 3 && strings.Contains(string(chain), again[0]), string(chain))
	texts, err := ids.Mint(context.Background(), 1000)
	check(err)
	claim(len(texts) == 1000, len(texts))
	read, err := ids.Decode(context.Background(), texts[0])
	check(err)
	claim(read["id"] == texts[0], read)
	// The client escapes dots, so that they stay a segment of the path.
	for _, dots := range []string{".", ".."} {
		_, err = ids.Decode(context.Background(), dots)
		claim(errors.As(err, &refused) && refused.Status == 404, err)
		_, _, err = ids.Number(context.Background(), dots, "order-1")
		claim(errors.As(err, &refused) && refused.Status == 422, err)
	}
	claim(lastPath.Load() == "/numbers/%252E%252E", lastPath.Load())
	_, err = ids.Decode(context.Background(), "no id at all")
	claim(errors.As(err, &refused) && refused.Slug == "no-format-matches", err)
	ids.Close()

	// If the context of a caller ends, its call ends, too.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	waiting := open("http://"+silent.Addr().String(), "snowflake", idmint.Options{Timeout: 10 * time.Minute})
	ended, end := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer end()
	_, ofNext := waiting.Next(ended)
	_, ofMint := waiting.Mint(ended, 1)
	_, ofText := waiting.NextText(ended)
	for _, err := range []error{ofNext, ofMint, ofText} {
		claim(errors.Is(err, context.DeadlineExceeded) && errors.Is(err, idmint.ErrUnavailable), err)
	}
	waiting.Close()

	// After a 503 for one kind of request, the client still sends other requests to the same address.
	var asked503 atomic.Int32
	partlyURL := stub(func(request *http.Request) (int, string) {
		asked := asked503.Add(1)
		switch {
		case strings.HasPrefix(request.URL.Path, "/ledgers/slow/") && asked == 1:
			return 408, "{}"
		case strings.HasPrefix(request.URL.Path, "/ledgers/importing/"):
			return 409, `{"type":"/problems/ledger-importing"}`
		case strings.HasPrefix(request.URL.Path, "/numbers/"):
			return 503, `{"type":"/problems/numbers-held"}`
		case strings.HasPrefix(request.URL.Path, "/ledgers/aa77f99c/"):
			return 503, `{"type":"/problems/clock-behind","retry_after_ms":20000}`
		}
		return 200, `{"ids":["1"]}`
	})
	partly := open(partlyURL, "snowflake", idmint.Options{Timeout: 10 * time.Second})
	_, err = partly.Append(context.Background(), "slow", []any{1})
	claim(err == nil && asked503.Load() == 2, err)
	for slug, ledger := range map[string]string{"numbers-held": "", "clock-behind": "aa77f99c", "ledger-importing": "importing"} {
		if ledger == "" {
			_, _, err = partly.Number(context.Background(), "acme-2026", "order-1")
		} else {
			_, err = partly.Append(context.Background(), ledger, []any{1})
		}
		claim(errors.As(err, &refused) && refused.Slug == slug && errors.Is(err, idmint.ErrUnavailable), err)
		minted, err := partly.Mint(context.Background(), 1)
		claim(err == nil && minted[0] == "1", err)
	}
	// The client retries none of the three requests. A held series and an import wait for an operator,
	// and the other response asks for a wait that is longer than the timeout.
	claim(asked503.Load() == 8, asked503.Load())
	partly.Close()
	// One address is down, and the other one refuses this request with a 503. The client must report
	// the 503, and must use that address for the next call.
	partly, err = idmint.New([]string{"http://127.0.0.1:1", partlyURL}, "snowflake", idmint.Options{Timeout: time.Minute})
	check(err)
	_, _, err = partly.Number(context.Background(), "acme-2026", "order-1")
	claim(errors.As(err, &refused) && refused.Slug == "numbers-held" && asked503.Load() == 9, err, asked503.Load())
	_, err = partly.Mint(context.Background(), 1)
	check(err)
	partly.Close()

	// The timeout of 1 s covers a whole call. The service takes 0.45 s to describe the format and 0.45
	// s for each id. The slower of two concurrent calls needs 1.35 s, so it must fail.
	slow := stub(func(request *http.Request) (int, string) {
		<-time.After(450 * time.Millisecond)
		if request.Method == "POST" {
			return 200, `{"ids":["1"]}`
		}
		return 404, "{}"
	})
	hurried := open(slow, "snowflake", idmint.Options{Timeout: time.Second, PrefetchCount: 1, PrefetchCountMax: 1})
	both := make(chan error)
	for i := 0; i < 2; i++ {
		go func() {
			_, err := hurried.NextText(context.Background())
			both <- err
		}()
	}
	one, other := <-both, <-both
	claim(errors.Is(one, idmint.ErrUnavailable) || errors.Is(other, idmint.ErrUnavailable), one, other)
	hurried.Close()

	for _, wrong := range []idmint.Options{{Token: " \n"}, {Token: "hunter2\r\nx: y"}, {Token: "hunter2\u00e9"}} {
		_, err = idmint.New([]string{plain}, "snowflake", wrong)
		claim(err != nil && !strings.Contains(err.Error(), "hunter2"), err)
	}
	for _, wrong := range []string{"http://user:hunter2@x", "ftp://user:hunter2@x:port", "ftp://x"} {
		_, err = idmint.New([]string{wrong}, "snowflake", idmint.Options{})
		claim(err != nil && !strings.Contains(err.Error(), "hunter2"), err)
	}
	trimmed := open(plain, "snowflake", idmint.Options{Token: " " + token + "\n"})
	_, err = trimmed.Next(context.Background())
	check(err)
	trimmed.Close()
	fmt.Println("done")
}
