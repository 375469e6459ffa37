package diff

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestLineEdits verifies that the edits turn the one text into the other, and are as few as possible.
func TestLineEdits(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		text := func() (list []string) {
			for range r.IntN(12) {
				list = append(list, fmt.Sprint(r.IntN(4)))
			}
			return list
		}
		a, b := text(), text()
		var got []string
		at, cost := 0, 0
		for _, e := range lineEdits(a, b) {
			got = append(got, a[at:e.A0]...)
			if len(got) != e.B0 || e.A0 == e.A1 && e.B0 == e.B1 {
				t.Fatalf("seed %d: edit %+v after %d lines", seed, e, len(got))
			}
			got = append(got, b[e.B0:e.B1]...)
			at = e.A1
			cost += e.A1 - e.A0 + e.B1 - e.B0
		}
		if got = append(got, a[at:]...); !slices.Equal(got, b) {
			t.Fatalf("seed %d: %v to %v gives %v", seed, a, b, got)
		}
		if least := len(a) + len(b) - 2*common(a, b); cost != least {
			t.Fatalf("seed %d: %v to %v in %d lines, %d would do", seed, a, b, cost, least)
		}
	}
}

// common returns the length of the longest common subsequence.
func common(a, b []string) int {
	table := make([][]int, len(a)+1)
	table[0] = make([]int, len(b)+1)
	for i := range a {
		table[i+1] = make([]int, len(b)+1)
		for j := range b {
			table[i+1][j+1] = max(table[i][j+1], table[i+1][j])
			if a[i] == b[j] {
				table[i+1][j+1] = table[i][j] + 1
			}
		}
	}
	return table[len(a)][len(b)]
}

func TestUnified(t *testing.T) {
	doc := func(s string) []string {
		v, err := Parse([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		return Lines(v)
	}
	if h := Unified(doc(`{"a":1,"b":[1,2],"c":{"x":"y"}}`), doc(`{ "c":{"x":"y"}, "b":[1,2],"a":1}`)); h != nil {
		t.Fatalf("order and white space count: %q", h)
	}
	got := strings.Join(Unified(doc(`{"content":"one\ntwo\nthree","embedding":[1,2,3,4,5,6,7,8,9,10],"id":"x"}`),
		doc(`{"content":"one\n2\nthree","embedding":[1,2,3,4,5,6,7,8,9,11],"id":"x","n":1.0}`)), "\n")
	want := `@@ -1,9 +1,10 @@
 {
   "content": "one\n"
-             "two\n"
+             "2\n"
              "three",
   "embedding": [
     1, 2, 3, 4, 5, 6, 7, 8,
-    9, 10,
+    9, 11,
   ],
   "id": "x",
+  "n": 1.0,
 }`
	if got != strings.Replace(want, "-1,9 +1,10", "-1,10 +1,11", 1) {
		t.Fatalf("got\n%s", got)
	}
	long := make([]string, 5000)
	other := make([]string, 5000)
	for i := range long {
		long[i], other[i] = fmt.Sprint("a", i), fmt.Sprint("b", i)
	}
	if h := Unified(long, other); len(h) != 10001 {
		t.Fatalf("%d lines", len(h))
	}
}
