package page

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/working"
)

// parameters returns the names of all parameters that the package reads from requests, found in its source.
func parameters(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	read := regexp.MustCompile(`\b(?:r\.get\(|r\.Form\[)"([a-z-]+)"`)
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range read.FindAllStringSubmatch(string(source), -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) < 20 {
		t.Fatalf("only these parameters were found: %q", names)
	}
	return names
}

// routes returns the paths of all views and changes, as "GET list" or "POST edit", found in the source of New.
func routes(t *testing.T) (all []string) {
	t.Helper()
	source, err := os.ReadFile("page.go")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(source), "for path, h := range map[string]handler{")
	for i, block := range strings.SplitN(text, "for path, h := range map[string]handler{", 2) {
		block, _, _ = strings.Cut(block, "} {")
		for _, m := range regexp.MustCompile(`"([a-z-]+)": p\.`).FindAllStringSubmatch(block, -1) {
			all = append(all, [2]string{"GET ", "POST "}[i]+m[1])
		}
	}
	if len(all) < 40 {
		t.Fatalf("only these routes were found: %q", all)
	}
	return append(all, "GET export")
}

// TestTraversal: no parameter of a view or of a change leads to a file outside of the store.
func TestTraversal(t *testing.T) {
	t.Parallel()
	const secret = "the text of a file outside"
	s := newSite(t, nil)
	dir := s.st.Admin().Stats().Dir
	outside := t.TempDir()
	for _, name := range []string{"secret", "secret.md", "secret.json", "config.json"} {
		text := []byte(`{"id":"x","content":"` + secret + `"}`)
		if err := os.WriteFile(filepath.Join(outside, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := s.put(varve.Memory{ID: "a", Content: "inside"})
	if _, err := s.st.Notes().Write(t.Context(), "n.md", []byte("inside\n")); err != nil {
		t.Fatal(err)
	}
	scope, err := s.st.Working().Open(t.Context(), working.Scope{Session: "there"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := scope.Set(t.Context(), "plan", "inside", working.Expires(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := scope.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	around, notes := filepath.Dir(dir), filepath.Join(dir, "notes")
	filesOutside := func() map[string]string {
		all := fixture.Snapshot(t, around)
		maps.DeleteFunc(all, func(name, _ string) bool {
			return strings.HasPrefix(name, filepath.Base(dir)+string(filepath.Separator))
		})
		return all
	}
	before, inside := filesOutside(), fixture.Snapshot(t, notes)

	base := filepath.Base(outside)
	bad := []string{"..", "../..", ".", "/", "~", "\x00", "secret\x00", filepath.Join(outside, "secret.md"),
		"file://" + outside + "/secret.md", "//" + outside + "/secret.md", `..\` + base + `\secret.md`,
		"%2e%2e/" + base + "/secret.md", "..%2f" + base + "%2fsecret.md", "\u2025/" + base + "/secret.md",
		"n.md/../../../" + base + "/secret.md", "agent/../../" + base + "/secret", ".varve", ".varve/../../config.json"}
	for depth := 1; depth <= 5; depth++ {
		for _, name := range []string{"secret", "secret.md", "secret.json"} {
			bad = append(bad, strings.Repeat("../", depth)+base+"/"+name)
		}
	}
	names := parameters(t)
	asked := 0
	check := func(route string, pairs ...string) {
		t.Helper()
		asked++
		method, path, _ := strings.Cut(route, " ")
		a := s.do("anna", method, "/page/"+path, pairs...)
		if a.status >= 500 || strings.Contains(a.body, secret) || strings.Contains(a.said(), secret) {
			t.Errorf("%s %q: %d %.400s", route, pairs, a.status, a.body)
		}
	}
	for _, route := range routes(t) {
		for _, value := range bad {
			// All that may name something at once, and in a change what it wants besides.
			pairs := []string{"version", number(m.Version), "from", number(m.Version), "to", number(m.Version)}
			for _, name := range names {
				if slices.Contains([]string{"version", "from", "to", "confirm", "what", "kind", "of"}, name) {
					continue
				}
				pairs = append(pairs, name, value)
			}
			if strings.HasPrefix(route, "GET ") {
				check(route, pairs...)
				continue
			}
			for _, confirm := range []string{"purge", "drop"} {
				check(route, append(slices.Clone(pairs), "confirm", confirm, "what", confirm)...)
			}
		}
		if strings.HasPrefix(route, "GET ") { // each parameter alone, beside values that exist
			for _, name := range names {
				for _, value := range []string{"../" + base + "/secret.md", "../../" + base + "/secret",
					filepath.Join(outside, "secret.md")} {
					pairs := []string{name, value}
					for known, v := range map[string]string{"id": "a", "path": "n.md", "key": "session:there"} {
						if known != name {
							pairs = append(pairs, known, v)
						}
					}
					check(route, pairs...)
				}
			}
		}
	}
	if err := s.st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := filesOutside(); !maps.Equal(after, before) {
		t.Errorf("files outside of the store were changed: %v, before: %v", after, before)
	}
	if after := fixture.Snapshot(t, notes); !maps.Equal(after, inside) {
		t.Errorf("notes were changed: %v, before: %v", after, inside)
	}
	if got, err := s.st.Get(t.Context(), "a"); err != nil || got.Version != m.Version {
		t.Errorf("the memory was changed: %v, %v", got, err)
	}
	if a := s.do("anna", http.MethodGet, "/page/note", "path", "n.md"); !strings.Contains(a.body, "inside") {
		t.Error(a.status, a.body)
	}
	t.Logf("%d requests", asked)
}
