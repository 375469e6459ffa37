package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

type request struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Format     string   `json:"encoding_format,omitempty"`
	Truncate   *bool    `json:"truncate,omitempty"`
	Dimensions int      `json:"dimensions,omitempty"`
}

// ask sends one request for the vectors of texts.
func (e *Embedder) ask(ctx context.Context, texts []string) ([][]float32, *Error) {
	ctx, cancel := context.WithTimeout(ctx, e.o.Timeout)
	defer cancel()
	r := request{Model: e.o.Model, Input: texts, Dimensions: e.o.Dimensions}
	if e.o.Protocol == OpenAI {
		r.Format = "float"
	} else {
		truncate := !e.o.NoTruncate
		r.Truncate = &truncate
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, e.fault(0, err, "")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, e.fault(0, errors.New("the request cannot be created"), "")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if e.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+e.o.Key)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, e.unreached(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, e.refused(resp)
	}
	return e.vectors(resp.Body, len(texts))
}

// unreached returns the Error for a request that got no answer. If err is a *url.Error, it uses only the inner error,
// because the text of a *url.Error contains the whole URL, which may have secrets.
func (e *Embedder) unreached(err error) *Error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s", e.o.Timeout)
	}
	return e.fault(0, ErrReach, err.Error())
}

func (e *Embedder) wrong(format string, args ...any) *Error {
	return e.fault(0, ErrAnswer, fmt.Sprintf(format, args...))
}

// refused returns the Error for a response whose status is not 200.
func (e *Embedder) refused(resp *http.Response) *Error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // a part of the body suffices
	message := words(b)
	f := e.fault(resp.StatusCode, nil, message)
	switch code := resp.StatusCode; {
	case code == 401 || code == 403:
		f.Err = ErrKey
	case code == 413 || (code == 400 || code == 422 || code == 500) && tooMuch(message):
		f.Err = errTooMuch
	case code == 404:
		f.Err = ErrModel
	case code == 429 || code == 503 || code == 529:
		f.Err = ErrBusy
	case code >= 300 && code < 400:
		f.Message = e.clean("the service has moved to " + resp.Header.Get("Location") + ": use that URL")
	}
	f.wait, f.told = retryAfter(resp.Header, e.o.Clock())
	return f
}

// words returns the error message in the body of a response. The body may be {"error":{"message":"…"}}, {"error":"…"},
// {"message":"…"}, {"detail":"…"}, or the message itself.
func words(b []byte) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(b, &members) == nil {
		for _, name := range []string{"error", "message", "detail"} {
			var s string
			var inner struct {
				Message string `json:"message"`
			}
			switch raw := members[name]; {
			case raw == nil:
			case json.Unmarshal(raw, &s) == nil && s != "":
				return s
			case json.Unmarshal(raw, &inner) == nil && inner.Message != "":
				return inner.Message
			}
		}
	}
	return string(b)
}

// tooMuch reports whether an error message of a service means that the input of the request is too long.
func tooMuch(message string) bool {
	m := strings.ToLower(message)
	for _, s := range []string{
		"too long", "too large", "too many tokens", "too many input", "context length", "maximum context",
		"max_tokens_per_request",
		"maximum sequence length", "exceeds the maximum", "input length exceeds", "batch size", "reduce the length",
	} {
		if strings.Contains(m, s) {
			return true
		}
	}
	return false
}

// retryAfter returns the wait before a retry that the headers of a response require. ok is false if they require none.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond)), true
	}
	s := h.Get("Retry-After")
	if n, err := strconv.Atoi(s); err == nil && n >= 0 && n < 1e6 {
		return time.Duration(n) * time.Second, true
	}
	if at, err := http.ParseTime(s); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}
