// Package idmint takes ids from an idmint service: https, failover, and a stock of ids, so that most cost no round trip.
//
// Copy this file. It needs Go 1.19 and nothing else:
//
//	ids, err := idmint.New([]string{"http://10.0.0.1:8080", "http://10.0.0.2:8080"}, "snowflake", idmint.Options{Token: "…"})
//	id, err := ids.Next()           // a uint64; by any number of goroutines
//	text, err := ids.NextText()     // a text, for formats of any kind
//	texts, err := ids.Mint(1000)    // and Decode("1573542478315782144"), Append("aa77f99c", events)
//	ids.Number("acme-2026", "order-4711") // the next of a series without gaps, always the same for an order
//	ids.Close()                     // an *Error with a Status says what to mend; one that IsTransient passes
//
// One object for a process: Go cannot fork without exec, so none is ever copied with it. Where a machine or container is copied
// while it runs (a snapshot that is restored twice), make the object after the copy: nothing in a process tells that it was
// copied. Time in which the machine sleeps does not count as age here.
package idmint

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	pauseMin = 100 * time.Millisecond
	pauseMax = 5 * time.Second
)

// What the service cannot know: where the mistake is mended.
var remedies = map[int]string{
	401: "set Options.Token to a token that http.tokens of the service has",
	403: "the token does not cover this: its scopes and formats are in http.tokens of the service",
	421: "ask by a name that the service answers for, or add this one to its http.hosts",
}

// ErrClosed is what a closed Ids says.
var ErrClosed = errors.New("this Ids is closed")

// Options are what New need not be told. The zero value of each stands for what is said beside it.
type Options struct {
	Token            string        // Shown with each request; none.
	PrefetchCount    int           // How many ids are asked for at once; 100. Grows with the rate of use.
	PrefetchCountMax int           // Up to so many; 10 000.
	PrefetchValidity time.Duration // How long an id may be handed out after it was asked for, so the longest outage that is bridged; a minute.
	Timeout          time.Duration // After which a call gives up; 10 seconds.
	CAFile           string        // Whom to trust with https, as PEM; whom the system trusts.
	Query            url.Values    // What else the format needs, as {"type": {"message"}}.
}

// Error is a request without an answer.
type Error struct {
	Status     int            // What the service answered; 0 if none did.
	Slug       string         // The kind, as in /problems/{slug}.
	Reason     string         // Why, as one word.
	Problem    map[string]any // All that the service said.
	RetryAfter time.Duration  // How long it asks to wait.
	message    string
	cause      error
}

func (e *Error) Error() string { return e.message }

// Unwrap is why no service answered.
func (e *Error) Unwrap() error { return e.cause }

// IsTransient says whether the same request may work later.
func (e *Error) IsTransient() bool {
	var unknown x509.UnknownAuthorityError
	switch e.Status {
	case 429, 502, 503, 504:
		return true
	case 0:
		return !errors.As(e.cause, &unknown)
	}
	return false
}

// Ids are ids of one format.
type Ids struct {
	asking     *asking
	format     string
	query      url.Values
	numbers    stock
	texts      stock
	learning   sync.Mutex
	numberText atomic.Pointer[numberText] // nil until it is known.
}

// New makes an Ids. Nothing is sent yet.
func New(urls []string, format string, options Options) (*Ids, error) {
	if options.PrefetchCountMax == 0 {
		options.PrefetchCountMax = 10_000
	}
	if options.PrefetchCount == 0 {
		options.PrefetchCount = 100
	}
	if options.PrefetchCount < 1 || options.PrefetchCount > options.PrefetchCountMax {
		return nil, fmt.Errorf("PrefetchCount is %d, it must be from 1 to PrefetchCountMax (%d)", options.PrefetchCount, options.PrefetchCountMax)
	}
	if options.PrefetchValidity == 0 {
		options.PrefetchValidity = time.Minute
	}
	if options.Timeout == 0 {
		options.Timeout = 10 * time.Second
	}
	if options.PrefetchValidity < 0 || options.Timeout < 0 {
		return nil, errors.New("PrefetchValidity and Timeout are above 0")
	}
	asking, err := newAsking(urls, options)
	if err != nil {
		return nil, err
	}
	ids := &Ids{asking: asking, format: url.PathEscape(format), query: options.Query}
	ids.numbers.begin(ids.fetchRows, options)
	ids.texts.begin(ids.fetchTexts, options)
	return ids, nil
}

// Next is the next id, of a format of up to 64 bits. It waits only when there is none here.
func (ids *Ids) Next() (uint64, error) {
	for {
		piece := ids.numbers.current.Load()
		if place := piece.taken.Add(1) - 1; place < piece.count && time.Since(piece.asked) < piece.validity {
			return piece.first + place*piece.step, nil
		}
		if err := ids.numbers.advance(piece); err != nil {
			return 0, err
		}
	}
}

// NextText is the next id as a text.
func (ids *Ids) NextText() (string, error) {
	numberText := ids.numberText.Load()
	if numberText == nil {
		var err error
		if numberText, err = ids.learn(); err != nil {
			return "", err
		}
	}
	if numberText.radix > 0 {
		id, err := ids.Next()
		if err != nil {
			return "", err
		}
		return numberText.textOf(id), nil
	}
	for {
		piece := ids.texts.current.Load()
		if place := piece.taken.Add(1) - 1; place < piece.count && time.Since(piece.asked) < piece.validity {
			return piece.texts[place], nil
		}
		if err := ids.texts.advance(piece); err != nil {
			return "", err
		}
	}
}

// Mint gives so many ids as texts, minted now: all of them or none. A retry mints others, so no id comes twice.
func (ids *Ids) Mint(count int) ([]string, error) {
	var answer struct{ Ids []string }
	err := ids.asking.json("POST", ids.target(count), nil, nil, &answer)
	return answer.Ids, err
}

// Decode says what the text can be: the answer of GET /decode/{id}. An *Error with status 404 if it is no id.
func (ids *Ids) Decode(text string) (map[string]any, error) {
	var answer map[string]any
	err := ids.asking.json("GET", "/decode/"+url.PathEscape(text), nil, nil, &answer)
	return answer, err
}

// Append appends events to a ledger and gives their ids. It is done once, however often it must be sent.
func (ids *Ids) Append(ledger string, events []any) ([]string, error) {
	body, err := json.Marshal(map[string]any{"events": events})
	if err != nil {
		return nil, err
	}
	var key [16]byte
	if _, err := rand.Read(key[:]); err != nil {
		return nil, err
	}
	headers := map[string]string{"Idempotency-Key": hex.EncodeToString(key[:]), "Content-Type": "application/json"}
	var answer struct{ Ids []string }
	err = ids.asking.json("POST", "/ledgers/"+url.PathEscape(ledger)+"/events", headers, body, &answer)
	return answer.Ids, err
}

// Number gives the next number of a series without gaps, and its text. The same key is given the same for ever.
func (ids *Ids) Number(series, key string) (uint64, string, error) {
	var answer struct{ Number, Text string }
	headers := map[string]string{"Idempotency-Key": key}
	if err := ids.asking.json("POST", "/numbers/"+url.PathEscape(series), headers, nil, &answer); err != nil {
		return 0, "", err
	}
	number, err := strconv.ParseUint(answer.Number, 10, 64)
	return number, answer.Text, err
}

// Close gives back what is open. Ids that were not handed out stay gaps.
func (ids *Ids) Close() {
	ids.asking.close()
	ids.numbers.close()
	ids.texts.close()
}

func (ids *Ids) target(count int) string {
	query := url.Values{"count": {strconv.Itoa(count)}}
	for name, values := range ids.query {
		query[name] = values
	}
	return "/ids/" + ids.format + "?" + query.Encode()
}

func (ids *Ids) fetchRows(count int) ([]*piece, error) {
	var answer struct {
		Rows []struct {
			First, Step string
			Count       uint64
		}
	}
	headers := map[string]string{"Accept": "application/vnd.idmint.rows+json"}
	if err := ids.asking.json("POST", ids.target(count), headers, nil, &answer); err != nil {
		return nil, err
	}
	pieces := make([]*piece, len(answer.Rows))
	for at, row := range answer.Rows {
		first, err := strconv.ParseUint(row.First, 10, 64)
		step, errOfStep := strconv.ParseUint(row.Step, 10, 64)
		if err != nil || errOfStep != nil {
			return nil, &Error{message: "ids of this format have more than 64 bits: take NextText", Status: 200}
		}
		pieces[at] = &piece{first: first, step: step, count: row.Count}
	}
	return pieces, nil
}

func (ids *Ids) fetchTexts(count int) ([]*piece, error) {
	texts, err := ids.Mint(count)
	if err != nil {
		return nil, err
	}
	return []*piece{{texts: texts, count: uint64(len(texts))}}, nil
}

// numberText makes texts of numbers, where they are decimal, hex or base 36 and nothing more.
type numberText struct {
	radix, length int // A radix of 0: only the service makes texts.
	isUpper       bool
}

func (s *numberText) textOf(id uint64) string {
	text := strconv.FormatUint(id, s.radix)
	if s.isUpper {
		text = strings.ToUpper(text)
	}
	if len(text) < s.length {
		text = strings.Repeat("0", s.length-len(text)) + text
	}
	return text
}

// learn asks how texts of the format are made.
func (ids *Ids) learn() (*numberText, error) {
	ids.learning.Lock()
	defer ids.learning.Unlock()
	if known := ids.numberText.Load(); known != nil {
		return known, nil
	}
	var format description
	learnt := &numberText{}
	err := ids.asking.json("GET", "/formats/"+ids.format, nil, nil, &format)
	var refused *Error
	if err == nil {
		learnt = format.numberText(ids.query)
	} else if !errors.As(err, &refused) || refused.IsTransient() {
		return nil, err
	}
	// Who may mint need not be allowed to read formats; what else is wrong the request for texts says.
	ids.numberText.Store(learnt)
	return learnt, nil
}

// description is what GET /formats/{format} says, as far as it matters here.
type description struct {
	Rule      string
	Minted    bool
	Bits      int
	Encodings []struct {
		Name, Pattern string
		Length        int
	}
	Example struct {
		Value     string
		Encodings map[string]string
	}
}

func (d *description) numberText(query url.Values) *numberText {
	// Only of sequenced formats numbers are to be had.
	if d.Rule != "sequenced" || !d.Minted || d.Bits > 64 || query.Has("prefix") {
		return &numberText{}
	}
	for _, encoding := range d.Encodings {
		if query.Has("encoding") && query.Get("encoding") != encoding.Name {
			continue
		}
		for _, try := range []struct {
			span string
			numberText
		}{
			{"", numberText{10, encoding.Length, false}},
			{"a-f", numberText{16, encoding.Length, false}},
			{"A-F", numberText{16, encoding.Length, true}},
			{"a-z", numberText{36, encoding.Length, false}},
			{"A-Z", numberText{36, encoding.Length, true}},
		} {
			fixed := fmt.Sprintf("^[0-9%s]{%d}$", try.span, encoding.Length)
			free := regexp.MustCompile(`^\^\(\?:0\|\[1-9` + try.span + `\]\[0-9` + try.span + `\]\{0,\d+\}\)\$$`)
			if encoding.Pattern != fixed && !free.MatchString(encoding.Pattern) {
				continue
			}
			// An alphabet in another order has the same pattern.
			value, err := strconv.ParseUint(d.Example.Value, 10, 64)
			if err == nil && try.textOf(value) == d.Example.Encodings[encoding.Name] {
				return &try.numberText
			}
		}
		break
	}
	return &numberText{}
}

// piece has ids that were asked for together: a row of numbers, or texts.
type piece struct {
	taken       atomic.Uint64 // How many were taken, or tried to be: no place is taken twice.
	first, step uint64
	texts       []string
	count       uint64
	asked       time.Time
	validity    time.Duration
	lowers      bool // Whether more are to be fetched when it is begun.
}

// stock has ids that are here already. More are fetched before it is empty, by one request at a time.
type stock struct {
	current atomic.Pointer[piece]

	lock                      sync.Mutex
	fetch                     func(count int) ([]*piece, error)
	pieces                    []*piece
	count, countMin, countMax int
	validity                  time.Duration
	filledAt                  time.Time
	filling                   chan struct{} // Closed when what is being fetched is here, or failed; nil if nothing is.
	err                       error
	isClosed                  bool
}

func (s *stock) begin(fetch func(int) ([]*piece, error), options Options) {
	s.fetch, s.validity = fetch, options.PrefetchValidity
	s.count, s.countMin, s.countMax = options.PrefetchCount, options.PrefetchCount, options.PrefetchCountMax
	s.current.Store(&piece{})
}

// advance puts another piece in the place of one that has no more ids, or too old ones. It waits only when there is none here.
func (s *stock) advance(used *piece) error {
	wasUsedUp := time.Since(used.asked) < s.validity
	s.lock.Lock()
	for s.current.Load() == used {
		if s.isClosed {
			s.lock.Unlock()
			return ErrClosed
		}
		for len(s.pieces) > 0 && time.Since(s.pieces[0].asked) >= s.validity {
			// Fewer are used than are fetched.
			if s.pieces[0].lowers {
				s.count = max(s.countMin, s.count/2)
			}
			s.pieces = s.pieces[1:]
		}
		if len(s.pieces) == 0 || s.pieces[0].lowers {
			s.startFilling(wasUsedUp)
		}
		if len(s.pieces) > 0 {
			s.current.Store(s.pieces[0])
			s.pieces = s.pieces[1:]
			break
		}
		filling := s.filling
		s.lock.Unlock()
		<-filling
		s.lock.Lock()
		if s.err != nil && len(s.pieces) == 0 && s.filling == nil && s.current.Load() == used && !s.isClosed {
			err := s.err
			s.lock.Unlock()
			return err
		}
	}
	s.lock.Unlock()
	return nil
}

func (s *stock) startFilling(wasUsedUp bool) {
	if s.filling != nil {
		return
	}
	if wasUsedUp && time.Since(s.filledAt) < time.Second {
		s.count = min(s.countMax, s.count*2)
	}
	s.filling = make(chan struct{})
	go s.fill(s.count)
}

func (s *stock) fill(count int) {
	asked := time.Now()
	pieces, err := s.fetch(count)
	var refused *Error
	if errors.As(err, &refused) && refused.Status == 422 && refused.Reason == "count" {
		limit, _ := refused.Problem["limit"].(string)
		if most, errOfLimit := strconv.Atoi(limit); errOfLimit == nil && most > 0 && most < count {
			// So many are never had at once: from now on as many as are.
			s.lock.Lock()
			s.count, s.countMax, s.countMin = most, most, min(most, s.countMin)
			s.lock.Unlock()
			s.fill(most)
			return
		}
	}
	pieces = halved(pieces)
	for _, piece := range pieces {
		piece.asked, piece.validity = asked, s.validity
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if !s.isClosed {
		s.pieces = append(s.pieces, pieces...)
	}
	s.err, s.filledAt = err, time.Now()
	close(s.filling)
	s.filling = nil
}

// halved cuts pieces so that one begins in the middle of all ids; when it is begun more are fetched.
func halved(pieces []*piece) []*piece {
	var all, before uint64
	for _, piece := range pieces {
		all += piece.count
	}
	for at, whole := range pieces {
		if before+whole.count <= all/2 {
			before += whole.count
			continue
		}
		kept := all/2 - before
		second := &piece{first: whole.first + kept*whole.step, step: whole.step, count: whole.count - kept, lowers: true}
		if whole.texts != nil {
			second.texts, whole.texts = whole.texts[kept:], whole.texts[:kept]
		}
		whole.count = kept
		cut := append([]*piece{}, pieces[:at]...)
		if kept > 0 {
			cut = append(cut, whole)
		}
		return append(append(cut, second), pieces[at+1:]...)
	}
	return pieces
}

func (s *stock) close() {
	s.lock.Lock()
	s.isClosed, s.pieces = true, nil
	s.current.Store(&piece{})
	filling := s.filling
	s.lock.Unlock()
	if filling != nil {
		<-filling
	}
}

// asking sends requests to whichever address answers.
type asking struct {
	client  http.Client
	urls    []string
	token   string
	timeout time.Duration
	ended   context.Context
	end     context.CancelFunc

	lock      sync.Mutex
	first     int // The address that answered last.
	notBefore []time.Time
	refusals  []*Error
}

func newAsking(urls []string, options Options) (*asking, error) {
	if len(urls) == 0 {
		return nil, errors.New("urls names no address")
	}
	a := &asking{token: options.Token, timeout: options.Timeout}
	for _, given := range urls {
		if !strings.Contains(given, "://") {
			given = "http://" + given
		}
		parsed, err := url.Parse(given)
		if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" {
			return nil, fmt.Errorf("%q is no http or https address", given)
		}
		a.urls = append(a.urls, strings.TrimRight(given, "/"))
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second}
	if options.CAFile != "" {
		pem, err := os.ReadFile(options.CAFile)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate in PEM", options.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	a.client = http.Client{Transport: transport}
	a.ended, a.end = context.WithCancel(context.Background())
	a.notBefore, a.refusals = make([]time.Time, len(urls)), make([]*Error, len(urls))
	return a, nil
}

func (a *asking) close() {
	a.end()
	a.client.CloseIdleConnections()
}

// json reads the answer to a request that may be sent more than once.
func (a *asking) json(method, target string, headers map[string]string, body []byte, answer any) error {
	deadline, pause := time.Now().Add(a.timeout), pauseMin
	for {
		var failure *Error
		earliest := deadline
		a.lock.Lock()
		first := a.first
		a.lock.Unlock()
		for place := range a.urls {
			at := (first + place) % len(a.urls)
			a.lock.Lock()
			notBefore, refusal := a.notBefore[at], a.refusals[at]
			a.lock.Unlock()
			if time.Now().Before(notBefore) {
				if failure == nil {
					failure = refusal
				}
			} else {
				failure = a.ask(at, method, target, headers, body, deadline, answer)
				if failure == nil {
					a.lock.Lock()
					a.first = at
					a.lock.Unlock()
					return nil
				}
				if a.ended.Err() != nil {
					return ErrClosed
				}
				if !failure.IsTransient() {
					return failure
				}
				notBefore = time.Now().Add(failure.RetryAfter)
				a.lock.Lock()
				a.notBefore[at], a.refusals[at] = notBefore, failure
				a.lock.Unlock()
			}
			if notBefore.Before(earliest) {
				earliest = notBefore
			}
		}
		wait := time.Duration(float64(pause) * (0.5 + mathrand.Float64()/2))
		if until := time.Until(earliest); until > wait {
			wait = until
		}
		if time.Now().Add(wait).After(deadline) {
			return failure
		}
		select {
		case <-time.After(wait):
		case <-a.ended.Done():
			return ErrClosed
		}
		if pause *= 2; pause > pauseMax {
			pause = pauseMax
		}
	}
}

func (a *asking) ask(at int, method, target string, headers map[string]string, body []byte, deadline time.Time, answer any) *Error {
	unreachable := func(err error) *Error {
		var unknown x509.UnknownAuthorityError
		if errors.As(err, &unknown) {
			return &Error{message: a.urls[at] + " is not trusted; set Options.CAFile to the certificate of its authority", cause: err}
		}
		return &Error{message: fmt.Sprintf("%s does not answer: %v", a.urls[at], err), cause: err}
	}
	// Each address gets its share of the time.
	share := a.timeout / time.Duration(len(a.urls)+1)
	if left := time.Until(deadline); left < share {
		share = left
	}
	ctx, cancel := context.WithTimeout(a.ended, share)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, a.urls[at]+target, bytes.NewReader(body))
	if err != nil {
		return unreachable(err)
	}
	if a.token != "" {
		request.Header.Set("Authorization", "Bearer "+a.token)
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return unreachable(err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		return unreachable(err)
	}
	if response.StatusCode >= 300 {
		return a.refusal(at, response, read)
	}
	if err := json.Unmarshal(read, answer); err != nil {
		return &Error{message: "what answers at " + a.urls[at] + " is no idmint service", Status: response.StatusCode, cause: err}
	}
	return nil
}

func (a *asking) refusal(at int, response *http.Response, body []byte) *Error {
	refusal := &Error{Status: response.StatusCode, Problem: map[string]any{}}
	_ = json.Unmarshal(body, &refusal.Problem) // Something else may answer, such as a proxy.
	member := func(name string) string { text, _ := refusal.Problem[name].(string); return text }
	refusal.Slug, refusal.Reason = member("type")[strings.LastIndex(member("type"), "/")+1:], member("reason")
	if millis, is := refusal.Problem["retry_after_ms"].(float64); is {
		refusal.RetryAfter = time.Duration(millis) * time.Millisecond
	} else if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		refusal.RetryAfter = time.Duration(seconds) * time.Second
	}
	detail, remedy := member("detail"), remedies[refusal.Status]
	if detail == "" {
		detail = "no reason is given"
	}
	if example := member("example"); remedy == "" && example != "" {
		remedy = "this works: " + example
	}
	refusal.message = fmt.Sprintf("%s answers %d: %s", a.urls[at], refusal.Status, detail)
	if remedy != "" {
		refusal.message += "; " + remedy
	}
	return refusal
}

func min(one, other int) int {
	if one < other {
		return one
	}
	return other
}

func max(one, other int) int {
	if one > other {
		return one
	}
	return other
}
