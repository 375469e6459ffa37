package text

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// taken records what Scan finds, with the positions.
type taken []string

func (l *taken) Word(w []byte, from, to int) { *l = append(*l, fmt.Sprintf("%s@%d-%d", w, from, to)) }
func (l *taken) Char(pair []byte, at, from, mid, to int) {
	*l = append(*l, fmt.Sprintf("%s|%s@%d-%d-%d", pair[:at], pair[at:], from, mid, to))
}
func (l *taken) More(kind More, w []byte, from, to, n int) {
	*l = append(*l, fmt.Sprintf("%s=%d:%d@%d-%d", w, kind, n, from, to))
}

// TestScanSimple: letters for which isSimple returns true are in normal form whatever is beside them,
// and the fast path finds what the general one finds.
func TestScanSimple(t *testing.T) {
	t.Parallel()
	n := 0
	for r := rune(0x80); r < 0x20000; r++ {
		if !isSimple(r) || r == sharpS {
			continue
		}
		n++
		p := norm.NFKC.PropertiesString(string(r))
		low, k := foldSimple(r)
		if !norm.NFKC.IsNormalString(string(r)) || p.CCC() != 0 || !p.BoundaryBefore() || foldsToSeveral(r) ||
			k != kindOf(r, len(string(r))) || low != fold(r) || ignored(r) || emoji(r) || k != letter && k != unspaced {
			t.Errorf("%U: %v %v %v %U %U", r, p.CCC(), p.BoundaryBefore(), k, low, fold(r))
		}
	}
	if n < 30_000 {
		t.Errorf("%d letters are simple", n)
	}
	piece := rapid.OneOf(rapid.SampledFrom([]string{"größe", "Öl", "東", "京", "か", "ー", "한", "국", "ΟΔΟΣ", "ς",
		"Борщ", "7", "x", "İ", "ı", "-", " ", "C++", "2.10"}),
		rapid.StringOf(rapid.RuneFrom([]rune("aÀéŁßжЖあア漢韓한ÿŸ"))))
	rapid.Check(t, func(r *rapid.T) {
		s := strings.Join(rapid.SliceOf(piece).Draw(r, "text"), "")
		var fast, slow taken
		new(Scanner).Scan([]byte(s), &fast)
		var o run
		for i := 0; i < len(s); {
			if lower := strings.IndexFunc(s[i:], func(r rune) bool { return kindOf(r, len(string(r))).ofWord() }); lower < 0 {
				break
			} else {
				i += lower
			}
			o.begin()
			end := i + strings.IndexFunc(s[i:]+" ", func(r rune) bool { return !kindOf(r, len(string(r))).ofWord() })
			o.segments([]byte(s[i:end]), i)
			o.words(&slow)
			o.end(&slow)
			i = end
		}
		fast = slices.DeleteFunc(fast, func(s string) bool { return strings.Contains(s, "=") })
		if !slices.Equal(fast, slow) {
			r.Fatalf("%q: %q, want %q", s, fast, slow)
		}
	})
}
