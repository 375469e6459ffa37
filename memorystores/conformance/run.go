package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Run tests the server at baseURL, with key as the API key of all requests.
func Run(t *testing.T, baseURL, key string) {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	t.Cleanup(transport.CloseIdleConnections)
	c := &client{url: strings.TrimSuffix(baseURL, "/") + "/v1/memory_stores", key: key, beta: betas[1],
		http: &http.Client{Transport: transport, Timeout: time.Minute}}
	for _, test := range []struct {
		name string
		run  func(t *testing.T, c *client)
	}{
		{"Requests", requests}, {"Stores", storeFields}, {"StoreLimits", storeLimits}, {"StoreLists", storeLists},
		{"Archive", archive}, {"Memories", memoryFields}, {"MemoryLimits", memoryLimits}, {"Paths", paths},
		{"Preconditions", preconditions}, {"Lists", lists}, {"ListsUnderWrites", listsUnderWrites},
		{"AtOnce", atOnce}, {"Versions", versionFields}, {"VersionLists", versionLists}, {"Redaction", redaction},
		{"Identity", identity},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// clients is the number of clients that write at once.
const clients = 16

var betas = []string{"managed-agents-2026-04-01", "agent-memory-2026-07-22"}

type client struct {
	url, key, beta string
	http           *http.Client
}

// object is a JSON object. Numbers are json.Number.
type object map[string]any

func (o object) text(name string) string {
	s, _ := o[name].(string)
	return s
}

func (o object) list(t testing.TB) (items []object, next string) {
	t.Helper()
	o.checkMembers(t, "data", "next_page")
	data, ok := o["data"].([]any)
	if !ok {
		t.Fatalf("data is %v, not a list", o["data"])
	}
	for _, v := range data {
		m, ok := v.(map[string]any)
		if !ok {
			t.Fatalf("an item is %v, not an object", v)
		}
		items = append(items, m)
	}
	if o["next_page"] != nil && o.text("next_page") == "" {
		t.Fatalf("next_page is %v", o["next_page"])
	}
	return items, o.text("next_page")
}

// checkMembers checks that an object has exactly the given members.
func (o object) checkMembers(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, ok := o[name]; !ok {
			t.Errorf("%v has no %s", o, name)
		}
	}
	if len(o) != len(names) {
		t.Errorf("the members of %v are not exactly %v", o, names)
	}
}

// matches checks the named members of an object: each must be a string that matches the pattern, or null if the
// pattern is "".
func (o object) matches(t testing.TB, patterns map[string]string) {
	t.Helper()
	for name, pattern := range patterns {
		s, ok := o[name].(string)
		switch {
		case pattern == "" && o[name] != nil:
			t.Errorf("%s is %v, want null", name, o[name])
		case pattern != "" && (!ok || !regexp.MustCompile("^(?:"+pattern+")$").MatchString(s)):
			t.Errorf("%s is %v, want %s", name, o[name], pattern)
		}
	}
}

// Patterns for the values of members.
const (
	timePattern = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)`
	hashPattern = `[0-9a-f]{64}`
)

// answer is the answer of the server to a request.
type answer struct {
	status int
	header http.Header
	object object
	raw    string
}

// do sends a request and returns the answer. path is relative to the path of the stores, and may have a query.
// body is a text, a value that is encoded as JSON, or nil.
func (c *client) do(t testing.TB, method, path string, body any, headers ...string) answer {
	t.Helper()
	a, err := c.try(t, method, path, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (c *client) try(t testing.TB, method, path string, body any, headers ...string) (answer, error) {
	t.Helper()
	var b []byte
	switch v := body.(type) {
	case nil:
	case string:
		b = []byte(v)
	default:
		var err error
		if b, err = json.Marshal(v); err != nil {
			return answer{}, err
		}
	}
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	req, err := http.NewRequestWithContext(t.Context(), method, c.url+path+sep+"beta=true", bytes.NewReader(b))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("X-Api-Key", c.key)
	req.Header.Set("Anthropic-Beta", c.beta)
	req.Header.Set("Anthropic-Version", "2023-06-01")
	if b != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if req.Header.Del(name); value != "" {
			req.Header.Set(name, value)
		}
	}
	res, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	a := answer{status: res.StatusCode, header: res.Header}
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, err
	}
	a.raw = string(raw)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&a.object); err != nil {
		return answer{}, fmt.Errorf("status %d, but the body is not a JSON object: %.200s", a.status, raw)
	}
	return a, nil
}

// ok sends a request, checks that it succeeds, and returns the object in the answer.
func (c *client) ok(t testing.TB, method, path string, body any) object {
	t.Helper()
	a := c.do(t, method, path, body)
	if a.status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, a.status, a.raw)
	}
	return a.object
}

// fails sends a request, and checks that the answer has the given status and kind of error. If kind is "", any kind of
// error is accepted.
func (c *client) fails(t testing.TB, status int, kind, method, path string, body any, headers ...string) {
	t.Helper()
	a := c.do(t, method, path, body, headers...)
	if a.status != status {
		t.Errorf("%s %.200s %.200v: %d %.300s, want %d", method, path, body, a.status, a.raw, status)
		return
	}
	a.object.checkMembers(t, "type", "error", "request_id")
	e, _ := a.object["error"].(map[string]any)
	if a.object.text("type") != "error" || e["message"] == "" || e["message"] == nil || kind != "" && e["type"] != kind {
		t.Errorf("%s %.200s: %.300s, want an error of the type %s", method, path, a.raw, kind)
	}
	if id := a.object.text("request_id"); id == "" || a.header.Get("Request-Id") != id {
		t.Errorf("%s %s: request_id is %q, the header request-id %q", method, path, id, a.header.Get("Request-Id"))
	}
}

// The kinds of errors.
const (
	invalid   = "invalid_request_error"
	notFound  = "not_found_error"
	failed    = "memory_precondition_failed_error"
	taken     = "memory_path_conflict_error"
	forbidden = "authentication_error"
)

// store creates a store that is deleted when the test ends, and returns its path.
func (c *client) store(t testing.TB) (path string) {
	t.Helper()
	path = "/" + c.ok(t, "POST", "", object{"name": t.Name()}).text("id")
	t.Cleanup(func() {
		req, err := http.NewRequest(http.MethodDelete, c.url+path+"?beta=true", nil)
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("X-Api-Key", c.key)
		req.Header.Set("Anthropic-Beta", c.beta)
		res, err := c.http.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		_ = res.Body.Close()
	})
	return path
}

// memory creates a memory in a store, and returns it.
func (c *client) memory(t testing.TB, store, path, content string) object {
	t.Helper()
	return c.ok(t, "POST", store+"/memories", object{"path": path, "content": content})
}

// pages reads all pages of a list. If between is not nil, pages calls it after each page except the last. path may
// have a query.
func (c *client) pages(t testing.TB, path string, between func()) (all []object) {
	t.Helper()
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	for next, n := "", 0; ; n++ {
		at := path
		if next != "" {
			at += sep + "page=" + url.QueryEscape(next)
		}
		items, more := c.ok(t, "GET", at, nil).list(t)
		all = append(all, items...)
		if more == "" {
			return all
		}
		if n > 1000 {
			t.Fatalf("%s: the list does not end after %d pages", path, n)
		}
		if next = more; between != nil {
			between()
		}
	}
}

// requests tests properties that all requests have in common, such as headers, limits and errors.
func requests(t *testing.T, c *client) {
	c.fails(t, 401, forbidden, "GET", "", nil, "X-Api-Key: ")
	c.fails(t, 401, forbidden, "GET", "", nil, "X-Api-Key: "+c.key+"x")
	if a := c.do(t, "GET", "", nil, "X-Api-Key: ", "Authorization: Bearer "+c.key); a.status != 200 {
		t.Errorf("a bearer token: %d %s", a.status, a.raw)
	}
	c.fails(t, 400, invalid, "GET", "", nil, "Anthropic-Beta: ")
	c.fails(t, 400, invalid, "GET", "", nil, "Anthropic-Beta: another-2026-01-01")
	for _, beta := range append([]string{"another-2026-01-01, " + betas[0], betas[1] + ",another"}, betas...) {
		if a := c.do(t, "GET", "", nil, "Anthropic-Beta: "+beta); a.status != 200 || a.header.Get("Request-Id") == "" {
			t.Errorf("%s: %d %s", beta, a.status, a.raw)
		}
	}
	for _, body := range []string{"", "null?", "{", "[]", `"x"`, `{"name":1}`, `{"name":"x","surname":"y"}`,
		`{"name":"x"}{}`, "{\"name\":\"\xff\"}", `{"name":"\ud800"}`, `{"name":"x","metadata":{"a":1}}`} {
		c.fails(t, 400, invalid, "POST", "", body)
	}
	c.fails(t, 413, "request_too_large", "POST", "", `{"name":"`+strings.Repeat("x", 10<<20)+`"}`)
	for _, id := range []string{"memstore_none", "x", "..", "%2e%2e%2f%2e%2e", "memstore_%2f..%2f", "%00", "memstore_ü"} {
		for _, path := range []string{"", "/memories", "/memory_versions"} {
			a, err := c.try(t, "GET", "/"+id+path, nil)
			if err == nil && a.status != 404 && a.status != 400 {
				t.Errorf("%s%s: %d %s", id, path, a.status, a.raw)
			}
		}
	}
	store := c.store(t)
	for _, id := range []string{"mem_none", "x", "memver_none", "%2e%2e%2fx", "a%2fb", "%00"} {
		c.fails(t, 404, notFound, "GET", store+"/memories/"+id, nil)
		c.fails(t, 404, notFound, "POST", store+"/memories/"+id, object{"content": "x"})
		c.fails(t, 404, notFound, "DELETE", store+"/memories/"+id, nil)
		c.fails(t, 404, notFound, "GET", store+"/memory_versions/"+id, nil)
		c.fails(t, 404, notFound, "POST", store+"/memory_versions/"+id+"/redact", nil)
	}
}
