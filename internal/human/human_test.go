package human

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestCut verifies that text is cut between characters, wherever the limit is, and text that is not UTF-8 at the limit.
func TestCut(t *testing.T) {
	for _, s := range []string{"plain", "é", "日本語の名前", "a日é😀z", strings.Repeat("😀", 40)} {
		for n := range len(s) + 2 {
			head, tail := Head(s, n), Tail(s, n)
			if len(head) > n || len(tail) > n || !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) {
				t.Fatalf("%q at %d: %q, %q", s, n, head, tail)
			}
			if !utf8.ValidString(head) || !utf8.ValidString(tail) {
				t.Fatalf("%q at %d is cut inside a character: %q, %q", s, n, head, tail)
			}
			if len(s) > n && (n-len(head) >= utf8.UTFMax || n-len(tail) >= utf8.UTFMax) {
				t.Fatalf("%q at %d: too short: %q, %q", s, n, head, tail)
			}
		}
	}
	torn := strings.Repeat("\x80", 20)
	if got := Head(torn, 10); len(got) != 10 {
		t.Fatalf("%q", got)
	}
	if got := Tail(torn, 10); len(got) != 10 {
		t.Fatalf("%q", got)
	}
	if q := Quote(strings.Repeat("é", 29) + "x" + strings.Repeat("é", 29)); strings.Contains(q, `\x`) {
		t.Fatal(q)
	}
}
