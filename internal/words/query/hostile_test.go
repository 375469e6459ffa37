package query

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/words/analyzer"
)

// soon fails where something takes far longer than time in proportion to the text, which is some hundred
// milliseconds; in its square it is minutes.
func soon(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s takes more than 10 s", what)
	}
}

// TestLongQueries: a text of a megabyte is read in time in proportion to it, and what it asks for is counted,
// with what is excluded, and phrases.
func TestLongQueries(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	size := 1 << 20
	if !proofs.Long() {
		size = 1 << 19
	}
	long := func(of func(i int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			b.WriteString(of(i))
		}
		return b.String()
	}
	for what, c := range map[string]struct {
		text  string
		small bool // it asks for few things
	}{
		"one word":           {strings.Repeat("x", size), true},
		"one word again":     {long(func(int) string { return "a " }), true},
		"words":              {long(func(i int) string { return fmt.Sprint("w", i, " ") }), false},
		"excluded":           {"boat " + long(func(i int) string { return fmt.Sprint("-w", i, " ") }), false},
		"excluded prefixes":  {"boat " + long(func(i int) string { return fmt.Sprint("-w", i, "* ") }), false},
		"excluded phrases":   {"boat " + long(func(i int) string { return fmt.Sprint(`-"a`, i%9, ` b`, i, `" `) }), false},
		"phrases":            {long(func(i int) string { return fmt.Sprint(`"a`, i%30, ` b`, i/30%30, `" `) }), false},
		"one phrase":         {`"` + long(func(int) string { return "a " }) + `b"`, true},
		"unbalanced quotes":  {long(func(int) string { return `"a` }), true},
		"quotes":             {strings.Repeat(`"`, size), true},
		"a colon at the end": {long(func(int) string { return "a " }) + ":", true},
		"fields":             {long(func(i int) string { return fmt.Sprint("tag:t", i%3, " ") }), true},
		"OR":                 {long(func(int) string { return "a OR " }), true},
		"Thai":               {long(func(i int) string { return []string{"เรือ", "ทะเล", "แม่น้ำ"}[i%3] }), true},
		"emoji":              {long(func(int) string { return "🚢🌊👩‍👩‍👧" }), true},
		"spaces":             {strings.Repeat(" ", size), true},
		"not UTF-8":          {strings.Repeat("\xff\xfe", size/2), true},
	} {
		t.Run(what, func(t *testing.T) {
			soon(t, "reading it", func() {
				for _, language := range []string{analyzer.None, analyzer.English} {
					q := Parse(c.text, analyzer.New(language))
					if small := q.Size() <= MostWords; small != c.small {
						t.Errorf("%s: it asks for %d", language, q.Size())
					}
				}
			})
		})
	}
}

// TestLongPhrase: a phrase is looked for in a long text in time in proportion to both, also where each place
// nearly fits, and with several phrases the text is analysed once.
func TestLongPhrase(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	an := analyzer.New(analyzer.None)
	texts := []Text{{Content, strings.Repeat("a ", 1<<18)}}
	soon(t, "a phrase", func() {
		if Parse(`"`+strings.Repeat("a ", 1<<17)+`b"`, an).Holds(texts, an) {
			t.Error("b is not in it")
		}
		if !Parse(`"`+strings.Repeat("a ", 1<<17)+`"`, an).Holds(texts, an) {
			t.Error("it has so many")
		}
	})
	var many strings.Builder
	for i := range 900 {
		fmt.Fprintf(&many, `-"b%d c" `, i)
	}
	soon(t, "many phrases", func() {
		if !Parse("a "+many.String(), an).Holds([]Text{{Content, strings.Repeat("东京", 1<<14)}}, an) {
			t.Error("it has none of them")
		}
	})
}

// TestContains: a part is in a list where it is at one of its places.
func TestContains(t *testing.T) {
	t.Parallel()
	seed := proofs.Seed(t, 0)
	r := rand.New(rand.NewPCG(seed, 1))
	some := func(most int) (list []string) {
		for range r.IntN(most) {
			list = append(list, []string{"a", "b"}[r.IntN(2)])
		}
		return list
	}
	for range 20_000 {
		list, part := some(14), some(6)
		want := false
		for i := 0; i+len(part) <= len(list); i++ {
			want = want || slices.Equal(list[i:i+len(part)], part)
		}
		if got := contains(list, part); got != want {
			t.Fatalf("seed %d: %v in %v: %v", seed, part, list, got)
		}
	}
}
