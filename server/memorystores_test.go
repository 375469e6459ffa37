package server

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/memorystores"
	"github.com/varve-db/varve/memorystores/conformance"
)

// servingStores serves a folder of stores with the tokens "all" and "reader", whose names are their secrets.
func servingStores(t *testing.T, change func(*memorystores.Options)) (url, dir string) {
	t.Helper()
	dir = t.TempDir()
	file := filepath.Join(dir, "tokens.json")
	for _, k := range []Token{{Name: "all"}, {Name: "reader", ReadOnly: true}} {
		k.Sum = SumOf(k.Name)
		if err := AddToken(t.Context(), file, k); err != nil {
			t.Fatal(err)
		}
	}
	tokens, err := OpenTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	o := memorystores.Options{Caller: CallerOf}
	if change != nil {
		change(&o)
	}
	stores, err := memorystores.Open(filepath.Join(dir, "stores"), o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(nil, Options{Tokens: tokens, MemoryStores: stores})
	if err != nil {
		t.Fatal(err)
	}
	url, stop := listening(t, s)
	t.Cleanup(func() {
		stop()
		if err := stores.Close(); err != nil {
			t.Error(err)
		}
	})
	return url, dir
}

// listening serves on a free port until stop is called.
func listening(t *testing.T, s *Server) (url string, stop func()) {
	t.Helper()
	v := &served{t: t, s: s}
	return v.start()
}

// TestPageOfStore: a token for other stores than the one that is served may not use its page.
func TestPageOfStore(t *testing.T) {
	t.Parallel()
	st, err := varve.Open(t.Context(), t.TempDir(), &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	own, other := settings.StoreID+strings.Repeat("a", 32), settings.StoreID+strings.Repeat("b", 32)
	now := time.Now().UTC()
	if err := st.Admin().UpdateConfig(t.Context(), func(c *varve.Config) error {
		c.MemoryStore = &varve.MemoryStoreConfig{ID: own, Name: "own", CreatedAt: now, UpdatedAt: now}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	tokens, err := OpenTokens("", Token{Name: "own", Sum: SumOf("own"), Page: true, Stores: []string{own}},
		Token{Name: "other", Sum: SumOf("other"), Page: true, Stores: []string{other}},
		Token{Name: "all", Sum: SumOf("all"), Page: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(st, Options{Tokens: tokens, Page: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/page/x", streamPath} {
		for token, want := range map[string]int{"own": 200, "all": 200, "other": 403} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "http://127.0.0.1"+path, nil)
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			if s.Handler().ServeHTTP(w, r); w.Code != want {
				t.Errorf("%s of %s: %d %s, want %d", path, token, w.Code, w.Body, want)
			}
		}
	}
}

func TestMemoryStores(t *testing.T) {
	t.Parallel()
	url, _ := servingStores(t, nil)
	conformance.Run(t, url, "all")
}
