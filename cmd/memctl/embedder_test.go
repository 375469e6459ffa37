package main

import (
	"encoding/json"
	"hash/fnv"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// embedder [small]: a service in OpenAI's protocol, which the
// environment names from here on. What has words in common is near.
func embedder(ts *testscript.TestScript, neg bool, args []string) {
	dims := 64
	if len(args) > 0 && args[0] == "small" {
		dims = 32
	}
	s := embeddingService(dims)
	ts.Defer(s.Close)
	ts.Setenv("VARVE_EMBED_URL", s.URL)
	ts.Setenv("VARVE_EMBED_MODEL", "bag")
	ts.Setenv("VARVE_EMBED_KEY", "sk-secret")
}

// nonsense: a service that does not answer with vectors, which the environment names from here on.
func nonsense(ts *testscript.TestScript, neg bool, args []string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("starting")) }))
	ts.Defer(s.Close)
	ts.Setenv("VARVE_EMBED_URL", s.URL)
	ts.Setenv("VARVE_EMBED_MODEL", "bag")
}

func embeddingService(dims int) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || r.Header.Get("Authorization") != "Bearer sk-secret" {
			http.Error(w, `{"error":"who are you?"}`, http.StatusUnauthorized)
			return
		}
		var data []map[string]any
		for i, text := range q.Input {
			data = append(data, map[string]any{"index": i, "embedding": bag(text, dims)})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
}

// bag puts each word of a text into a place of its own, nearly.
func bag(text string, dims int) []float32 {
	v := make([]float32, dims)
	for _, w := range strings.Fields(strings.ToLower(text)) {
		h := fnv.New32a()
		_, _ = h.Write([]byte(w))
		v[h.Sum32()%uint32(dims)]++
	}
	var sum float64
	for _, x := range v {
		sum += float64(x * x)
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}
