package jsondoc

import (
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/varve-db/varve/errs"
)

func TestFileName(t *testing.T) {
	long := strings.Repeat("a", 100)
	for id, want := range map[string]string{
		"550e8400-e29b-41d4-a716-446655440000": "550e8400-e29b-41d4-a716-446655440000.json",
		"mem_00790152fab6":                     "mem_00790152fab6.json",
		"a":                                    "a.json",
		long:                                   long + ".json",
		long + "a":                             strings.Repeat("a", 60) + "~",
		"a.json":                               "a.json.json",
		"console":                              "console.json",
		"com10":                                "com10.json",
		"asm:0123":                             "asm-0123~",
		"ABC":                                  "abc~",
		".":                                    "id~",
		"..":                                   "id~",
		".git":                                 "git~",
		"a.":                                   "a~",
		"../../etc/passwd":                     "etc-passwd~",
		`C:\x`:                                 "c-x~",
		"con":                                  "con~",
		"con.txt":                              "con-txt~",
		"nul.tar.gz":                           "nul-tar-gz~",
		"com1":                                 "com1~",
		"lpt9.x":                               "lpt9-x~",
		"a~b":                                  "a-b~",
		"two  words":                           "two-words~",
		"line\nfeed\x00":                       "line-feed~",
		"🙂":                                    "id~",
		"Zürich":                               "z-rich~",
		strings.Repeat("b", 1000):              strings.Repeat("b", 60) + "~",
	} {
		got := FileName(id)
		if strings.HasSuffix(want, "~") {
			if rest, ok := strings.CutPrefix(got, want); !ok || len(rest) != 26+len(".json") {
				t.Errorf("FileName(%q) = %q, want %s<26>.json", id, got, want)
			}
		} else if got != want {
			t.Errorf("FileName(%q) = %q, want %q", id, got, want)
		}
	}
	// Fixed forever: files are found by it.
	if got := FileName("ABC"); got != "abc~wxkaixb7izx2sh7czrvl46jdfi.json" {
		t.Error(got)
	}
}

var safeName = regexp.MustCompile(`^[a-z0-9_-][a-z0-9._~-]{0,130}\.json$`)

func TestFileNameOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-zA-Z0-9._/~:-]{0,120}`)).Draw(t, "a")
		name := FileName(a)
		if !safeName.MatchString(name) || filepath.Base(name) != name || deviceName(name) {
			t.Fatalf("%q becomes %q", a, name)
		}
		b := rapid.OneOf(rapid.Just(strings.ToUpper(a)), rapid.Just(a+"."), rapid.Just(strings.ReplaceAll(a, ":", "-")),
			rapid.Just(strings.TrimSuffix(name, ".json")), rapid.String()).Draw(t, "b")
		if a != b && strings.EqualFold(FileName(a), FileName(b)) {
			t.Fatalf("%q and %q meet in %q", a, b, name)
		}
	})
}

func TestCheckID(t *testing.T) {
	for _, id := range []string{"a", "a\x00b", "\n", "🙂", strings.Repeat("x", 1024)} {
		if err := CheckID("id", id, 0); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for id, want := range map[string]string{"": "empty", "\xff": "UTF-8", strings.Repeat("x", 1025): "limit: 1024 bytes"} {
		err := CheckID("id", id, 0)
		var f *errs.FieldError
		if !errors.As(err, &f) || f.Field != "id" || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", id, err, want)
		}
	}
}
