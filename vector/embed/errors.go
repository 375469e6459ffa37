package embed

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The causes of an Error of the embedding service; test with errors.Is.
var (
	ErrKey = errors.New("the service refused the API key") // HTTP status 401 or 403
	// HTTP status 404
	ErrModel   = errors.New("the service does not know the model or the path of the URL")
	ErrTooLong = errors.New("the text is too long for the model")
	ErrBusy    = errors.New("the service is overloaded") // HTTP status 429, 503 or 529
	// ErrAnswer means that the answer is not valid JSON, or that its vectors have the wrong number or the wrong
	// dimensions.
	ErrAnswer  = errors.New("the answer does not match the request")
	ErrReach   = errors.New("the service cannot be reached")            // no connection, or no answer in time
	errTooMuch = errors.New("the request is too large for the service") // batch and cut then send a smaller request
)

// Error is the error of a request to an embedding service.
type Error struct {
	URL     string // the requested URL, without user, password and query
	Model   string
	Status  int    // HTTP status; 0 if there was no answer
	Message string // message of the service, at most 300 bytes, without the key
	Tries   int
	Err     error // one of the errors above, or a system error

	wait time.Duration // the wait before a retry that the service requires, if told is true
	told bool          // the service requires a wait before a retry
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

// Answered reports whether the service answered and refused the request because of its content: the key, the model or
// the text. Such an error does not mean that the service is down.
func (e *Error) Answered() bool {
	return e.Status >= 400 && e.Status < 500 && !e.passing()
}

func (e *Embedder) fault(status int, err error, message string) *Error {
	return &Error{URL: e.URL(), Model: e.o.Model, Status: status, Err: err, Message: e.clean(message)}
}

// clean prepares a message of the service for a log: on one line, at most about 300 bytes, without secrets.
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

// secrets returns the strings that a message must not contain: the key, the password in the URL, and long values in the
// query of the URL.
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
