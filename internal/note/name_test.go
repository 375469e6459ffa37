package note

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

var systems = map[string]Names{"linux": On("linux"), "windows": On("windows")}

// TestNames: the names that the package comment gives, in both directions.
func TestNames(t *testing.T) {
	long := strings.Repeat("ä", 140)
	for _, c := range []struct{ path, linux, windows string }{
		{"a.md", "a.md", "a.md"},
		{"folder/a b.md", "folder/a b.md", "folder/a b.md"},
		{".env", "%2Eenv", "%2Eenv"},
		{"x/.git/config", "x/%2Egit/config", "x/%2Egit/config"},
		{".varve/x", "%2Evarve/x", "%2Evarve/x"},
		{`a\b`, "a%5Cb", "a%5Cb"},
		{"%2Eenv", "%252Eenv", "%252Eenv"},
		{"%252Eenv", "%25252Eenv", "%25252Eenv"},
		{"x%2Eenv", "x%2Eenv", "x%2Eenv"},
		{"100%25", "100%25", "100%25"},
		{"a%20b", "a%20b", "a%20b"},
		{"a%20", "a%20", "a%2520"},
		{"what?", "what?", "what%3F"},
		{"what%3F", "what%3F", "what%253F"},
		{"a.", "a.", "a%2E"},
		{"a ", "a ", "a%20"},
		{"...", "%2E..", "%2E.%2E"},
		{"aux.md", "aux.md", "%=aux.md"},
		{"aux.", "aux.", "%=aux%2E"},
		{"d/NUL/x", "d/NUL/x", "d/%=NUL/x"},
		{"%=aux.md", "%=aux.md", "%25=aux.md"},
		{"auxiliary", "auxiliary", "auxiliary"},
		{"a%+", "a%25+", "a%25+"},
		{"%+a", "%25+a", "%25+a"},
		{"a%+b", "a%+b", "a%+b"},
		{strings.Repeat("x", 255), strings.Repeat("x", 255), strings.Repeat("x", 255)},
		{strings.Repeat("x", 256), strings.Repeat("x", 253) + "%+/%+xxx", strings.Repeat("x", 253) + "%+/%+xxx"},
		{long, strings.Repeat("ä", 126) + "%+/%+" + strings.Repeat("ä", 14), strings.Repeat("ä", 126) + "%+/%+" +
			strings.Repeat("ä", 14)},
		{SidecarOf("a.md"), ".varve/.a.md.json", ".varve/.a.md.json"},
		{SidecarOf("b/.c"), ".varve/b/.%2Ec.json", ".varve/b/.%2Ec.json"},
		{SidecarOf(strings.Repeat("x", 250)), ".varve/." + strings.Repeat("x", 250) + ".j%+/%+son",
			".varve/." + strings.Repeat("x", 250) + ".j%+/%+son"},
	} {
		for system, want := range map[string]string{"linux": c.linux, "windows": c.windows} {
			n := systems[system]
			if got := n.Path(c.path); got != want {
				t.Errorf("%s: %q is at %q, want %q", system, c.path, got, want)
			}
			if id, ok := n.ID(n.Path(c.path)); id != c.path || !ok {
				t.Errorf("%s: %q is read back as %q, %v", system, c.path, id, ok)
			}
			if !n.IsOwn(n.Path(c.path), false) || !n.IsDocument(n.Path(c.path)) {
				t.Errorf("%s: %q is not the store's own", system, n.Path(c.path))
			}
			elems := strings.Split(n.Path(c.path), "/")
			for i := 1; i < len(elems); i++ {
				if dir := strings.Join(elems[:i], "/"); !n.IsOwn(dir, true) {
					t.Errorf("%s: the folder %q is not the store's own", system, dir)
				}
			}
		}
	}
	for _, path := range []string{".hidden", "x/.hidden", ".varve/a.json", ".varve/.a", "%2Ex/.y", "a%+", "a%+/b", "%+b",
		`a\b`, "e\u0301", "x//y", "a%5cb/.z", "a\nb", ".varve/.json", ".varve"} {
		if id, ok := On("linux").ID(path); ok {
			t.Errorf("%q is the file of %q", path, id)
		}
	}
}

// FuzzNames verifies that each path has one file on each system, that the system allows the file's name, that the path
// is read back from the name, and that each file belongs to one path at most. What is not escaped is equal in both.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"a", "a/.b", "%2E", "%252Ex", "%25252525+", "con.txt", "%=con", "a ", "x.", `\`, "a%+/b",
		strings.Repeat("%", 300), strings.Repeat("x", 251) + "...%+" + strings.Repeat("y", 300), ".varve/.x.json",
		strings.Repeat("\U0001F600", 200), "%2B", "%5C%255C", "COM\u00b9", "a/%+/b", "?*|", "%3F%253F", "./x", "./.x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for system, n := range systems {
			if id := norm.NFC.String(s); checkID(id) == nil {
				path := n.Path(id)
				if back, ok := n.ID(path); back != id || !ok {
					t.Fatalf("%s: %q is at %q, which is of %q, %v", system, id, path, back, ok)
				}
				elems := strings.Split(path, "/")
				for i, e := range elems {
					sidecar := IsSidecar(id) && (i == 0 && e == ".varve" || i > 0 && e[0] == '.')
					if e == "" || e[0] == '.' && !sidecar || len(e) > 255 || !utf8.ValidString(e) || strings.Contains(e, `\`) {
						t.Fatalf("%s: %q is at %q", system, id, path)
					}
					if system == "windows" && (strings.ContainsAny(e, `<>:"|?*`) || strings.HasSuffix(e, ".") ||
						strings.HasSuffix(e, " ") || isDevice(e)) {
						t.Fatalf("Windows cannot have %q", path)
					}
				}
				if !strings.ContainsAny(id, `%\`) && len(id) < 255 && id[0] != '.' && !strings.Contains(id, "/.") &&
					system == "linux" && path != id {
					t.Fatalf("%q is at %q", id, path)
				}
			}
			if id, ok := n.ID(s); ok && n.Path(id) != s {
				t.Fatalf("%s: %q is of %q, which is at %q", system, s, id, n.Path(id))
			}
		}
	})
}

// TestCheckPath has the limits of a path.
func TestCheckPath(t *testing.T) {
	for path, ok := range map[string]bool{
		"": false, "/a": false, "a/": false, "a//b": false, ".": false, "a/..": false, "a/./b": false, "..": false,
		"a\x00b": false, "a\nb": false, "a\u200db": false, "a\u2028b": false, "\ufeffa": false, "a\x7f": false,
		"\xff":    false,
		"e\u0301": false, "\u00e9": true, "...": true, " ": true, ".a": true, "A/a": true, `a\b:c?`: true,
		strings.Repeat("a/", 19) + "b": true, strings.Repeat("a/", 20) + "b": false,
		strings.Repeat("a", 1024): true, strings.Repeat("a", 1025): false,
	} {
		if err := CheckPath(path); (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
	}
	if a, b := ID("a"), ID("b"); a == b || a != ID("a") || a[14] != '5' {
		t.Error(a, b)
	}
}

// TestSidecar: what is written is read back, and what is unknown is refused.
func TestSidecar(t *testing.T) {
	s := Sidecar{ID: ID("x"), Moves: []Move{{"x", 8}}, Tags: []string{"b", "a", "b"}, Metadata: map[string]any{"k": 1.5}}
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeSidecar(data)
	if err != nil || back.ID != s.ID || !slices.Equal(back.Tags, []string{"a", "b"}) || back.Moves[0] != s.Moves[0] ||
		back.Metadata["k"] != 1.5 || back.IsZero() || !(&Sidecar{}).IsZero() {
		t.Errorf("%s: %+v, %v", data, back, err)
	}
	for _, bad := range []string{"", "[]", `{"id":"x"}`, `{"other":1}`, `{"moves":[{"path":"../x","version":1}]}`} {
		if s, err := DecodeSidecar([]byte(bad)); err == nil {
			t.Errorf("%s: %+v", bad, s)
		}
	}
}
