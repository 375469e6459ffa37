package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/mcpserver"
	"github.com/varve-db/varve/served"
	"github.com/varve-db/varve/server"
	"github.com/varve-db/varve/working"
)

// site is a store whose server has the page, with the tokens "anna" and "reader", whose names are their secrets, and
// "agent", which may not use the page.
type site struct {
	t    *testing.T
	st   *varve.Store
	held *served.Store
	web  *httptest.Server
	seen string // UUID of the store that the person saw; "": a client that does not send it
}

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func newSite(t *testing.T, change func(o *Options)) *site {
	t.Helper()
	st, err := varve.Open(t.Context(), t.TempDir(), &varve.Options{NoBackground: true,
		Clock:  func() time.Time { return now },
		Writer: &varve.Writer{Program: "test", Agent: "coder"}})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, st: st, seen: st.Admin().Stats().UUID}
	s.serve(st, change)
	t.Cleanup(func() {
		s.web.Close()
		s.held.End()
		if err := st.Close(); err != nil && !errors.Is(err, varve.ErrReplaced) { // by TestReplaced
			t.Error(err)
		}
	})
	return s
}

// serve serves a store, instead of the one that was served before.
func (s *site) serve(st *varve.Store, changes ...func(o *Options)) {
	t := s.t
	t.Helper()
	if s.web != nil {
		s.web.Close()
		s.held.End()
	}
	s.held = served.New(st, served.Options{Open: func(ctx context.Context) (*varve.Store, error) {
		return varve.Open(ctx, st.Admin().Stats().Dir, &varve.Options{NoBackground: true, MustExist: true})
	}})
	o := Options{Store: s.held, Clock: func() time.Time { return now }}
	for _, change := range changes {
		if change != nil {
			change(&o)
		}
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := server.OpenTokens("", server.Token{Name: "anna", Sum: server.SumOf("anna"), Page: true},
		server.Token{Name: "reader", Sum: server.SumOf("reader"), Page: true, ReadOnly: true},
		server.Token{Name: "agent", Sum: server.SumOf("agent")})
	if err != nil {
		t.Fatal(err)
	}
	web, err := server.New(s.held, server.Options{Tokens: tokens, Page: p, Logger: slog.New(slog.DiscardHandler),
		Tools: mcpserver.Options{Groups: mcpserver.DefaultGroups()}})
	if err != nil {
		t.Fatal(err)
	}
	s.web = httptest.NewServer(web.Handler())
}

// answer is what the server has answered.
type answer struct {
	status int
	header http.Header
	body   string
}

// said is what was done, as the answer says.
func (a answer) said() string {
	s, err := url.PathUnescape(a.header.Get("Varve-Said"))
	if err != nil {
		return err.Error()
	}
	return s
}

// do sends a request; pairs are the names and values of parameters.
func (s *site) do(token, method, path string, pairs ...string) answer {
	s.t.Helper()
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Add(pairs[i], pairs[i+1])
	}
	target, body := s.web.URL+path, io.Reader(nil)
	if method == http.MethodPost {
		body = strings.NewReader(q.Encode())
	} else if len(q) > 0 {
		target += "?" + q.Encode()
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, target, body)
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if s.seen != "" {
		req.Header.Set(storeHeader, s.seen)
	}
	res, err := s.web.Client().Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(b)}
}

func (s *site) get(path string, pairs ...string) answer {
	s.t.Helper()
	return s.do("anna", http.MethodGet, "/page/"+path, pairs...)
}

func (s *site) post(path string, pairs ...string) answer {
	s.t.Helper()
	return s.do("anna", http.MethodPost, "/page/"+path, pairs...)
}

func (s *site) put(m varve.Memory) varve.Memory {
	s.t.Helper()
	m, err := s.st.Put(s.t.Context(), m)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// The frame has nothing of the store and wants no token; everything else wants one that may use the page. No change is
// made by GET, nor with a token that may only read.
func TestRights(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	m := s.put(varve.Memory{ID: "a", Content: "the secret text"})
	for _, path := range []string{"/", "/static/app.js", "/static/app.css", "/static/icon.svg"} {
		a := s.do("", http.MethodGet, path)
		if a.status != http.StatusOK || strings.Contains(a.body, "secret") {
			t.Errorf("%s: %d", path, a.status)
		}
		if csp := a.header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") ||
			strings.Contains(csp, "unsafe") || a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %q", path, a.header)
		}
	}
	for _, path := range []string{"/page/list", "/page/memory?id=a", "/stream"} {
		for token, want := range map[string]int{"": http.StatusUnauthorized, "wrong": http.StatusUnauthorized,
			"agent": http.StatusForbidden} {
			if a := s.do(token, http.MethodGet, path); a.status != want || strings.Contains(a.body, "secret") {
				t.Errorf("%s as %q: %d, want %d", path, token, a.status, want)
			}
		}
	}
	changes := []string{"assembly-forget", "assembly-undelete", "assembly-restore",
		"edit", "new", "forget", "undelete", "restore", "purge", "undo", "forget-session",
		"quarantine-restore",
		"quarantine-drop", "checkpoint-restore", "note-edit", "note-restore", "note-forget"}
	for _, c := range changes {
		if a := s.do("reader", http.MethodPost, "/page/"+c, "id", "a", "version", number(m.Version), "confirm",
			"purge"); a.status != http.StatusForbidden {
			t.Errorf("%s with a token that may only read: %d", c, a.status)
		}
		if strings.Contains("edit purge undo note-edit", c) { // these show something
			continue
		}
		if a := s.get(c, "id", "a"); a.status != http.StatusMethodNotAllowed && a.status != http.StatusNotFound {
			t.Errorf("GET %s: %d", c, a.status)
		}
	}
	if a := s.do("reader", http.MethodPost, "/page/select", "id", "a", "what",
		"forget"); a.status != http.StatusForbidden {
		t.Errorf("select with a token that may only read: %d", a.status)
	}
	if got, err := s.st.Get(t.Context(), "a"); err != nil || got.Version != m.Version {
		t.Errorf("it was changed: %v, %v", got, err)
	}
	for _, v := range []string{"list", "memory?id=a", "purge?id=a", "log", "sessions"} {
		a := s.do("reader", http.MethodGet, "/page/"+v)
		if a.status != http.StatusOK ||
			regexp.MustCompile(`<button[^>]*>[^E]|action="/page/[^s]|checkbox`).MatchString(a.body) {
			t.Errorf("%s shows buttons to a reader: %d %s", v, a.status, a.body)
		}
	}
}

// A page of another site gets nothing, but a person may follow a link to the frame.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for _, x := range []struct {
		path, method string
		header       []string
		want         int
	}{
		{"/", "GET", []string{"Host", "evil.example"}, 403},
		{"/page/list", "GET", []string{"Host", "evil.example"}, 403},
		{"/page/list", "GET", []string{"Origin", "http://evil.example"}, 403},
		{"/page/forget", "POST", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"/page/list", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate",
			"Sec-Fetch-Dest", "document"}, 403},
		{"/", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest",
			"document"}, 200},
		{"/", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest",
			"iframe"}, 403},
		{"/", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"/page/list", "GET", []string{"Sec-Fetch-Site", "same-origin"}, 200},
	} {
		req, err := http.NewRequestWithContext(t.Context(), x.method, s.web.URL+x.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer anna")
		for i := 0; i < len(x.header); i += 2 {
			if x.header[i] == "Host" {
				req.Host = x.header[i+1]
			}
			req.Header.Set(x.header[i], x.header[i+1])
		}
		res, err := s.web.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != x.want {
			t.Errorf("%s %s %q: %d, want %d", x.method, x.path, x.header, res.StatusCode, x.want)
		}
	}
}

// An edit is saved as the version that the person has read, or not at all.
func TestEdit(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	m := s.put(varve.Memory{ID: "a", Content: "one two three", Metadata: map[string]any{"n": 1}})
	if a := s.get("edit", "id", "a"); !strings.Contains(a.body, `value="`+number(m.Version)+`"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	a := s.post("edit", "id", "a", "version", number(m.Version), "content", "one\r\ntwo", "metadata",
		`{"n": 1, "big": 12345678901234567890}`)
	if a.status != http.StatusOK || !strings.HasPrefix(a.said(), "Saved as version") ||
		a.header.Get("Varve-Go") != "#/memory?id=a" {
		t.Fatalf("%+v", a)
	}
	got, err := s.st.Get(t.Context(), "a")
	if err != nil || got.Content != "one\ntwo" || valueText(got.Metadata["big"]) != "12345678901234567890" {
		t.Errorf("%+v, %v", got, err)
	}
	for v, err := range s.st.History(t.Context(), "a") {
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]string{true: "coder", false: "anna"}[v.LSN == m.Version]; v.Writer.Name() != want {
			t.Errorf("version %d by %q, want %q", v.LSN, v.Writer.Name(), want)
		}
	}
	a = s.post("edit", "id", "a", "version", number(m.Version), "content", "mine", "metadata", `{}`)
	if a.status != http.StatusConflict || !strings.Contains(a.body,
		"<textarea name=\"content\" rows=\"12\" data-focus>\nmine</textarea>") ||
		!strings.Contains(a.body, "anna has changed the memory") || !strings.Contains(a.body,
		`value="`+number(got.Version)+`"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, bad := range []string{`{`, `[]`, `{} {}`, `null x`} {
		if a := s.post("edit", "id", "a", "version", number(got.Version), "content", "x", "metadata",
			bad); a.status != http.StatusBadRequest ||
			!strings.Contains(a.body, "Not saved") {
			t.Errorf("metadata %q: %d", bad, a.status)
		}
	}
	if a := s.post("edit", "id", "a", "version", "x", "content", "x", "metadata",
		"{}"); a.status != http.StatusBadRequest {
		t.Errorf("%d", a.status)
	}
	if a := s.post("new", "content", "fresh", "metadata", "{}"); a.said() != "Remembered" {
		t.Errorf("%+v", a)
	}
	if a := s.post("new", "content", " ", "metadata", "{}"); a.status != http.StatusBadRequest {
		t.Errorf("%+v", a)
	}
}

// Forget can be taken back; purge needs its word, and cannot.
func TestForgetAndPurge(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	m := s.put(varve.Memory{ID: "a", Content: "first"})
	second := s.put(varve.Memory{ID: "a", Content: "second"})
	if a := s.post("forget", "id", "a", "version", number(m.Version)); a.status != http.StatusConflict {
		t.Errorf("a version that was not seen was forgotten: %+v", a)
	}
	if a := s.post("forget", "id", "a", "version", number(second.Version)); !strings.HasPrefix(a.said(),
		"Forgotten") {
		t.Errorf("%+v", a)
	}
	if a := s.get("memory", "id", "a"); a.status != http.StatusOK || !strings.Contains(a.body, "Bring back") ||
		!strings.Contains(a.body, "second") {
		t.Errorf("%+v", a)
	}
	if a := s.post("undelete", "id", "a"); a.said() != "Brought back" {
		t.Errorf("%+v", a)
	}
	if a := s.post("restore", "id", "a", "version", number(m.Version)); !strings.HasPrefix(a.said(),
		"Restored version") {
		t.Errorf("%+v", a)
	}
	if a := s.get("diff", "id", "a", "from", number(m.Version), "to",
		number(second.Version)); !strings.Contains(a.body, "<del>first</del><ins>second</ins>") {
		t.Errorf("%+v", a)
	}
	if a := s.get("purge", "id", "a"); !strings.Contains(a.body, "4 versions") && !strings.Contains(a.body,
		"3 versions") {
		t.Errorf("%+v", a)
	}
	if a := s.post("purge", "id", "a"); a.status != http.StatusBadRequest {
		t.Errorf("purged without the word: %+v", a)
	}
	got, err := s.st.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"", "0", number(second.Version)} {
		a := s.post("purge", "id", "a", "version", version, "confirm", "purge")
		if a.status != http.StatusConflict || !strings.Contains(a.body, "changed since the plan was shown") ||
			!strings.Contains(a.body, `name="version" value="`+number(got.Version)+`"`) {
			t.Errorf("purged what was not shown: %+v", a)
		}
	}
	a := s.post("purge", "id", "a", "version", number(got.Version), "confirm", "purge")
	if a.status != http.StatusOK || !strings.Contains(a.body, "1 memory was deleted") {
		t.Errorf("%+v", a)
	}
	if a := s.get("memory", "id", "a"); a.status != http.StatusNotFound {
		t.Errorf("%+v", a)
	}
}

// A search finds words that are not complete, says why, and is by meaning where there is an embedder.
func TestSearch(t *testing.T) {
	t.Parallel()
	failing := errors.New("the service is <down>")
	var fail bool
	var asked int
	s := newSite(t, func(o *Options) {
		o.EmbedModel = "m"
		o.Embed = func(context.Context, []string) ([][]float32, error) {
			if asked++; fail {
				return nil, failing
			}
			return [][]float32{{1, 0}}, nil
		}
	})
	s.put(varve.Memory{ID: "a", Content: "took the ferry to Como", Embedding: []float32{1, 0},
		Metadata: map[string]any{"tags": []any{"x"}}})
	s.put(varve.Memory{ID: "b", Content: "drinks tea", Embedding: []float32{0, 1}})
	for _, x := range []struct{ q, typed, want string }{{"ferries", "", "in content"}, {"fer", "1",
		"<mark>ferry</mark>"}} {
		a := s.get("list", "q", x.q, "typed", x.typed, "mode", "words")
		if !strings.Contains(a.body, x.want) || strings.Contains(a.body, "drinks") {
			t.Errorf("%q: %s", x.q, a.body)
		}
	}
	if a := s.get("list", "q", "boat", "typed", "1"); asked != 0 || strings.Contains(a.body, "similar meaning") {
		t.Errorf("asked %d times for what is not yet typed: %s", asked, a.body)
	}
	if a := s.get("list", "q", "boat", "mode", "meaning"); !strings.Contains(a.body, "ferry") ||
		!strings.Contains(a.body, "similar meaning") {
		t.Errorf("%s", a.body)
	}
	fail = true
	if a := s.get("list", "q", "tea"); !strings.Contains(a.body, "the service is &lt;down&gt;") ||
		!strings.Contains(a.body, "drinks") {
		t.Errorf("%s", a.body)
	}
	for _, x := range [][2]string{{"tag", "x"}, {"by", "coder"}, {"since", "yesterday"}, {"where", "tags=x"}} {
		if a := s.get("list", x[0], x[1]); a.status != http.StatusOK || !strings.Contains(a.body, "ferry") {
			t.Errorf("%q: %d %s", x, a.status, a.body)
		}
	}
	for _, x := range [][2]string{{"since", "never ever"}, {"where", "="}, {"sort", "beauty"}} {
		if a := s.get("list", x[0], x[1]); a.status != http.StatusBadRequest || !strings.Contains(a.body,
			"for example") && !strings.Contains(a.body, "another order") {
			t.Errorf("%q: %d %s", x, a.status, a.body)
		}
	}
	if a := s.get("list", "q", "-"); a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// All pages of a list together have each memory once.
func TestPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	const n = 2*MostRows + 7
	for i := range n {
		s.put(varve.Memory{ID: "m" + strconv.Itoa(i), Content: "text"})
	}
	for _, start := range []string{"list", "list?q=text", "list?sort=id"} {
		seen := map[string]bool{}
		for at := start; at != ""; {
			a := s.do("anna", http.MethodGet, "/page/"+at)
			for _, m := range regexp.MustCompile(`data-id="([^"]*)"`).FindAllStringSubmatch(a.body, -1) {
				if seen[m[1]] {
					t.Errorf("%s: %s twice", start, m[1])
				}
				seen[m[1]] = true
			}
			next := regexp.MustCompile(`href="#/([^"]*)">More`).FindStringSubmatch(a.body)
			if at = ""; next != nil {
				at = html.UnescapeString(next[1])
			}
		}
		if len(seen) != n {
			t.Errorf("%s: %d of %d", start, len(seen), n)
		}
	}
}

// A text of many megabytes is cut, and not edited here.
func TestLarge(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.put(varve.Memory{ID: "big", Content: strings.Repeat("<b>word</b> ", 1<<20)})
	if a := s.get("memory", "id", "big"); a.status != http.StatusOK || len(a.body) > 4*MostShown ||
		!strings.Contains(a.body, "Show all of the 12 MiB") ||
		strings.Contains(a.body, ">Edit<") {
		t.Errorf("%d, %d bytes", a.status, len(a.body))
	}
	if a := s.get("list"); len(a.body) > 8<<10 {
		t.Errorf("%d bytes", len(a.body))
	}
	if a := s.get("edit", "id", "big"); a.status != http.StatusRequestEntityTooLarge || !strings.Contains(a.body,
		"memctl edit") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.post("new", "content", strings.Repeat("x", mostBody), "metadata",
		"{}"); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("%d", a.status)
	}
}

// The stream has a line for each change from its beginning on.
func TestStream(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.web.URL+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer reader")
	res, err := s.web.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	read := make([]byte, 4096)
	if n, err := res.Body.Read(read); err != nil || string(read[:n]) != "{\"beat\":true}\n" {
		t.Fatalf("%q, %v", read[:n], err)
	}
	got := make(chan string)
	go func() {
		n, _ := res.Body.Read(read)
		got <- string(read[:n])
	}()
	for { // the watch begins after the first line
		s.put(varve.Memory{ID: "a", Content: "new"})
		select {
		case line := <-got:
			if !strings.Contains(line, `"kind":"memory","id":"a","by":"coder"`) {
				t.Errorf("%q", line)
			}
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Notes are written, compared and restored; HTML in them is text.
func TestNotes(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	text := "# T\n\n<script>x</script>\n\na <b>b</b> [n](other.md) [o](https://e.example/?a=\"b) [j](javascript:x) " +
		"[p](//e.example) ![i](/up.png)\n\n<div onclick=x>\n\n<https://auto.example>\n"
	if a := s.post("note-edit", "new", "1", "path", "d/a.md", "content", text, "version",
		"0"); !strings.HasPrefix(a.said(), "Saved") {
		t.Fatalf("%+v", a)
	}
	a := s.get("note", "path", "d/a.md")
	for _, want := range []string{"<h2>T</h2>", "&lt;script&gt;", `href="#/note?path=d%2Fother.md"`,
		`data-out="https://e.example/?a=&quot;b"`,
		`<a class="dead">j</a>`, `<a class="dead">p</a>`, `href="#/note?path=up.png">image: i</a>`,
		`data-out="https://auto.example"`, "&lt;div onclick"} {
		if !strings.Contains(a.body, want) {
			t.Errorf("no %q in %s", want, a.body)
		}
	}
	if regexp.MustCompile(`<script|<div onclick|<img|href="(http|javascript|//)`).MatchString(a.body) {
		t.Errorf("%s", a.body)
	}
	if a := s.post("note-edit", "new", "1", "path", "d/a.md", "content", "x", "version",
		"0"); a.status != http.StatusConflict ||
		!strings.Contains(a.body, "choose another") {
		t.Errorf("%+v", a)
	}
	n, err := s.st.Notes().Read(t.Context(), "d/a.md")
	if err != nil {
		t.Fatal(err)
	}
	if a := s.post("note-forget", "path", "d/a.md", "version", number(n.Version)); !strings.HasPrefix(a.said(),
		"Forgotten") {
		t.Errorf("%+v", a)
	}
	if a := s.get("note", "path", "d/a.md"); !strings.Contains(a.body, "deleted") || !strings.Contains(a.body,
		"restore") {
		t.Errorf("%+v", a)
	}
	if a := s.post("note-restore", "path", "d/a.md", "version", number(n.Version)); !strings.HasPrefix(a.said(),
		"Restored") {
		t.Errorf("%+v", a)
	}
}

// A commit is undone after its plan was shown, and what others have built upon stays.
func TestUndo(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	m := s.put(varve.Memory{ID: "a", Content: "by the agent"})
	s.put(varve.Memory{ID: "b", Content: "by the agent"})
	if a := s.post("edit", "id", "a", "version", number(m.Version), "content", "by anna", "metadata",
		"{}"); a.status != 200 {
		t.Fatal(a)
	}
	if a := s.get("undo", "run", "coder"); !strings.Contains(a.body, "1 change stays") || !strings.Contains(a.body,
		"Undo the rest") {
		t.Errorf("%+v", a)
	}
	if a := s.post("undo", "run", "coder"); a.status != http.StatusConflict {
		t.Errorf("%+v", a)
	}
	if a := s.post("undo", "run", "coder", "partial", "1"); a.said() != "Took back 1 change" ||
		!strings.Contains(a.body, "Undone in part") || !strings.Contains(a.body, "1 change stays") ||
		strings.Contains(a.body, ">Undo the rest<") {
		t.Errorf("%+v", a)
	}
	if a := s.get("undo"); a.status != http.StatusBadRequest {
		t.Errorf("%+v", a)
	}
}

// A view of a scope that does not exist creates none: a GET commits nothing, whatever the token may do.
func TestUnknownScope(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	home := s.st.Working().Home()
	for range 2 { // the second view must not find it
		before := s.st.Admin().Commits()
		for _, token := range []string{"reader", "anna"} {
			for _, view := range []string{"scope", "checkpoint"} {
				if a := s.do(token, http.MethodGet, "/page/"+view, "key", "session:none", "id",
					"x"); a.status != http.StatusNotFound {
					t.Errorf("%s as %s: %d %s", view, token, a.status, a.body)
				}
			}
			s.do(token, http.MethodGet, "/page/working")
		}
		s.post("checkpoint-restore", "key", "session:none", "id", "x")
		if n := s.st.Admin().Commits(); n != before {
			t.Errorf("%d commits by views", n-before)
		}
	}
	for scope := range home.Scopes(t.Context()) {
		t.Errorf("there is the scope %s", scope.Key())
	}
	m, err := s.st.Working().Open(t.Context(), working.Scope{Session: "there"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Set(t.Context(), "a", 1, working.Expires(time.Hour)); err != nil {
		t.Fatal(err)
	}
	before := s.st.Admin().Commits()
	if a := s.get("scope", "key", m.Scope().Key()); !strings.Contains(a.body, "expires in 1h0m0s") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if n := s.st.Admin().Commits(); n != before {
		t.Errorf("%d commits by the view of a scope that exists", n-before)
	}
}

// A text that nests deeper or is longer than the limits is shown as text.
func TestNested(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for name, text := range map[string]string{
		"long":    strings.Repeat("a line of text\n", 20<<10),
		"quotes":  strings.Repeat(">", 200<<10),
		"spaced":  strings.Repeat("> ", 100<<10),
		"lists":   strings.Repeat("- ", 100<<10),
		"numbers": strings.Repeat("1. ", 60<<10),
		"mixed":   "text\n" + strings.Repeat(">- 1) ", 100),
	} {
		if _, err := s.st.Notes().Write(t.Context(), name+".md", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if a := s.get("note", "path", name+".md", "all", "1"); a.status != http.StatusOK ||
			strings.Contains(a.body, `class="md"`) || !strings.Contains(a.body, html.EscapeString(text[:50])) {
			t.Errorf("%s: %d, %d bytes", name, a.status, len(a.body))
		}
	}
	for _, text := range []string{"# T\n" + strings.Repeat("-", 500), strings.Repeat("> ", 50) + "a",
		strings.Repeat("1", 500), strings.Repeat("[", 60<<10), strings.Repeat("*a **b ", 20<<10)} {
		if !renderable(text) {
			t.Errorf("not rendered: %.50q", text)
		}
		if _, err := markdown(text, "", lines{}); err != nil {
			t.Error(err)
		}
	}
}

// A form whose button is unknown, such as one that a key has sent, changes nothing. Too many memories are refused.
func TestSelected(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	m := s.put(varve.Memory{ID: "a", Content: "text"})
	for _, what := range []string{"", "all"} {
		if a := s.post("select", "id", "a", "what", what); a.status != http.StatusBadRequest ||
			a.header.Get("Varve-Error") == "" {
			t.Errorf("%q: %+v", what, a)
		}
	}
	many := []string{"confirm", "purge"}
	for range mostSelected + 1 {
		many = append(many, "id", "a", "version", number(m.Version))
	}
	for _, path := range []string{"purge", "forget"} {
		if a := s.post(path, many...); a.status != http.StatusBadRequest {
			t.Errorf("%s: %+v", path, a)
		}
	}
	if got, err := s.st.Get(t.Context(), "a"); err != nil || got.Version != m.Version {
		t.Errorf("it was changed: %v, %v", got, err)
	}
	if a := s.post("select", "id", "a", "what", "forget"); !strings.HasPrefix(a.said(), "Forgot 1 memory") {
		t.Errorf("%+v", a)
	}
}

// A page whose host does not check tokens answers nothing of the store. A reader gets no form.
func TestNoToken(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.put(varve.Memory{ID: "a", Content: "the secret text"})
	p, err := New(Options{Store: served.Only(s.st)})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range [][2]string{{"GET", "/page/list"}, {"POST", "/page/forget?id=a"}, {"GET", "/stream"}} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // a stream that begins does not end
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequestWithContext(ctx, x[0], x[1], nil))
		cancel()
		if w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s: %d %s", x, w.Code, w.Body)
		}
	}
	if _, err := s.st.Get(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"edit?id=a", "edit", "note-edit", "note-edit?path=a.md"} {
		if a := s.do("reader", http.MethodGet, "/page/"+path); a.status != http.StatusForbidden ||
			strings.Contains(a.body, "<textarea") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

// When the folder of the store is removed, no view and no stream shows what it had. When another store is in its place,
// views show that one, and a change that was begun on the first one is not made there.
func TestReplaced(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("open files cannot be renamed")
	}
	s := newSite(t, nil)
	s.put(varve.Memory{ID: "a", Content: "the text"})
	s.put(varve.Memory{ID: "b", Content: "forgotten in its own store"})
	s.seen = s.get("list").header.Get(storeHeader)
	if a := s.post("forget", "id", "b"); a.status != http.StatusOK || s.seen != s.st.Admin().Stats().UUID {
		t.Errorf("a change in the store %q that was seen: %+v", s.seen, a)
	}
	dir := s.st.Admin().Stats().Dir
	rename := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	rename(dir, dir+"-away")
	for _, path := range []string{"/page/list", "/page/memory?id=a", "/page/edit?id=a", "/stream"} {
		if a := s.do("reader", http.MethodGet, path); a.status != http.StatusServiceUnavailable ||
			!strings.Contains(a.body, "backup") || strings.Contains(a.body, "the text") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	other, err := varve.Open(t.Context(), dir, nil)
	if err == nil {
		_, err = other.Put(t.Context(), varve.Memory{ID: "a", Content: "of the other store"})
	}
	if err == nil {
		err = other.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if a := s.post("forget", "id", "a"); a.status != http.StatusServiceUnavailable {
		t.Errorf("a change that was begun on the first store: %+v", a)
	}
	for _, path := range []string{"/page/list", "/page/memory?id=a"} {
		if a := s.do("reader", http.MethodGet, path); a.status != http.StatusOK ||
			!strings.Contains(a.body, "of the other store") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	// Views have exchanged the store meanwhile; the form is of the first one.
	if a := s.post("forget", "id", "a"); a.status != http.StatusServiceUnavailable ||
		!strings.Contains(a.header.Get("Varve-Error"), "nothing%20was%20changed") || a.header.Get(storeHeader) != "" {
		t.Errorf("a change of what was seen in the first store: %+v", a)
	}
	if s.seen = s.get("memory", "id", "a").header.Get(storeHeader); s.seen == s.st.Admin().Stats().UUID {
		t.Error("the view does not name the other store")
	}
	if a := s.post("forget", "id", "a"); a.status != http.StatusOK {
		t.Errorf("a change of what was seen in the other store: %+v", a)
	}
}

// A change that does not name its store is refused, and says what to do.
func TestUnnamedStore(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.put(varve.Memory{ID: "a", Content: "the text"})
	s.seen = ""
	if a := s.post("forget", "id", "a"); a.status != http.StatusPreconditionRequired ||
		!strings.Contains(a.header.Get("Varve-Error"), "load%20the%20page%20again") ||
		!strings.Contains(a.body, storeHeader) {
		t.Errorf("%d %s %s", a.status, a.header, a.body)
	}
	if _, err := s.st.Get(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if s.seen = s.get("memory", "id", "a").header.Get(storeHeader); s.seen == "" {
		t.Fatal("the view does not name its store")
	}
	if a := s.post("forget", "id", "a"); a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A memory that has expired and is not yet deleted is called expired.
func TestExpired(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.put(varve.Memory{ID: "a", Content: "the text", ExpiresAt: now.Add(-time.Hour)})
	a := s.get("memory", "id", "a")
	if a.status != http.StatusOK || !strings.Contains(a.body, `<span class="bad">expired</span>`) ||
		strings.Contains(a.body, ">deleted<") || strings.Contains(a.body, "Bring back") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A file in quarantine is dropped after its word was repeated.
func TestDrop(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for _, word := range []string{"", "purge"} {
		if a := s.post("quarantine-drop", "name", "none", "confirm", word); a.status != http.StatusBadRequest {
			t.Errorf("%q: %+v", word, a)
		}
	}
	if a := s.post("quarantine-drop", "name", "none", "confirm", "drop"); a.status == http.StatusOK ||
		strings.Contains(a.body, "was not typed as confirmation") {
		t.Errorf("%+v", a)
	}
}

// An undo that is interrupted between two of its commits is not reported as done, and can be continued.
func TestUndoInterrupted(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	plan := &varve.UndoPlan{UndoOptions: varve.UndoOptions{Run: "coder", Before: 7}, Commits: 2, Done: 1,
		Changes: []varve.UndoChange{{Kind: "memory", ID: "a"}, {Kind: "note", ID: "n.md"}}}
	p, err := New(Options{Store: served.Only(s.st)})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	p.write(w, &request{st: s.st}, undoneInPart(plan, varve.ErrDiskFull, "Took back 1 change"))
	for _, want := range []string{"The undo was interrupted", "free space on the disk", ">Continue<", `value="coder"`,
		`name="before" value="7"`, `href="#/note?path=n.md"`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %q in %s", want, w.Body)
		}
	}
	if w.Code != http.StatusInsufficientStorage {
		t.Errorf("%d", w.Code)
	}
}

// One search finds memories and places in notes, and leads to the place.
func TestFoundInNotes(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.put(varve.Memory{ID: "a", Content: "took the ferry to Como", Metadata: map[string]any{"tags": []any{"x"}}})
	text := "---\ntags: [y]\n---\n# Lake <b>\n\nfirst\n\n## Boats\n\nThe ferry leaves at nine.\n\n" +
		"## Rest\n\n" + strings.Repeat("filler\n\n", 20_000) + "## Far\r\n\r\nThe zeppelin is far.\r\n"
	for _, path := range []string{"trips/lake.md", "lake.txt"} {
		if _, err := s.st.Notes().Write(t.Context(), path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	a := s.get("list", "q", "ferry")
	for _, want := range []string{`data-id="a"`, "trips/lake.md:8-10", "Lake &lt;b&gt; › Boats",
		`href="#/note?lines=8-10&amp;path=trips%2Flake.md"`, "<mark>ferry</mark>"} {
		if !strings.Contains(a.body, want) {
			t.Errorf("no %q in %s", want, a.body)
		}
	}
	if n := strings.Count(a.body, `type="checkbox" name="id`); n != 1 {
		t.Errorf("%d rows can be marked", n)
	}
	for kind, want := range map[string][2]bool{"memory": {true, false}, "note": {false, true}} {
		a := s.get("list", "q", "ferry", "kind", kind)
		if got := [2]bool{strings.Contains(a.body, `data-id="a"`), strings.Contains(a.body, "lake.md:")}; got != want {
			t.Errorf("%s: %v", kind, got)
		}
	}
	if a := s.get("list", "q", "ferry", "tag", "x"); strings.Contains(a.body, "lake.md") ||
		!strings.Contains(a.body, `data-id="a"`) {
		t.Errorf("%s", a.body)
	}
	a = s.get("note", "path", "trips/lake.md", "lines", "8-10")
	if !strings.Contains(a.body, `class="here" id="place" tabindex="-1">Boats</h3>`) ||
		!strings.Contains(a.body, `<p class="here">The ferry leaves at nine.</p>`) ||
		strings.Contains(a.body, `<p class="here">first`) || !strings.Contains(a.body, "tags: [y]") {
		t.Errorf("%.2000s", a.body)
	}
	a = s.get("list", "q", "zeppelin")
	at := regexp.MustCompile(`href="#/(note\?[^"]*)"`).FindAllStringSubmatch(a.body, -1)
	if len(at) != 2 {
		t.Fatalf("%s", a.body)
	}
	for _, m := range at {
		a := s.do("anna", http.MethodGet, "/page/"+html.UnescapeString(m[1]))
		if !strings.Contains(a.body, "The zeppelin is far.") || !strings.Contains(a.body, `id="place"`) ||
			len(a.body) > 4*MostShown || !strings.Contains(a.body, "Show the beginning") ||
			strings.Contains(a.body, `\u000d`) {
			t.Errorf("%s: %d, %d bytes, %.3000s", m[1], a.status, len(a.body), a.body)
		}
	}
	for _, bad := range []string{"0", "-1", "9-3", "x", "99999999999999999999", "5-x", "1000000-1000001"} {
		if a := s.get("note", "path", "trips/lake.md", "lines", bad); a.status != http.StatusOK {
			t.Errorf("lines %s: %d", bad, a.status)
		}
	}
}

// exportedLines returns the lines of an export, and the last line, which counts.
func exportedLines(t *testing.T, a answer) (lines []string, end exported) {
	t.Helper()
	lines = strings.Split(strings.TrimSuffix(a.body, "\n"), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &end); err != nil || a.header.Get("Varve-File") == "" {
		t.Fatalf("%v: %+v", err, a)
	}
	return lines[:len(lines)-1], end
}

// What is shown is exported: one document as it is, and all of a list, not only its first page.
func TestExport(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	const n = 2*MostRows + 7
	for i := range n {
		s.put(varve.Memory{ID: "m" + strconv.Itoa(i), Content: "text\nof two lines",
			Metadata: map[string]any{"session_id": "s" + strconv.Itoa(i%2), "big": json.Number("12345678901234567890")}})
	}
	if _, err := s.st.Notes().Write(t.Context(), "d/ü.md", []byte("text\r\n\x00")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.st.Notes().Write(t.Context(), "d/a.md", []byte("text")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.st.Assemblies().Put(t.Context(), varve.Assembly{ID: "g", Name: "G",
		MemoryIDs: []string{"m1"}}); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		params []string
		want   int
	}{{nil, n}, {[]string{"session", "s1"}, n / 2}, {[]string{"q", "text"}, n}, {[]string{"kind", "assembly"}, 1}} {
		lines, end := exportedLines(t, s.do("reader", http.MethodGet, "/page/export",
			append([]string{"of", "list"}, x.params...)...))
		if len(lines) != x.want || end.Exported != x.want || end.Missing != 0 || end.More {
			t.Errorf("%q: %d lines, %+v", x.params, len(lines), end)
		}
		for _, l := range lines {
			if !json.Valid([]byte(l)) || x.want == n && !strings.Contains(l, "12345678901234567890") {
				t.Fatalf("%q: %s", x.params, l)
			}
		}
		if x.params != nil && x.params[0] == "q" && end.Notes != 1 {
			t.Errorf("%+v", end)
		}
	}
	if a := s.get("export", "of", "note", "path", "d/ü.md"); a.body != "text\r\n\x00" ||
		a.header.Get("Varve-File") != "%C3%BC.md" {
		t.Errorf("%+v", a)
	}
	if a := s.get("export", "of", "memory", "id", "m1"); !json.Valid([]byte(a.body)) ||
		strings.Count(a.body, "\n") != 1 || a.header.Get("Content-Length") == "" {
		t.Errorf("%+v", a)
	}
	if a := s.get("export", "of", "assembly", "id", "g"); !strings.Contains(a.body, `"G"`) {
		t.Errorf("%+v", a)
	}
	for _, of := range []string{"memory", "note", "assembly"} {
		if a := s.get("export", "of", of, "id", "none", "path", "none"); a.status != http.StatusNotFound ||
			a.header.Get("Varve-File") != "" || a.header.Get("Varve-Error") == "" {
			t.Errorf("%s: %+v", of, a)
		}
	}
	if a := s.get("export", "of", "list", "where", "="); a.status != http.StatusBadRequest ||
		a.header.Get("Varve-Error") == "" {
		t.Errorf("%+v", a)
	}
	for token, want := range map[string]int{"": 401, "agent": 403} {
		if a := s.do(token, http.MethodGet, "/page/export", "of", "list"); a.status != want {
			t.Errorf("%q: %d", token, a.status)
		}
	}
}

// A note and an assembly are forgotten, brought back and purged as a memory is.
func TestPurgeOfOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.put(varve.Memory{ID: "m", Content: "member"})
	if _, err := s.st.Notes().Write(t.Context(), "d/a.md", []byte("note text")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.st.Assemblies().Put(t.Context(), varve.Assembly{ID: "g", Name: "group text",
			MemoryIDs: []string{"m"}}); err != nil {
			t.Fatal(err)
		}
	}
	do := func(view []string, action string, more ...string) answer {
		t.Helper()
		a := s.post(action, append(form(t, s.get(view[0], view[1:]...).body, "/page/"+action), more...)...)
		if a.status != http.StatusOK {
			t.Fatalf("%s: %+v", action, a)
		}
		return a
	}
	group, note := []string{"assembly", "id", "g"}, []string{"note", "path", "d/a.md"}
	do(group, "assembly-forget")
	if _, err := s.st.Assemblies().Get(t.Context(), "g"); !errors.Is(err, varve.ErrNotFound) {
		t.Error(err)
	}
	do(group, "assembly-undelete")
	a, err := s.st.Assemblies().Update(t.Context(), "g", func(a *varve.Assembly) error { a.Name = "other"; return nil })
	if err != nil {
		t.Fatal(err)
	}
	do(group, "assembly-restore")
	if a, err = s.st.Assemblies().Get(t.Context(), "g"); err != nil || a.Name != "group text" {
		t.Errorf("%q, %v", a.Name, err)
	}
	do(note, "note-forget")
	do(note, "note-restore") // Bring back
	if n, err := s.st.Notes().Read(t.Context(), "d/a.md"); err != nil || string(n.Content) != "note text" {
		t.Errorf("%q, %v", n.Content, err)
	}
	for _, x := range []struct{ kind, id, text string }{{"note", "d/a.md", "note text"},
		{"assembly", "g", "group text"}} {
		plan := s.get("purge", "kind", x.kind, "id", x.id)
		if !strings.Contains(plan.body, x.text) || !strings.Contains(plan.body, "Purge 1 "+x.kind+"?") {
			t.Errorf("%s", plan.body)
		}
		fields := form(t, plan.body, "/page/purge")
		if a := s.post("purge", fields...); a.status != http.StatusBadRequest {
			t.Errorf("purged without the word: %+v", a)
		}
		if a := s.post("purge", "kind", x.kind, "id", x.id, "version", "1", "confirm",
			"purge"); a.status != http.StatusConflict {
			t.Errorf("purged what was not shown: %+v", a)
		}
		if a := s.post("purge", append(fields, "confirm", "purge")...); !strings.Contains(a.body,
			"1 "+x.kind+" was deleted") {
			t.Errorf("%+v", a)
		}
	}
	for _, v := range [][]string{group, note} {
		if a := s.get(v[0], v[1:]...); a.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", v, a.status, a.body)
		}
	}
	if _, err := s.st.Get(t.Context(), "m"); err != nil {
		t.Error(err)
	}
}

// A form that is sent again, since the answer was lost, writes once; one of a memory that was deleted brings it back if
// the person wants that.
func TestSentAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	fields := append(form(t, s.get("edit").body, "/page/new"), "content", "new text")
	for i := range fields {
		if fields[i] == "content" && i+2 < len(fields) {
			fields[i+1] = "new text"
		}
	}
	for range 2 {
		if a := s.post("new", fields...); a.status != http.StatusOK {
			t.Errorf("%+v", a)
		}
	}
	if n := s.st.Admin().Stats().Memories; n != 1 {
		t.Errorf("%d memories", n)
	}
	m := s.put(varve.Memory{ID: "a", Content: "one"})
	edit := []string{"id", "a", "version", number(m.Version), "content", "two", "metadata", "{}"}
	for range 2 {
		if a := s.post("edit", edit...); a.status != http.StatusOK || !strings.HasPrefix(a.said(), "Saved") {
			t.Errorf("%+v", a)
		}
	}
	if err := s.st.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	edit[5] = "three"
	a := s.post("edit", edit...)
	if a.status != http.StatusConflict || !strings.Contains(a.body, "Bring back and save") {
		t.Fatalf("%+v", a)
	}
	back := form(t, a.body, "/page/edit")
	if a := s.post("edit", back...); a.status != http.StatusOK {
		t.Errorf("%+v", a)
	}
	if m, err := s.st.Get(t.Context(), "a"); err != nil || m.Content != "three" {
		t.Errorf("%q, %v", m.Content, err)
	}
	for range 2 {
		if a := s.post("note-edit", "new", "1", "path", " n.md ", "version", "0", "content",
			"text"); a.status != http.StatusOK {
			t.Errorf("%+v", a)
		}
	}
	if a := s.post("note-edit", "new", "1", "path", "n.md", "version", "0", "content",
		"other"); a.status != http.StatusConflict || !strings.Contains(a.body, "choose another path") {
		t.Errorf("%+v", a)
	}
}

// A store that may only be read has no buttons and no forms, whatever the token may do.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.put(varve.Memory{ID: "a", Content: "text"})
	if err := s.st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	st, err := varve.Open(t.Context(), s.st.Admin().Stats().Dir, &varve.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	s.serve(st)
	a := s.get("memory", "id", "a")
	if a.header.Get("Varve-Read-Only") == "" || strings.Contains(a.body, ">Forget<") ||
		!strings.Contains(a.body, "text") {
		t.Errorf("%+v", a)
	}
	for _, path := range []string{"edit?id=a", "edit", "note-edit"} {
		if a := s.do("anna", http.MethodGet, "/page/"+path); a.status != http.StatusForbidden ||
			!strings.Contains(a.body, "open Health to see why") {
			t.Errorf("%s: %+v", path, a)
		}
	}
	if a := s.get("health"); !strings.Contains(a.body, "the store cannot be written now") ||
		!strings.Contains(a.body, "1 memory, ") || !strings.Contains(a.body, "0 assemblies") {
		t.Errorf("%s", a.body)
	}
	if a := s.post("forget", "id", "a"); a.status != http.StatusForbidden {
		t.Errorf("%+v", a)
	}
}

// Views of very many documents are bounded, and their ends are reached: hits, rows, sessions, notes, members, versions.
func TestLongLists(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	n := proofs.Share(100_000, 5_000)
	ctx := t.Context()
	_, err := s.st.PutAll(ctx, func(yield func(varve.Memory) bool) {
		for i := range n {
			if !yield(varve.Memory{ID: fmt.Sprint("m", i), Content: fmt.Sprintf("everywhere the same, number%d", i),
				Metadata: map[string]any{"session_id": fmt.Sprint("s", i%(n/2)), "tags": []any{"all"}}}) {
				return
			}
		}
	})
	if err == nil {
		err = s.st.Flush(ctx)
	}
	members := make([]string, 2000)
	for i := range members {
		members[i] = fmt.Sprint("m", i)
	}
	if err == nil {
		_, err = s.st.Assemblies().Put(ctx, varve.Assembly{ID: "group", Name: "all", MemoryIDs: members})
	}
	for i := 0; i < 400 && err == nil; i++ {
		if _, err = s.st.Notes().Write(ctx, fmt.Sprintf("folder/%d.md", i), []byte("everywhere")); err == nil {
			_, err = s.st.Put(ctx, varve.Memory{ID: "changed", Content: fmt.Sprint("version ", i)})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"list", "list?sort=id", "list?q=everywhere", "list?q=everywhere&kind=note",
		"list?q=everywhere&sort=updated", "list?q=ev&typed=1", "list?session=s1", "list?tag=all",
		"list?q=everywhere&from=" + strconv.Itoa(n-MostRows), "list?kind=assembly", "sessions", "notes?folder=folder",
		"notes", "log", "writers", "assemblies", "assembly?id=group", "graph", "memory?id=changed", "health", "choices"} {
		began := time.Now()
		a := s.do("anna", http.MethodGet, "/page/"+path)
		rows, most := strings.Count(a.body, "data-id="), 4*MostRows
		if strings.HasPrefix(path, "notes") {
			most = 20 * MostRows // a folder is shown whole, as far as that is possible
		}
		if a.status != http.StatusOK || rows > most || len(a.body) > 256<<10 {
			t.Errorf("%s: status %d, %d rows, %d bytes", path, a.status, rows, len(a.body))
		}
		if strings.HasPrefix(path, "list?q=everywhere") && rows == 0 {
			t.Errorf("%s: nothing is listed: %.300s", path, a.body)
		}
		t.Logf("%-36s %3d rows, %6d bytes, %v", path, rows, len(a.body), time.Since(began).Round(time.Millisecond))
	}
}
