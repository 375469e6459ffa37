package embed

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The causes of an Error of the embedding service; test with errors.Is.
var (
	ErrKey = errors.New("the service refused the key") // HTTP status 401 or 403
	// HTTP status 404: the model or the path does not exist
	ErrModel   = errors.New("the service does not have the model or the address")
	ErrTooLong = errors.New("too long for the model")    // a single text is too long
	ErrBusy    = errors.New("the service is overloaded") // HTTP status 429, 503 or 529
	// the answer is not JSON, or has the wrong count or dimension
	ErrAnswer  = errors.New("the answer does not match the request")
	ErrReach   = errors.New("the service cannot be reached")            // no connection, or no answer in time
	errTooMuch = errors.New("the request is too large for the service") // the caller makes a smaller request
)

// Error is a failed request to an embedding service.
type Error struct {
	URL     string // the requested URL, without user, password and query
	Model   string
	Status  int    // HTTP status; 0 if there was no answer
	Message string // message of the service, at most 300 bytes, without the key
	Tries   int
	Err     error // one of the errors above, or a system error

	wait time.Duration // the wait that the service requires
	told bool          // the service requires a wait
}

func (e *Error) Error() string {
	s := fmt.Sprintf("embedding with %s at %s", e.Model, e.URL)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Tries > 1 {
		s += fmt.Sprintf(" (tried %d times)", e.Tries)
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Answered reports whether the service answered and refused the request itself: its key, its model or its
// text. In that case the service is not down.
func (e *Error) Answered() bool {
	return e.Status >= 400 && e.Status < 500 && !e.passing()
}

func (e *Embedder) fault(status int, err error, message string) *Error {
	return &Error{URL: e.URL(), Model: e.o.Model, Status: status, Err: err, Message: e.clean(message)}
}

// clean makes a service's message suitable for a log: short, on one line, without secrets.
func (e *Embedder) clean(s string) string {
	for _, secret := range e.secrets() {
		s = strings.ReplaceAll(s, secret, "…")
	}
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + "…"
	}
	return strings.TrimSpace(s)
}

// secrets returns the strings that a message must not contain: the key, and parts of the URL that may be
// secret.
func (e *Embedder) secrets() (all []string) {
	if e.o.Key != "" {
		all = append(all, e.o.Key)
	}
	if u := e.target.User; u != nil {
		if p, ok := u.Password(); ok && p != "" {
			all = append(all, p)
		}
	}
	for _, values := range e.target.Query() {
		for _, v := range values {
			if len(v) >= 8 {
				all = append(all, v)
			}
		}
	}
	return all
}
