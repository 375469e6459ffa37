package filter

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve/errs"
)

func TestHolds(t *testing.T) {
	var m map[string]any
	err := json.Unmarshal([]byte(`{"source":"desk","n":3,"done":true,"none":null,"empty":"","tags":["a","b, c",7],"year":"2024",
		"address":{"city":"Rome","floors":[1,2]},"time":"2024-05-06T07:08:09Z","big":12345678901234567,"x=y":1}`), &m)
	if err != nil {
		t.Fatal(err)
	}
	m["strings"], m["int"], m["num"] = []string{"p", "q"}, 42, json.Number("1.5")
	m["id"] = json.Number("1234567890123456789")
	for s, want := range map[string]bool{
		"source=desk": true, " source = desk ": true, "metadata.source=desk": true, "source=des": false, "source!=desk": false, "source!=x": true, "missing!=x": true, "missing=x": false,
		"source=phone,desk": true, "source!=phone,desk": false, `source="desk"`: true, `source="phone", "desk"`: true, `source="phone,desk"`: false,
		"source^=de": true, "source^=sk": false, "n^=3": false, "source>=desk": true, "source<desl": true, "source>desk": false,
		"n=3": true, "n=3.0": true, "n>2.5": true, "n>=3": true, "n<3": false, "n<=3": true, "n>abc": false, "n!=4": true, "n=4,3": true, "n>-1": true,
		"year=2024": true, "year>2000": true, "year>3": false, // a text
		"done=true": true, "done=false": false, "none=null": true, "none": true, "!none": false, "none!=null": false, "empty=": true, "empty": true, "empty!=": false, "source=": false,
		"tags=a": true, `tags="b, c"`: true, "tags=b": false, "tags!=a": false, "tags!=z": true, "tags=7": true, "tags>6": true, "tags^=b": true, "strings=q": true, "strings=z": false,
		"address.city=Rome": true, "address.city^=R": true, "address.street": false, "!address.street": true, "address=Rome": false, "address.floors>=2": true, "source.x=1": false, "!source.x": true, "address": true,
		"time>=2024-05-01": true, "time<2024-05-01": false, "int=42": true, "int>41": true, "num<2": true, "num=1.5": true,
		"big=12345678901234568": true, "id=1234567890123456789": true, "id=1234567890123456788": false, "id>1234567890123456788": true, "id>NaN": false, "id<Inf": false, "n>0x1": false, `source="=desk"`: false, "missing": false, "!missing": true, "missing>1": false, "missing<1": false, "a.b.c": false,
		`"x=y"=1`: true, `"x=y"`: true, `!"x=y"`: false, ` "source" != desk`: false, `"address.city"=Rome`: false, "dc:title=x": false, `!"dc:title"`: true, `"due date"`: false, `source="a and n=3"`: false,
		"source=this and that": false,
	} {
		c, err := Parse(s)
		if err != nil {
			t.Errorf("%q: %v", s, err)
		} else if c.Holds(m) != want {
			t.Errorf("%q holds: %v", s, !want)
		}
		if err == nil && c.Holds(nil) != (strings.HasPrefix(s, "!") || strings.Contains(s, "!=")) {
			t.Errorf("%q of no metadata: %v", s, c.Holds(nil))
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, s := range []string{"", " ", "=x", "!", "!=x", "a..b", ".a", "metadata.", "a^b", "^=x", "a>1,2", `a="x`, `a="x"y`, "!a=b", "!!a", "a==b", "a<>b", "a=<b", "<", "a.=1", `"a"b=1`, `"a`, `!"a"=1`, "a>", "a >= ", "a<", "a^=", `"x=y">`} {
		var f *errs.FieldError
		if c, err := Parse(s); !errors.Is(err, errs.ErrInvalid) || !errors.As(err, &f) || !strings.Contains(err.Error(), "source=desk") {
			t.Errorf("%q: %+v, %v", s, c, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"source=desk", `a.b!="x, y",z`, "n>=3", "!x", "p^=q"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if c, err := Parse(s); err == nil {
			c.Holds(map[string]any{s: s, "a": []any{s, 1.5, nil, map[string]any{"b": s}}})
		}
	})
}

// TestParseSuggests: conditions in other grammars are refused with the right form: each would be the
// name of a member that no memory has.
func TestParseSuggests(t *testing.T) {
	for s, want := range map[string]string{
		"source:desk": "write source=desk", "metadata.source:desk": "write metadata.source=desk", "source: desk": "write source=desk", "!source:desk": "write source!=desk",
		"source desk": "write source=desk", "source is desk": "write source=desk", "source in desk,phone": "write source=desk,phone", "source ~ desk": "write source=desk",
		"n:=3": "write n=3", "n:>3": "write n>3", "source:": "write source;",
		"n>3 and source=desk": "each condition separately", "n>3 && source = desk": "each condition separately",
	} {
		if c, err := Parse(s); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, not %q", s, c, err, want)
		}
	}
}

func TestTally(t *testing.T) {
	all := []map[string]any{{"n": 3, "source": "desk", "address": map[string]any{"floor": 1}, "nothing": map[string]any{}}, {"n": 4.5, "source": "phone", "Tags": []any{"a"}}, {"n": json.Number("5")}}
	for s, want := range map[string]string{
		"sourc=desk":       `no memory has a member "sourc" in its metadata; existing members: n, source, Tags, address, nothing`,
		"tags=a":           `no memory has a member "tags" in its metadata, but some have "Tags"`,
		"n>x":              `"n" is a number, and a number cannot be ordered relative to the text "x"`,
		"n=three":          `"n" is a number, and "three" is not`,
		"n^=3":             `"n" is a number, and ^= compares only texts`,
		"source<3":         `"source" is a text, which is compared with "3" byte by byte`,
		"address.floor>up": `"address.floor" is a number, and a number cannot be ordered relative to the text "up"`,
		"address=1":        `"address" is an object: name a member of it, as in address.floor`,
		"nothing=1":        `"nothing" is an object without members`,
		"n>9":              "", "source=x": "", "!n": "", "n!=3": "", "missing!=3": "",
	} {
		c, err := Parse(s)
		if err != nil {
			t.Fatal(s, err)
		}
		tally := c.Tally()
		for _, m := range all {
			tally.Add(m)
		}
		if got := tally.String(); got != want {
			t.Errorf("%q: %q, not %q", s, got, want)
		}
		if got := c.Tally().String(); got != "" {
			t.Errorf("%q of no memory: %q", s, got)
		}
	}
}

// TestTextAndNumber verifies that a text has no order relative to a number, unless it begins like one: "high" is not
// more than 3.
func TestTextAndNumber(t *testing.T) {
	for condition, want := range map[string][]string{
		"priority>=3": {"5"}, "priority>3": {"5"}, "priority<3": {"2026-01-31"}, "priority>=2026": {"2026-01-31", "5"}, "priority>=a": {"high"}, "priority=high": {"high"},
	} {
		c, err := Parse(condition)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"high", "5", "2026-01-31", ""} {
			if got := c.Holds(map[string]any{"priority": text}); got != slices.Contains(want, text) {
				t.Errorf("%s of %q: %v", condition, text, got)
			}
		}
	}
}
