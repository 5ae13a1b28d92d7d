// SPDX-License-Identifier: Apache-2.0

// Package idmint is a client of an idmint service: https, failover, and a prefetched stock of ids, so that most ids cost no request.
//
// Require the module or copy this file. It needs Go 1.19 and nothing else:
//
//	ids, err := idmint.New([]string{"http://10.0.0.1:8080", "http://10.0.0.2:8080"}, "snowflake", idmint.Options{Token: "…"})
//	defer ids.Close()
//	id, err := ids.Next(ctx)          // a uint64, in any number of goroutines
//	text, err := ids.NextText(ctx)    // a text, for formats of any kind
//	texts, err := ids.Mint(ctx, 1000) // also Decode(ctx, "1573542478315782144") and Append(ctx, "aa77f99c", events)
//	number, text, err := ids.Number(ctx, "acme-2026", "order-4711") // the same number for the same key
//
// Every call ends within Options.Timeout or with its context. An error is an *Error. errors.Is compares it with ErrRefused,
// ErrUnavailable, ErrBadResponse and ErrClosed.
//
// Give several addresses to Append or Number only if they belong to one fleet. Other nodes share no ledgers and no numbers, so another
// node would give the same number again.
//
// Create one Ids per process. Go cannot fork without exec, so no process copies one. If a machine or container is copied while it runs
// (a snapshot that is restored twice), create the Ids after the copy, because nothing signals the copy to a process. The time in which
// the machine sleeps does not count as age.
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
	"math/bits"
	mathrand "math/rand"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Version is the version of this client.
const Version = "0.1.0"

const (
	pauseMin      = 100 * time.Millisecond
	pauseMax      = 5 * time.Second
	retryAfterMax = 30 * time.Second
	bodyMax       = 64 << 20
	// The service counts a request for more ids than this as bulk work, which it refuses first when it is busy.
	bulk = 1024
)

var remedies = map[int]string{
	401: "set Options.Token to a token that http.tokens of the service has",
	403: "the token does not cover this: its scopes and formats are in http.tokens of the service",
	421: "use a host name of the service, or add this one to its http.hosts",
}

// The kinds of an Error, for errors.Is. A response with status 500 is also ErrRefused, and OutcomeUnknown is then true.
var (
	ErrRefused     = errors.New("idmint: the service refused the request, and would refuse it again")
	ErrUnavailable = errors.New("idmint: the same call may succeed later")
	ErrBadResponse = errors.New("idmint: the response is not one of an idmint service; check the address")
	ErrClosed      = errors.New("idmint: this Ids is closed; create another one")
)

var errInvalidKey = errors.New("a key must be one or more visible ASCII characters")

// Options are the options of New. The zero value of a field stands for its default.
type Options struct {
	Token            string        // The bearer token of each request. White space around it is removed. Default: none.
	PrefetchCount    int           // The initial number of ids per request, which grows with the rate of use. Default: 100.
	PrefetchCountMax int           // The maximum to which the number of ids per request grows. Default: 10 000.
	PrefetchValidity time.Duration // The maximum age of an id. The stock lasts at most this long in an outage. Default: one minute.
	Timeout          time.Duration // The time limit of a call. Default: 10 seconds.
	CAFile           string        // The PEM file of the trusted certificate authorities. Default: those of the system.
	Query            url.Values    // Query parameters that the format needs, such as {"type": {"message"}}. Default: none.
}

// Format keeps the token out of logs.
func (Options) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, "idmint.Options{…}") }

// Error is the error of a call.
type Error struct {
	Kind           error          // ErrRefused, ErrUnavailable, ErrBadResponse or ErrClosed.
	Status         int            // The status of the response, or 0 if there was none.
	Slug           string         // The name of the problem type, as in /problems/{slug}.
	Reason         string         // The reason for the problem, as one word.
	Problem        map[string]any // The whole problem document.
	RetryAfter     time.Duration  // The wait before a retry that the service asks for: at most 30 seconds.
	OutcomeUnknown bool           // True if the request may have taken effect although the call failed.
	message        string
	cause          error
}

func (e *Error) Error() string { return e.message }

// Is reports whether target is the Kind of the error. It lets errors.Is compare an *Error with a kind.
func (e *Error) Is(target error) bool { return target == e.Kind }

// Unwrap returns the error of the transport or of the context, if there is one.
func (e *Error) Unwrap() error { return e.cause }

// isOfRequest reports whether the service cannot handle this request now, such as one for a certain series, but may handle others.
func (e *Error) isOfRequest() bool {
	return (e.Status == 409 || e.Status == 503 || e.Status == 504) && e.Slug != "" && e.Slug != "overloaded" && e.Slug != "draining"
}

func (e *Error) waitsForOperator() bool {
	return e.Status != 504 && e.isOfRequest() && e.RetryAfter == 0
}

// isOfCertificate reports whether the certificate of an address is not trusted. Another address may have a valid one.
func (e *Error) isOfCertificate() bool { return e.Kind == ErrRefused && e.Status == 0 }

// again returns a copy of the error, because each call fails with its own error value.
func (e *Error) again(outcomeUnknown bool) *Error {
	again := *e
	again.OutcomeUnknown = outcomeUnknown
	return &again
}

func closed() *Error {
	return &Error{Kind: ErrClosed, message: "this Ids is closed; create another one"}
}

// Ids are ids of one format.
type Ids struct {
	asking     *asking
	format     string
	query      url.Values
	numbers    stock
	texts      stock
	numberText atomic.Pointer[numberText] // nil until it is known.
}

// New returns an Ids, or an error if an argument is invalid. It sends no request.
func New(urls []string, format string, options Options) (*Ids, error) {
	if options.PrefetchCountMax == 0 {
		options.PrefetchCountMax = 10_000
	}
	if options.PrefetchCount == 0 {
		options.PrefetchCount = 100
	}
	if options.PrefetchCount < 1 || options.PrefetchCount > options.PrefetchCountMax {
		return nil, fmt.Errorf("PrefetchCount must be from 1 to PrefetchCountMax (%d), got %d", options.PrefetchCountMax, options.PrefetchCount)
	}
	if options.PrefetchValidity == 0 {
		options.PrefetchValidity = time.Minute
	}
	if options.Timeout == 0 {
		options.Timeout = 10 * time.Second
	}
	if options.PrefetchValidity < 0 || options.Timeout < 0 {
		return nil, errors.New("PrefetchValidity and Timeout must be above 0")
	}
	asking, err := newAsking(urls, options)
	if err != nil {
		return nil, err
	}
	ids := &Ids{asking: asking, format: segment(format), query: options.Query}
	ids.numbers.begin(ids.fetchRows, options)
	ids.texts.begin(ids.fetchTexts, options)
	return ids, nil
}

// Next returns the next id, of a format of up to 64 bits. It blocks only while the stock is empty.
func (ids *Ids) Next(ctx context.Context) (uint64, error) { return ids.next(ctx, time.Time{}) }

// next returns the next id. It waits until the deadline, or for the timeout of the options if the deadline is zero.
func (ids *Ids) next(ctx context.Context, deadline time.Time) (uint64, error) {
	for {
		piece := ids.numbers.current.Load()
		if place := piece.taken.Add(1) - 1; place < piece.count && time.Since(piece.asked) < piece.validity {
			return piece.first + place*piece.step, nil
		}
		if deadline.IsZero() {
			deadline = time.Now().Add(ids.asking.timeout)
		}
		if err := ids.numbers.advance(ctx, piece, deadline); err != nil {
			return 0, err
		}
	}
}

// NextText returns the next id as a text. It blocks only while the stock is empty.
func (ids *Ids) NextText(ctx context.Context) (string, error) {
	numberText := ids.numberText.Load()
	var deadline time.Time
	if numberText == nil {
		deadline = time.Now().Add(ids.asking.timeout)
		var err error
		if numberText, err = ids.learn(ctx); err != nil {
			return "", err
		}
	}
	if numberText.radix > 0 {
		id, err := ids.next(ctx, deadline)
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
		if deadline.IsZero() {
			deadline = time.Now().Add(ids.asking.timeout)
		}
		if err := ids.texts.advance(ctx, piece, deadline); err != nil {
			return "", err
		}
	}
}

// Mint mints ids now and returns their texts: all of them or none. A retry mints new ids, so no id is returned twice.
func (ids *Ids) Mint(ctx context.Context, count int) ([]string, error) {
	return ids.mintedTexts(ctx, request{method: "POST", target: ids.target(count)}, count)
}

func (ids *Ids) mintedTexts(ctx context.Context, r request, count int) ([]string, error) {
	var texts []string
	r.parse = func(body []byte) error {
		var answer struct{ Ids []string }
		if err := json.Unmarshal(body, &answer); err != nil {
			return err
		}
		for _, text := range answer.Ids {
			if text == "" {
				return errors.New("the response has an empty id")
			}
		}
		if texts = answer.Ids; len(texts) != count {
			return fmt.Errorf("the response has %d ids, but %d were requested", len(texts), count)
		}
		return nil
	}
	if err := ids.asking.send(ctx, r); err != nil {
		return nil, err
	}
	return texts, nil
}

// Decode returns the response of GET /decode/{id}: the possible readings of a text. The error has status 404 if text is not an id.
func (ids *Ids) Decode(ctx context.Context, text string) (map[string]any, error) {
	var answer map[string]any
	err := ids.asking.send(ctx, request{method: "GET", target: "/decode/" + segment(text), parse: func(body []byte) error {
		if err := json.Unmarshal(body, &answer); err != nil {
			return err
		}
		if answer == nil {
			return errors.New("the response is not a JSON object")
		}
		return nil
	}})
	return answer, err
}

// Append appends events to a ledger and returns their ids. It appends once, however often the request is sent.
func (ids *Ids) Append(ctx context.Context, ledger string, events []any) ([]string, error) {
	var key [16]byte
	if _, err := rand.Read(key[:]); err != nil {
		return nil, err
	}
	return ids.AppendWithKey(ctx, ledger, events, hex.EncodeToString(key[:]))
}

// AppendWithKey is Append with an idempotency key. Calls with the same key append once, so a call with an unknown outcome can be repeated.
func (ids *Ids) AppendWithKey(ctx context.Context, ledger string, events []any, key string) ([]string, error) {
	if !visible.MatchString(key) {
		return nil, errInvalidKey
	}
	body, err := json.Marshal(map[string]any{"events": events})
	if err != nil {
		return nil, err
	}
	// Marshal replaces invalid UTF-8 by this escape, and writes the character U+FFFD itself without an escape.
	if replaced.Match(body) {
		return nil, &Error{Kind: ErrRefused, message: "the events have a string that is not valid UTF-8"}
	}
	headers := map[string]string{"Idempotency-Key": key, "Content-Type": "application/json"}
	target := "/ledgers/" + segment(ledger) + "/events"
	return ids.mintedTexts(ctx, request{method: "POST", target: target, headers: headers, body: body}, len(events))
}

// Number returns the next number of a series without gaps, and its text. The same key always gets the same number.
func (ids *Ids) Number(ctx context.Context, series, key string) (number uint64, text string, err error) {
	if !visible.MatchString(key) {
		return 0, "", errInvalidKey
	}
	headers := map[string]string{"Idempotency-Key": key}
	err = ids.asking.send(ctx, request{method: "POST", target: "/numbers/" + segment(series), headers: headers, parse: func(body []byte) (err error) {
		var answer struct{ Number, Text string }
		if err = json.Unmarshal(body, &answer); err != nil {
			return err
		}
		if text = answer.Text; text == "" {
			return errors.New("the response has a member that is not a string")
		}
		number, err = strconv.ParseUint(answer.Number, 10, 64)
		return err
	}})
	return number, text, err
}

// Close aborts the requests in flight and closes the connections. Prefetched ids that were not used are lost and remain gaps.
func (ids *Ids) Close() {
	ids.asking.close()
	ids.numbers.close()
	ids.texts.close()
}

// segment encodes a text as one segment of a path. Proxies remove the segments "." and "..", even if the dots are written as %2E, so the
// dots are encoded twice. The service then responds that there is no such resource.
func segment(text string) string {
	if text == "." || text == ".." {
		return strings.ReplaceAll(text, ".", "%252E")
	}
	return url.PathEscape(text)
}

func (ids *Ids) target(count int) string {
	query := url.Values{"count": {strconv.Itoa(count)}}
	for name, values := range ids.query {
		query[name] = values
	}
	return "/ids/" + ids.format + "?" + query.Encode()
}

func (ids *Ids) fetchRows(count int) (pieces []*piece, err error) {
	headers := map[string]string{"Accept": "application/vnd.idmint.rows+json"}
	parse := func(body []byte) error {
		var answer struct {
			Rows []struct {
				First, Step string
				Count       uint64
			}
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			return err
		}
		left := uint64(count)
		pieces = make([]*piece, len(answer.Rows))
		for at, row := range answer.Rows {
			first, err := strconv.ParseUint(row.First, 10, 64)
			step, errOfStep := strconv.ParseUint(row.Step, 10, 64)
			if len(row.First) < 40 && errors.Is(err, strconv.ErrRange) {
				return &Error{Kind: ErrRefused, message: "ids of this format have more than 64 bits: use NextText", Status: 200}
			}
			high, span := bits.Mul64(step, row.Count)
			if err != nil || errOfStep != nil || row.Count == 0 || row.Count > left || (step == 0 && row.Count > 1) || high != 0 || first+span < first {
				return errors.New("the response has no row of ids")
			}
			left -= row.Count
			pieces[at] = &piece{first: first, step: step, count: row.Count}
		}
		if left != 0 {
			return errors.New("the response has another number of ids than requested")
		}
		return nil
	}
	err = ids.asking.send(context.Background(), request{"POST", ids.target(count), headers, nil, count, parse})
	return pieces, err
}

func (ids *Ids) fetchTexts(count int) ([]*piece, error) {
	texts, err := ids.mintedTexts(context.Background(), request{method: "POST", target: ids.target(count), count: count}, count)
	return []*piece{{texts: texts, count: uint64(len(texts))}}, err
}

// numberText converts numbers to texts that are plain decimal, hexadecimal or base 36.
type numberText struct {
	radix, length int // The radix is 0 if only the service can write the texts.
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

// learn asks the service how it writes texts of the format.
func (ids *Ids) learn(ctx context.Context) (*numberText, error) {
	var format description
	learnt := &numberText{}
	err := ids.asking.send(ctx, request{method: "GET", target: "/formats/" + ids.format, parse: func(body []byte) error {
		if err := json.Unmarshal(body, &format); err != nil {
			return err
		}
		if len(format.Encodings) == 0 {
			return errors.New("the response describes no format")
		}
		return nil
	}})
	if err == nil {
		learnt = format.numberText(ids.query)
	} else if !errors.Is(err, ErrRefused) {
		return nil, err
	}
	// The token may permit minting but not reading formats. The next request for texts reports any other cause of the refusal.
	ids.numberText.Store(learnt)
	return learnt, nil
}

// description has those members of the response of GET /formats/{format} that this package uses.
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
	// The service returns numbers only for sequenced formats.
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
			// The pattern does not show the order of the alphabet, so compare the text of the example id.
			value, err := strconv.ParseUint(d.Example.Value, 10, 64)
			if err == nil && try.textOf(value) == d.Example.Encodings[encoding.Name] {
				return &try.numberText
			}
		}
		break
	}
	return &numberText{}
}

// piece holds ids of one response: a row of equally spaced numbers, or texts.
type piece struct {
	taken       atomic.Uint64 // Attempts to take an id, including those after the last one. It only grows, so no id is taken twice.
	first, step uint64
	texts       []string
	count       uint64
	asked       time.Time
	validity    time.Duration
	lowers      bool // True for the second half, whose first use starts a request for more ids.
}

// stock is a stock of prefetched ids. One request at a time refills it before it is empty.
type stock struct {
	current atomic.Pointer[piece]

	lock                      sync.Mutex
	fetch                     func(count int) ([]*piece, error)
	pieces                    []*piece
	count, countMin, countMax int
	validity, timeout         time.Duration
	filledAt, growsAt         time.Time
	filling                   chan struct{} // Closed when the request has ended; nil while there is none.
	err                       *Error
	failures                  int
	retryAt                   time.Time
	isClosed                  bool
}

func (s *stock) begin(fetch func(int) ([]*piece, error), options Options) {
	s.fetch, s.validity, s.timeout = fetch, options.PrefetchValidity, options.Timeout
	s.count, s.countMin, s.countMax = options.PrefetchCount, options.PrefetchCount, options.PrefetchCountMax
	s.current.Store(&piece{})
}

// advance replaces a piece that is used up or too old. It blocks only while the stock is empty.
func (s *stock) advance(ctx context.Context, used *piece, deadline time.Time) error {
	wasUsedUp := time.Since(used.asked) < s.validity
	var late <-chan time.Time
	for {
		filling, err := s.replace(used, wasUsedUp)
		if filling == nil {
			return err
		}
		if late == nil {
			timer := time.NewTimer(time.Until(deadline))
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-filling:
		case <-late:
			return &Error{Kind: ErrUnavailable, message: fmt.Sprintf("the service sent no ids within %v", s.timeout)}
		case <-ctx.Done():
			return &Error{Kind: ErrUnavailable, message: "the context of the call ended: " + ctx.Err().Error(), cause: ctx.Err()}
		}
	}
}

// replace replaces a used piece by the next one. If there is none, it returns a channel that is closed after the refill, or an error.
func (s *stock) replace(used *piece, wasUsedUp bool) (chan struct{}, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.current.Load() != used {
		return nil, nil
	}
	if s.isClosed {
		return nil, closed()
	}
	for len(s.pieces) > 0 && time.Since(s.pieces[0].asked) >= s.validity {
		// The ids expired before they were used, so fetch fewer from now on.
		if s.pieces[0].lowers {
			s.count = max(s.countMin, s.count/2)
		}
		s.pieces = s.pieces[1:]
	}
	mayFill := s.filling == nil && !time.Now().Before(s.retryAt)
	if mayFill && (len(s.pieces) == 0 || s.pieces[0].lowers) {
		s.startFilling(wasUsedUp)
	}
	if len(s.pieces) > 0 {
		s.current.Store(s.pieces[0])
		s.pieces = s.pieces[1:]
		return nil, nil
	}
	if s.filling == nil {
		return nil, s.err.again(false)
	}
	return s.filling, nil
}

func (s *stock) startFilling(wasUsedUp bool) {
	if wasUsedUp && time.Since(s.filledAt) < time.Second {
		most := s.countMax
		if time.Now().Before(s.growsAt) {
			most = min(most, bulk)
		}
		s.count = max(s.count, min(most, s.count*2))
	}
	s.filling = make(chan struct{})
	go s.fill(s.count)
}

func (s *stock) fill(count int) {
	var pieces []*piece
	var failure *Error
	for try := 0; try < 2; try++ {
		asked := time.Now()
		fetched, err := s.fetch(count)
		if failure = nil; err == nil {
			pieces = halved(fetched)
			for _, piece := range pieces {
				piece.asked, piece.validity = asked, s.validity
			}
			break
		}
		if !errors.As(err, &failure) {
			failure = &Error{Kind: ErrUnavailable, message: err.Error(), cause: err}
		}
		fewer := s.fewerAfter(failure, count)
		if fewer == 0 {
			break
		}
		count = fewer
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if !s.isClosed {
		s.pieces = append(s.pieces, pieces...)
	}
	if s.failures++; failure == nil {
		s.failures = 0
	}
	s.err, s.filledAt = failure, time.Now()
	s.retryAt = s.filledAt.Add(backoff(s.failures))
	close(s.filling)
	s.filling = nil
}

// fewerAfter returns a smaller number of ids to request after a refusal, or 0 if the refusal has another cause than the number.
func (s *stock) fewerAfter(refused *Error, count int) int {
	s.lock.Lock()
	defer s.lock.Unlock()
	limit, _ := refused.Problem["limit"].(string)
	most, err := strconv.Atoi(limit)
	if refused.Status == 422 && refused.Reason == "count" && err == nil && most > 0 && most < count {
		// The service never grants this many at once, so ask for its limit from now on.
		s.count, s.countMax, s.countMin = most, most, min(most, s.countMin)
		return most
	}
	if refused.Status == 503 && count > bulk {
		s.count, s.growsAt = bulk, time.Now().Add(time.Minute)
		return bulk
	}
	return 0
}

// halved splits one piece at the middle of all ids. The first use of its second part starts a request for more ids.
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

// pause is the number of consecutive failures of an address, and the time before which no request is sent to it.
type pause struct {
	failures  int
	notBefore time.Time
	failure   *Error
}

// address is one address of the service, with the pause that all calls observe.
type address struct {
	url string
	pause
}

// asking sends requests to the addresses of the service, with failover.
type asking struct {
	client  http.Client
	token   string
	timeout time.Duration
	ended   context.Context
	end     context.CancelFunc

	lock      sync.Mutex
	addresses []address
	first     int  // The index of the address that responded last. The next request tries it first.
	isAway    bool // True if a call timed out and no address has responded since.
}

// replaced is the escape that json.Marshal writes for invalid UTF-8.
var replaced = regexp.MustCompile(`(^|[^\\])(\\\\)*\\ufffd`)

// visible are texts that a header can carry.
var visible = regexp.MustCompile("^[!-~]+$")

// credentials are the user name and the password of a URL.
var credentials = regexp.MustCompile("(?s)^.*@")

func newAsking(urls []string, options Options) (*asking, error) {
	if len(urls) == 0 {
		return nil, errors.New("urls must have at least one address")
	}
	a := &asking{token: strings.TrimSpace(options.Token), timeout: options.Timeout}
	if options.Token != "" && !visible.MatchString(a.token) {
		return nil, errors.New("Options.Token must be one or more visible ASCII characters")
	}
	for _, given := range urls {
		whole := given
		if !strings.Contains(given, "://") {
			whole = "http://" + given
		}
		shown := credentials.ReplaceAllString(given, "…@")
		parsed, err := url.Parse(whole)
		if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Hostname() == "" || !visible.MatchString(whole) {
			return nil, fmt.Errorf("%q is not the address of an idmint service, such as http://127.0.0.1:8080", shown)
		}
		if parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
			return nil, fmt.Errorf("%q has a user name, a query or a fragment, which the address of an idmint service must not have", shown)
		}
		a.addresses = append(a.addresses, address{url: strings.TrimRight(whole, "/")})
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10}
	if options.CAFile != "" {
		pem, err := os.ReadFile(options.CAFile)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate in PEM format", options.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	a.client = http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a.ended, a.end = context.WithCancel(context.Background())
	return a, nil
}

func (a *asking) close() {
	a.end()
	a.client.CloseIdleConnections()
}

// request is a request that is safe to send more than once.
type request struct {
	method, target string
	headers        map[string]string
	body           []byte
	count          int                     // The number of ids.
	parse          func(body []byte) error // Reads the response.
}

// isTooMany reports whether an address is too busy for this many ids. The next request then asks for fewer.
func (r request) isTooMany(failure *Error) bool {
	return r.count > bulk && failure.Status == 503
}

// send sends the request to one address after another, until one responds or the timeout passes.
func (a *asking) send(ctx context.Context, r request) error {
	deadline, outcomeUnknown := time.Now().Add(a.timeout), false
	within, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	go func() {
		select {
		case <-a.ended.Done():
			cancel()
		case <-within.Done():
		}
	}()
	var untrusted *Error
	own := map[int]*pause{} // Pauses after errors that concern only this request, by address index.
	for {
		var failure *Error
		a.lock.Lock()
		first := a.first
		a.lock.Unlock()
		for place := range a.addresses {
			at := (first + place) % len(a.addresses)
			one := a.begin(at, own, deadline)
			if one == nil {
				one = a.attempt(within, at, r, deadline)
				if ended := a.endOf(ctx, outcomeUnknown || one != nil && one.OutcomeUnknown); ended != nil && one != nil {
					return ended
				}
				a.settle(at, own, one)
				if one == nil {
					return nil
				}
				outcomeUnknown = outcomeUnknown || one.OutcomeUnknown
				if one.Kind == ErrRefused && !one.isOfCertificate() {
					return one.again(outcomeUnknown)
				}
			}
			if one.isOfCertificate() {
				untrusted = one
			}
			// Prefer an error that may pass. Prefer a response about this request to an error without a slug, such as one of a proxy.
			isBetter := r.isTooMany(one) || failure != nil && failure.Slug == "" && one.isOfRequest()
			if failure == nil || failure.Kind != ErrUnavailable || (isBetter && !r.isTooMany(failure)) {
				failure = one
			}
		}
		earliest, isAway := a.earliest(own)
		isLate := earliest.After(deadline) || time.Now().After(deadline)
		if isAway || isLate || failure.Kind != ErrUnavailable || r.isTooMany(failure) || failure.waitsForOperator() {
			if isLate && !failure.isOfRequest() {
				a.lock.Lock()
				a.isAway = true
				a.lock.Unlock()
			}
			failed := failure.again(outcomeUnknown)
			if untrusted != nil && untrusted != failure {
				failed.message += "; " + untrusted.message
			}
			return failed
		}
		timer := time.NewTimer(time.Until(earliest))
		select {
		case <-timer.C:
		case <-within.Done():
			timer.Stop()
			if ended := a.endOf(ctx, outcomeUnknown); ended != nil {
				return ended
			}
		}
	}
}

// endOf returns the error of a call whose context has ended or whose Ids was closed, or nil.
func (a *asking) endOf(ctx context.Context, outcomeUnknown bool) error {
	if a.ended.Err() != nil {
		return closed().again(outcomeUnknown)
	}
	if err := ctx.Err(); err != nil {
		return &Error{Kind: ErrUnavailable, message: "the context of the call ended: " + err.Error(), cause: err, OutcomeUnknown: outcomeUnknown}
	}
	return nil
}

// begin returns nil if this call may send a request to the address now, or else the last error of the address. After a failure, only
// one call at a time tries the address again.
func (a *asking) begin(at int, own map[int]*pause, deadline time.Time) *Error {
	a.lock.Lock()
	defer a.lock.Unlock()
	one := a.pauseOf(at, own)
	if one.failure != nil && time.Now().Before(one.notBefore) {
		return one.failure
	}
	one.notBefore = time.Now().Add(a.share(deadline))
	return nil
}

// share returns the timeout of one attempt, which is a share of the timeout of the call.
func (a *asking) share(deadline time.Time) time.Duration {
	share := a.timeout / time.Duration(len(a.addresses)+1)
	if left := time.Until(deadline); left < share {
		share = left
	}
	return share
}

// pauseOf returns the pause of this call for an address, or the pause that all calls observe. The caller must hold the lock.
func (a *asking) pauseOf(at int, own map[int]*pause) *pause {
	if one := own[at]; one != nil {
		return one
	}
	return &a.addresses[at].pause
}

func (a *asking) settle(at int, own map[int]*pause, failure *Error) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if failure == nil || failure.Kind == ErrRefused && !failure.isOfCertificate() {
		a.addresses[at].pause = pause{}
		if failure == nil {
			a.first, a.isAway = at, false
		}
		return
	}
	if !failure.isOfRequest() {
		delete(own, at)
	} else {
		a.addresses[at].pause, a.isAway = pause{}, false
		if own[at] == nil {
			own[at] = &pause{}
		}
	}
	one := a.pauseOf(at, own)
	one.failures, one.failure = one.failures+1, failure
	wait := backoff(one.failures)
	if failure.RetryAfter > wait {
		wait = failure.RetryAfter
	}
	one.notBefore = time.Now().Add(wait)
}

func (a *asking) earliest(own map[int]*pause) (time.Time, bool) {
	a.lock.Lock()
	defer a.lock.Unlock()
	earliest := a.pauseOf(0, own).notBefore
	for at := range a.addresses {
		if one := a.pauseOf(at, own); one.notBefore.Before(earliest) {
			earliest = one.notBefore
		}
	}
	return earliest, a.isAway
}

// backoff returns a pause that doubles with each failure, with jitter.
func backoff(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	pause := pauseMax
	if failures < 7 && pauseMin<<(failures-1) < pauseMax {
		pause = pauseMin << (failures - 1)
	}
	return time.Duration(float64(pause) * (0.5 + mathrand.Float64()/2))
}

func (a *asking) attempt(ctx context.Context, at int, r request, deadline time.Time) *Error {
	address := a.addresses[at].url
	isSent := false
	unavailable := func(err error) *Error {
		var unknown x509.UnknownAuthorityError
		var otherHost x509.HostnameError
		var invalid x509.CertificateInvalidError
		if errors.As(err, &unknown) || errors.As(err, &otherHost) || errors.As(err, &invalid) {
			err = a.withoutToken(err)
			message := "the certificate of " + address + " is not trusted; set Options.CAFile to the certificate of its authority: " + err.Error()
			return &Error{Kind: ErrRefused, message: message, cause: err}
		}
		var ofURL *url.Error
		if errors.As(err, &ofURL) {
			err = ofURL.Err
		}
		err = a.withoutToken(err)
		return &Error{Kind: ErrUnavailable, message: fmt.Sprintf("%s does not respond: %v", address, err), cause: err, OutcomeUnknown: isSent}
	}
	ctx, cancel := context.WithTimeout(ctx, a.share(deadline))
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { isSent = true }})
	sent, err := http.NewRequestWithContext(ctx, r.method, address+r.target, bytes.NewReader(r.body))
	if err != nil {
		return unavailable(err)
	}
	sent.Header.Set("User-Agent", "idmint-go/"+Version)
	if a.token != "" {
		sent.Header.Set("Authorization", "Bearer "+a.token)
	}
	for name, value := range r.headers {
		sent.Header.Set(name, value)
	}
	response, err := a.client.Do(sent)
	if err != nil {
		return unavailable(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, bodyMax+1))
	if err == nil && len(body) > bodyMax {
		err = errors.New("the response body is too long")
	}
	if err != nil {
		return unavailable(err)
	}
	if response.StatusCode < 200 || response.StatusCode >= 300 {
		return a.refusal(address, response, body)
	}
	if err := r.parse(body); err != nil {
		var wide *Error
		if errors.As(err, &wide) {
			return wide
		}
		message := "the server at " + address + " is not an idmint service; check the address"
		return &Error{Kind: ErrBadResponse, message: message, Status: response.StatusCode, cause: a.withoutToken(err), OutcomeUnknown: true}
	}
	return nil
}

// withoutToken removes the token from an error. The error may quote a response that repeats the token.
func (a *asking) withoutToken(err error) error {
	if a.token == "" || !strings.Contains(err.Error(), a.token) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), a.token, "(token)"))
}

func (a *asking) refusal(address string, response *http.Response, body []byte) *Error {
	status := response.StatusCode
	refusal := &Error{Kind: ErrRefused, Status: status, OutcomeUnknown: status >= 500 && status != 503}
	if status < 200 {
		refusal.Kind, refusal.OutcomeUnknown = ErrBadResponse, true
	}
	// The body is not JSON if the response comes from another program, such as a proxy.
	if json.Unmarshal(body, &refusal.Problem) == nil && a.token != "" {
		// The JSON may contain the token with escapes, so search the text that this package writes.
		written, _ := json.Marshal(refusal.Problem)
		token, _ := json.Marshal(a.token)
		refusal.Problem = nil
		_ = json.Unmarshal(bytes.ReplaceAll(written, token[1:len(token)-1], []byte("(token)")), &refusal.Problem)
	}
	member := func(name string) string { text, _ := refusal.Problem[name].(string); return text }
	refusal.Slug, refusal.Reason = member("type")[strings.LastIndex(member("type"), "/")+1:], member("reason")
	if status == 408 || status == 409 && refusal.Slug == "ledger-importing" || status == 429 || status >= 502 && status <= 504 {
		refusal.Kind = ErrUnavailable
	}
	seconds, err := strconv.ParseFloat(response.Header.Get("Retry-After"), 64)
	if millis, is := refusal.Problem["retry_after_ms"].(float64); is {
		seconds, err = millis/1000, nil
	}
	if err == nil && seconds > 0 {
		refusal.RetryAfter = retryAfterMax
		if seconds < retryAfterMax.Seconds() {
			refusal.RetryAfter = time.Duration(seconds * float64(time.Second))
		}
	}
	detail, remedy := member("detail"), remedies[status]
	if detail == "" {
		detail = "no reason is given"
		if status >= 300 && status < 400 {
			detail = "it redirects, which is not followed"
		}
	}
	if len(detail) > 1000 {
		detail = detail[:1000]
	}
	if example := member("example"); remedy == "" && example != "" {
		remedy = "this works: " + example
	}
	refusal.message = fmt.Sprintf("%s answers %d: %s", address, status, detail)
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
