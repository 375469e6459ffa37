package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/memorystores"
	"github.com/varve-db/varve/memorystores/conformance"
	"github.com/varve-db/varve/served"
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
	v := &site{t: t, s: s}
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
	s, err := New(served.Only(st), Options{Tokens: tokens,
		Page: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
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

// TestOtherStoreMeanwhile: a request whose token was checked for the store that was served then does not use the one
// that was put in its place meanwhile, and a request that listens ends.
func TestOtherStoreMeanwhile(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the folder of an open store cannot be removed")
	}
	dir := filepath.Join(t.TempDir(), "s")
	open := func(ctx context.Context) (*varve.Store, error) {
		return varve.Open(ctx, dir, &varve.Options{NoBackground: true})
	}
	st, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held := served.New(st, served.Options{Open: open})
	t.Cleanup(func() {
		held.End()
		_ = st.Close() // its folder was replaced
	})
	own, now := settings.StoreID+strings.Repeat("a", 32), time.Now().UTC()
	if err := st.Admin().UpdateConfig(t.Context(), func(c *varve.Config) error {
		c.MemoryStore = &varve.MemoryStoreConfig{ID: own, Name: "own", CreatedAt: now, UpdatedAt: now}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	tokens, err := OpenTokens("", Token{Name: "own", Sum: SumOf("own"), Page: true, Stores: []string{own}})
	if err != nil {
		t.Fatal(err)
	}
	listening, checked, exchanged := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s, err := New(held, Options{Tokens: tokens, Page: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == streamPath {
			close(listening)
			<-r.Context().Done()
			return
		}
		close(checked)
		<-exchanged
		err := held.Use(r.Context(), func(*varve.Store) error { return nil })
		if !errors.Is(err, varve.ErrReplaced) {
			t.Error("the other store was used:", err)
		}
		w.WriteHeader(http.StatusTeapot)
	})})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	ask := func(path string) (status int) {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://127.0.0.1"+path, nil)
		r.Header.Set("Authorization", "Bearer own")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w.Code
	}
	all.Go(func() { ask(streamPath) })
	<-listening
	all.Go(func() {
		if status := ask("/page/x"); status != http.StatusTeapot {
			t.Error(status)
		}
	})
	<-checked
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if status := ask("/readyz"); status != http.StatusOK {
		t.Error("ready:", status)
	}
	close(exchanged)
	all.Wait()
}

// mcpTo calls a method of MCP at a path.
func mcpTo(t *testing.T, url, token, method, params string) (status int, answer string) {
	t.Helper()
	v := &site{t: t, url: url}
	status, _, answer = v.do("POST", "", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`,
		append([]string{"Authorization: Bearer " + token}, mcpHeaders...)...)
	return status, answer
}

// TestMCPOfStores: agents use each store of a folder, as their tokens allow.
func TestMCPOfStores(t *testing.T) {
	t.Parallel()
	url, dir := servingStores(t, nil)
	v := &site{t: t, url: url}
	beta := []string{"x-api-key: all", "anthropic-beta: " + memorystores.Betas()[0]}
	create := func(name string) string {
		t.Helper()
		var o struct{ ID string }
		status, _, answer := v.do("POST", memorystores.Base, `{"name":"`+name+`"}`, beta...)
		if err := json.Unmarshal([]byte(answer), &o); err != nil || status != 200 {
			t.Fatal(status, answer)
		}
		return o.ID
	}
	a, b := create("a"), create("b")
	for _, k := range []Token{{Name: "one", Stores: []string{a}}, {Name: "two", Stores: []string{a, b}}} {
		k.Sum = SumOf(k.Name)
		if err := AddToken(t.Context(), filepath.Join(dir, "tokens.json"), k); err != nil {
			t.Fatal(err)
		}
	}
	call := func(status int, token, path, tool, args, says string) {
		t.Helper()
		got, answer := mcpTo(t, url+path, token, "tools/call", `{"name":"`+tool+`","arguments":`+args+`}`)
		if got != status || !strings.Contains(answer, says) {
			t.Errorf("%s %s %s %s: %d %s", token, path, tool, args, got, answer)
		}
	}
	call(200, "all", "/mcp/"+a, "remember", `{"text":"the gate is of oak"}`, "remembered")
	call(200, "one", "/mcp", "recall", `{"query":"gate"}`, "of oak")
	call(200, "one", "/mcp/"+a, "recall", `{"query":"gate"}`, "of oak")
	call(200, "reader", "/mcp/"+a, "recall", `{"query":"gate"}`, "of oak")
	call(200, "two", "/mcp/"+b, "recall", `{"query":"gate"}`, "nothing found")
	call(200, "reader", "/mcp/"+a, "remember", `{"text":"never"}`, "not found")
	call(400, "all", "/mcp", "recall", `{"query":"gate"}`, "/mcp/ID")
	call(400, "two", "/mcp", "recall", `{"query":"gate"}`, "/mcp/ID")
	call(404, "one", "/mcp/"+b, "recall", `{"query":"gate"}`, "no such memory store")
	call(404, "all", "/mcp/memstore_x", "recall", `{"query":"gate"}`, "no such memory store")
	call(404, "all", "/mcp/..%2f"+a, "recall", `{"query":"gate"}`, "")
	call(401, "none", "/mcp/"+a, "recall", `{"query":"gate"}`, "")
	// Many calls at once, of both.
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			call(200, "all", "/mcp/"+[]string{a, b}[i%2], "remember", `{"text":"note `+fmt.Sprint(i)+`"}`, "")
		})
	}
	all.Wait()
	// Another store in its place.
	at := filepath.Join(dir, "stores", a)
	if err := os.Rename(at, filepath.Join(dir, "away")); err != nil {
		t.Fatal(err)
	}
	call(404, "one", "/mcp", "recall", `{"query":"gate"}`, "no such memory store")
	if err := os.Rename(filepath.Join(dir, "away"), at); err != nil {
		t.Fatal(err)
	}
	call(200, "one", "/mcp", "recall", `{"query":"gate"}`, "of oak")
	// Archived, it is read only.
	if status, _, answer := v.do("POST", memorystores.Base+"/"+a+"/archive", "", beta...); status != 200 {
		t.Fatal(status, answer)
	}
	call(200, "all", "/mcp/"+a, "remember", `{"text":"never"}`, "not found")
	call(200, "all", "/mcp/"+a, "recall", `{"query":"gate"}`, "of oak")
	call(200, "all", "/mcp/"+b, "remember", `{"text":"the other one"}`, "remembered")
	if status, _, answer := v.do("DELETE", memorystores.Base+"/"+b, "", beta...); status != 200 {
		t.Fatal(status, answer)
	}
	call(404, "all", "/mcp/"+b, "recall", `{"query":"gate"}`, "no such memory store")
}

// TestSlowCallOfStores: a call whose body does not come keeps no store from being archived.
func TestSlowCallOfStores(t *testing.T) {
	t.Parallel()
	url, _ := servingStores(t, nil)
	v := &site{t: t, url: url}
	beta := []string{"x-api-key: all", "anthropic-beta: " + memorystores.Betas()[0]}
	var a struct{ ID string }
	status, _, answer := v.do("POST", memorystores.Base, `{"name":"a"}`, beta...)
	if err := json.Unmarshal([]byte(answer), &a); err != nil || status != 200 {
		t.Fatal(status, answer)
	}
	body, more := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url+"/mcp/"+a.ID, body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range append([]string{"Authorization: Bearer all"}, mcpHeaders...) {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	text := make(chan string)
	go func() {
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			text <- err.Error()
			return
		}
		b, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		text <- fmt.Sprint(string(b), err)
	}()
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"remember","arguments":{"text":"late"}}}`
	if _, err := io.WriteString(more, call[:40]); err != nil {
		t.Fatal(err)
	}
	if status, _, answer := v.do("POST", memorystores.Base+"/"+a.ID+"/archive", "", beta...); status != 200 {
		t.Error(status, answer)
	}
	if _, err := io.WriteString(more, call[40:]); err != nil {
		t.Fatal(err)
	}
	_ = more.Close()
	if got := <-text; !strings.Contains(got, "not found") {
		t.Error("a write to the archived store:", got)
	}
}

func TestMemoryStores(t *testing.T) {
	t.Parallel()
	url, _ := servingStores(t, nil)
	conformance.Run(t, url, "all")
}
