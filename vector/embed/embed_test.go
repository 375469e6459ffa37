package embed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// service is an embedding service in both protocols. A vector has the length of its text and its number
// of words.
type service struct {
	*httptest.Server
	t    *testing.T
	mu   sync.Mutex
	seen []seen
	// before answers instead if it returns true.
	before func(w http.ResponseWriter, q seen) bool
}

type seen struct {
	path, auth string
	request
}

func serve(t *testing.T, before func(w http.ResponseWriter, q seen) bool) *service {
	s := &service{t: t, before: before}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	return s
}

func vectorOf(text string) []float32 {
	return []float32{float32(len(text)), float32(len(strings.Fields(text)))}
}

func (s *service) answer(w http.ResponseWriter, r *http.Request) {
	q := seen{path: r.URL.Path, auth: r.Header.Get("Authorization")}
	if err := json.NewDecoder(r.Body).Decode(&q.request); err != nil || r.Method != http.MethodPost {
		s.t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
	s.mu.Lock()
	s.seen = append(s.seen, q)
	s.mu.Unlock()
	if s.before != nil && s.before(w, q) {
		return
	}
	var body any
	switch r.URL.Path {
	case "/v1/embeddings":
		var data []map[string]any
		for i, text := range slices.Backward(q.Input) { // in any order
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": vectorOf(text)})
		}
		body = map[string]any{"object": "list", "data": data}
	case "/api/embed":
		list := [][]float32{}
		for _, text := range q.Input {
			list = append(list, vectorOf(text))
		}
		body = map[string]any{"embeddings": list}
	default:
		http.Error(w, `{"error":"no such path"}`, http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(body)
}

func (s *service) requests() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// sleeps records waits instead of waiting.
type sleeps struct{ all []time.Duration }

func (s *sleeps) sleep(ctx context.Context, d time.Duration) error {
	s.all = append(s.all, d)
	return ctx.Err()
}

func embedder(t *testing.T, s *service, more func(*Options)) (*Embedder, *sleeps) {
	t.Helper()
	waits := &sleeps{}
	o := Options{URL: s.URL, Model: "m", Key: "sk-very-secret", Sleep: waits.sleep}
	if more != nil {
		more(&o)
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e, waits
}

func check(t *testing.T, e *Embedder, texts ...string) {
	t.Helper()
	list, err := e.Embed(context.Background(), texts)
	if err != nil || len(list) != len(texts) {
		t.Fatalf("%d vectors, %v", len(list), err)
	}
	for i, v := range list {
		if !slices.Equal(v, vectorOf(texts[i])) {
			t.Errorf("%q has %v", texts[i], v)
		}
	}
}

func TestProtocols(t *testing.T) {
	s := serve(t, nil)
	for path, want := range map[string]string{
		"": "/v1/embeddings", "/": "/v1/embeddings", "/v1": "/v1/embeddings", "/v1/embeddings/": "/v1/embeddings",
		"/api": "/api/embed", "/api/embed": "/api/embed",
	} {
		e, _ := embedder(t, s, func(o *Options) { o.URL, o.Batch, o.Dimensions = s.URL+path, 2, 2 })
		check(t, e, "one", "two three", "four")
		check(t, e)
		all := s.requests()
		for _, q := range all[len(all)-2:] {
			if q.path != want || q.auth != "Bearer sk-very-secret" || q.Model != "m" || q.Dimensions != 2 || len(q.Input) > 2 ||
				(q.Format == "float") != (want == "/v1/embeddings") || (q.Truncate != nil) != (want == "/api/embed") {
				t.Errorf("%q: %+v", path, q)
			}
		}
	}
	if e, _ := embedder(t, s, func(o *Options) { o.URL, o.Key = "http://127.0.0.1:11434", "" }); e.o.Protocol != Ollama || e.target.Path != "/api/embed" {
		t.Error(e.target)
	}
}

// Transient failures are retried, at growing intervals or when the service says; others are an error at
// once.
func TestRetries(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name   string
		status int
		header map[string]string
		times  int // that it fails
		tries  int
		waits  []time.Duration // 0: any up to the doubling one
		is     error
	}{
		{"once", 503, nil, 1, 2, []time.Duration{0}, nil},
		{"for ever", 500, nil, 99, 4, []time.Duration{0, 0, 0}, nil},
		{"busy", 429, map[string]string{"Retry-After": "7"}, 2, 3, []time.Duration{7 * time.Second, 7 * time.Second}, nil},
		{"until", 429, map[string]string{"Retry-After": now.Add(9 * time.Second).Format(http.TimeFormat)}, 1, 2, []time.Duration{9 * time.Second}, nil},
		{"milliseconds", 429, map[string]string{"Retry-After-Ms": "12.5"}, 1, 2, []time.Duration{12500 * time.Microsecond}, nil},
		{"too late", 429, map[string]string{"Retry-After": "3600"}, 99, 1, nil, ErrBusy},
		{"the key", 401, nil, 99, 1, nil, ErrKey},
		{"the model", 404, nil, 99, 1, nil, ErrModel},
		{"bad", 400, nil, 99, 1, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := 0
			s := serve(t, func(w http.ResponseWriter, _ seen) bool {
				if n++; n > c.times {
					return false
				}
				for k, v := range c.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, `{"error":{"message":"no: sk-very-secret\n is wrong"}}`)
				return true
			})
			e, waits := embedder(t, s, func(o *Options) { o.Clock = func() time.Time { return now } })
			list, err := e.Embed(context.Background(), []string{"x"})
			if got := len(s.requests()); got != c.tries {
				t.Errorf("%d tries, want %d", got, c.tries)
			}
			if len(waits.all) != len(c.waits) {
				t.Fatalf("waits %v", waits.all)
			}
			for i, d := range c.waits {
				if full := firstWait << i; d != 0 && waits.all[i] != d || d == 0 && (waits.all[i] > full || waits.all[i] < full*3/4) {
					t.Errorf("wait %d is %s", i, waits.all[i])
				}
			}
			if c.times < 99 {
				if err != nil || len(list) != 1 {
					t.Error(err)
				}
				return
			}
			var fault *Error
			if !errors.As(err, &fault) || fault.Status != c.status || fault.Tries != c.tries || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%#v", err)
			}
			if s := err.Error(); strings.Contains(s, "secret") || strings.Contains(s, "\n") || !strings.Contains(s, "no: … ") {
				t.Error(s)
			}
		})
	}
}

// A request to a service that is down is retried too.
func TestUnreachable(t *testing.T) {
	s := serve(t, nil)
	s.Close()
	e, waits := embedder(t, s, func(o *Options) { o.URL += "/v1?key=secret-in-query"; o.Retries = 2 })
	_, err := e.Embed(context.Background(), []string{"x"})
	if !errors.Is(err, ErrReach) || len(waits.all) != 2 || strings.Contains(err.Error(), "secret") {
		t.Error(err, waits.all)
	}
}

// Batches and texts that are too large are made smaller.
func TestTooLarge(t *testing.T) {
	refuse := func(w http.ResponseWriter, status int, text string) bool {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"error":"`+text+`"}`)
		return true
	}
	s := serve(t, func(w http.ResponseWriter, q seen) bool {
		switch {
		case len(q.Input) > 3:
			return refuse(w, 413, "too many")
		case slices.ContainsFunc(q.Input, func(s string) bool { return len(s) > 40 }):
			return refuse(w, 400, "This model's maximum context length is 40 bytes")
		}
		return false
	})
	e, waits := embedder(t, s, nil)
	check(t, e, strings.Fields("a b c d e f g h i j")...)
	if len(waits.all) != 0 {
		t.Error(waits.all)
	}
	long := strings.Repeat("é", 50) + "end" // cut at 51 of 103 bytes, which is in the middle of a letter
	list, err := e.Embed(context.Background(), []string{"short", long, "x"})
	if err != nil || !slices.Equal(list[0], vectorOf("short")) || list[1][0] != 24 || !slices.Equal(list[2], vectorOf("x")) {
		t.Error(list, err)
	}
	e, _ = embedder(t, s, func(o *Options) { o.NoTruncate = true })
	if _, err := e.Embed(context.Background(), []string{"short", long}); !errors.Is(err, ErrTooLong) {
		t.Error(err)
	}
}

func TestWrongAnswers(t *testing.T) {
	for _, body := range []string{
		"", "nonsense", `{}`, `{"data":[]}`, `{"data":[{"index":0,"embedding":[1,2]}]}`,
		`{"data":[{"index":0,"embedding":[1,2]},{"index":0,"embedding":[1,2]}]}`,
		`{"data":[{"index":0,"embedding":[1,2]},{"index":2,"embedding":[1,2]}]}`,
		`{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1,2,3]}]}`,
		`{"data":[{"index":0,"embedding":[1,2]},{"index":1}]}`,
		`{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}`,
		`{"data":[{"index":0,"embedding":[1,1e99]},{"index":1,"embedding":[1,2]}]}`,
		`{"data":[{"index":0,"embedding":"AAAA"},{"index":1,"embedding":[1,2]}]}`,
		`{"embeddings":[[1,2],[3,4]]}`,
	} {
		s := serve(t, func(w http.ResponseWriter, _ seen) bool { _, _ = io.WriteString(w, body); return true })
		e, _ := embedder(t, s, nil)
		if list, err := e.Embed(context.Background(), []string{"a", "b"}); !errors.Is(err, ErrAnswer) || list != nil {
			t.Errorf("%s: %v, %v", body, list, err)
		}
		if n := len(s.requests()); n != 1 {
			t.Errorf("%s: asked %d times", body, n)
		}
	}
	s := serve(t, nil)
	e, _ := embedder(t, s, func(o *Options) { o.Dimensions = 3 })
	if _, err := e.Embed(context.Background(), []string{"a"}); !errors.Is(err, ErrAnswer) || !strings.Contains(err.Error(), "2 dimensions, not 3") {
		t.Error(err)
	}
	e, _ = embedder(t, s, func(o *Options) { o.MaxBytes = 10 })
	if _, err := e.Embed(context.Background(), []string{"a"}); !errors.Is(err, ErrAnswer) {
		t.Error(err)
	}
}

// Neither texts nor key are sent to the target of a redirect.
func TestRedirect(t *testing.T) {
	other := serve(t, nil)
	s := serve(t, func(w http.ResponseWriter, _ seen) bool {
		w.Header().Set("Location", other.URL)
		w.WriteHeader(http.StatusPermanentRedirect)
		return true
	})
	e, _ := embedder(t, s, nil)
	if _, err := e.Embed(context.Background(), []string{"a"}); err == nil || !strings.Contains(err.Error(), "moved to "+other.URL) || len(other.requests()) > 0 {
		t.Error(err)
	}
}

// A request that takes too long is abandoned, and the end of the caller's ctx ends all.
func TestTimeout(t *testing.T) {
	release := make(chan bool)
	s := serve(t, func(http.ResponseWriter, seen) bool { <-release; return false })
	defer close(release)
	e, waits := embedder(t, s, func(o *Options) { o.Timeout, o.Retries = 20*time.Millisecond, 1 })
	if _, err := e.Embed(context.Background(), []string{"a"}); !errors.Is(err, ErrReach) ||
		!strings.Contains(err.Error(), "no answer within 20ms (tried 2 times)") || len(waits.all) != 1 {
		t.Error(err)
	}
	e, _ = embedder(t, s, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := e.Embed(ctx, []string{"a"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestFromEnv(t *testing.T) {
	env := func(pairs ...string) func(string) string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return func(k string) string { return m[k] }
	}
	e, ok, err := FromEnv(env("VARVE_EMBED_URL", "https://api.openai.com/v1", "VARVE_EMBED_MODEL", "m", "OPENAI_API_KEY", "k", "VARVE_EMBED_DIMENSIONS", "256"))
	if err != nil || !ok || e.o.Key != "k" || e.o.Dimensions != 256 || e.Model() != "m" {
		t.Error(ok, err)
	}
	for _, url := range []string{"https://example.org/v1", "http://api.openai.com/v1", "https://api.openai.com.example.org"} {
		if e, _, err := FromEnv(env("VARVE_EMBED_URL", url, "VARVE_EMBED_MODEL", "m", "OPENAI_API_KEY", "k")); err != nil || e.o.Key != "" {
			t.Errorf("the key of OpenAI goes to %s, %v", url, err)
		}
	}
	if e, _, err := FromEnv(env("VARVE_EMBED_URL", "https://api.openai.com", "VARVE_EMBED_MODEL", "m", "OPENAI_API_KEY", "k", "VARVE_EMBED_KEY", "mine")); err != nil || e.o.Key != "mine" {
		t.Error(err)
	}
	if e, ok, err := FromEnv(env("OPENAI_API_KEY", "k")); e != nil || ok || err != nil {
		t.Error(e, ok, err)
	}
	for _, bad := range [][]string{
		{"VARVE_EMBED_URL", "http://x"}, {"VARVE_EMBED_URL", "x", "VARVE_EMBED_MODEL", "m"}, {"VARVE_EMBED_URL", "http://u:secret@ x/%zz", "VARVE_EMBED_MODEL", "m"},
		{"VARVE_EMBED_URL", "http://x", "VARVE_EMBED_MODEL", "m", "VARVE_EMBED_DIMENSIONS", "0"},
		{"VARVE_EMBED_URL", "ftp://x", "VARVE_EMBED_MODEL", "m"}, {"VARVE_EMBED_URL", "http://x", "VARVE_EMBED_MODEL", "m", "VARVE_EMBED_KEY", "a\nb"},
	} {
		if _, ok, err := FromEnv(env(bad...)); err == nil || ok || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
