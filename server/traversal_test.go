package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/memorystores"
)

// traversals are values for a part of a path, as a client sends them, that lead out of a folder for a program that
// joins or decodes them without care.
var traversals = []string{"..", "../..", "..%2f..", "%2e%2e", "%2e%2e%2f%2e%2e%2foutside", "..%5c..%5coutside",
	"%2foutside", "//outside", ".", "%00", "..%00", "%c0%ae%c0%ae", "%252e%252e%252foutside", ".trash",
	".trash%2foutside", "..%2foutside%2fsecret.md", "memstore_..%2f..%2foutside", "~",
	"file:%2f%2f%2foutside", "%E2%80%A5"}

// TestTraversal: no part of a path, and no id or path in a body, leads to a file outside of the served store, whatever
// the method.
func TestTraversal(t *testing.T) {
	t.Parallel()
	const secret = "the text of a file outside"
	url, dir := servingStores(t, nil)
	outside := filepath.Join(dir, "outside")
	if err := os.MkdirAll(filepath.Join(outside, "notes"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"secret.md", "config.json", "notes/secret.md"} {
		if err := os.WriteFile(filepath.Join(outside, name), []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	v := &site{t: t, url: url}
	beta := []string{"x-api-key: all", "anthropic-beta: " + memorystores.Betas()[0]}
	ids := map[string]string{}
	made := func(kind, path, body string) {
		t.Helper()
		status, _, answer := v.do("POST", path, body, beta...)
		var o struct {
			ID      string
			Version string `json:"memory_version_id"`
		}
		if err := json.Unmarshal([]byte(answer), &o); err != nil || status != 200 {
			t.Fatal(status, answer)
		}
		if ids[kind] = o.ID; o.Version != "" {
			ids["{version}"] = o.Version
		}
	}
	made("{store}", memorystores.Base, `{"name":"a"}`)
	made("{memory}", memorystores.Base+"/"+ids["{store}"]+"/memories", `{"path":"/a.md","content":"inside"}`)
	patterns := []string{"POST /mcp/{store}", "GET /mcp/{store}", "DELETE /mcp/{store}"}
	stores, err := memorystores.Open(filepath.Join(dir, "none"), memorystores.Options{Caller: CallerOf})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range stores.Routes() {
		if strings.Contains(r.Pattern, "{") {
			patterns = append(patterns, r.Pattern)
		}
	}
	if err := stores.Close(); err != nil {
		t.Fatal(err)
	}
	before := fixture.Snapshot(t, outside)
	asked := 0
	check := func(method, path, body string) {
		t.Helper()
		asked++
		status, answer := v.raw(method, path, body, beta...)
		if status < 300 || status >= 500 || strings.Contains(answer, secret) || strings.Contains(answer, dir) {
			t.Errorf("%s %s %s: %d %.300s", method, path, body, status, answer)
		}
	}
	for _, pattern := range patterns {
		method, path, _ := strings.Cut(pattern, " ")
		for _, part := range []string{"{store}", "{memory}", "{version}"} {
			if !strings.Contains(path, part) {
				continue
			}
			for _, bad := range traversals {
				at := strings.ReplaceAll(path, part, bad)
				for name, id := range ids {
					at = strings.ReplaceAll(at, name, id)
				}
				for _, body := range []string{"", `{"name":"b","content":"x","path":"/b.md"}`, `{"content":"x"}`} {
					check(method, at, body)
				}
			}
		}
	}
	for _, bad := range traversals {
		for _, path := range []string{bad, "/" + bad, "/a/" + bad, "/" + bad + "/a", "../outside/secret.md",
			filepath.ToSlash(outside) + "/../outside/secret.md"} {
			if path == "/~" || path == "/a/~" || path == "/~/a" || strings.Contains(path, "%") || path == "/.trash" ||
				path == "/a/.trash" || path == "/.trash/a" {
				continue // in a body these are names like any other
			}
			body := fmt.Sprintf(`{"path":%q,"content":"x"}`, path)
			check("POST", memorystores.Base+"/"+ids["{store}"]+"/memories", body)
			check("POST", memorystores.Base+"/"+ids["{store}"]+"/memories/"+ids["{memory}"], body)
		}
	}
	if after := fixture.Snapshot(t, outside); !maps.Equal(after, before) {
		t.Errorf("files outside were changed: %v", after)
	}
	if status, _, answer := v.do("GET", memorystores.Base+"/"+ids["{store}"]+"/memories?view=full", "",
		beta...); status != 200 || strings.Count(answer, `"type":"memory"`) != 1 ||
		!strings.Contains(answer, "inside") {
		t.Error(status, answer)
	}
	t.Logf("%d requests", asked)
}

// raw sends a request whose path is sent as it is, and returns the status and the text of the answer.
func (v *site) raw(method, path, body string, headers ...string) (status int, answer string) {
	v.t.Helper()
	c := v.dial()
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		v.t.Fatal(err)
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	v.send(c, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n"+
		"Content-Length: %d\r\n\r\n%s",
		method, path, strings.Join(append(headers, mcpHeaders...), "\r\n"), len(body), body))
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		v.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res.StatusCode, string(b)
}
