package page

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The spans of a comparison make both texts, as long as nothing is left out.
func TestCompareText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([ab]{1,2}[ .\n]{0,2}){0,12}`)
		old, now := text.Draw(t, "old"), text.Draw(t, "now")
		var a, b strings.Builder
		for _, s := range compareText(old, now) {
			if s.What != "ins" {
				a.WriteString(s.Text)
			}
			if s.What != "del" {
				b.WriteString(s.Text)
			}
		}
		if old != now && (a.String() != old || b.String() != now) {
			t.Fatalf("%q, %q: %q, %q", old, now, a.String(), b.String())
		}
		if got := strings.Join(words(old), ""); got != old {
			t.Fatalf("%q: %q", old, got)
		}
	})
}

// What is far from a change is left out.
func TestCompareLong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 1000)
	spans := compareText(long+"one"+long, long+"two"+long)
	n := 0
	for _, s := range spans {
		n += len(s.Text)
	}
	if n > 4*nearChange || len(spans) != 6 {
		t.Errorf("%d bytes in %d spans", n, len(spans))
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{0: "just now", 59 * time.Second: "59 seconds ago",
		time.Minute:    "1 minute ago",
		-3 * time.Hour: "in 3 hours", 25 * time.Hour: "1 day ago", 59 * 24 * time.Hour: "59 days ago",
		90 * 24 * time.Hour:  "3 months ago",
		800 * 24 * time.Hour: "2 years ago"} {
		if got := age(now, now.Add(-d)); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestVisible(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{"a\u202eb": `a\u202eb`, "tab\tline\n": "tab\tline\n",
		"\x00\x1b": `\u0000\u001b`,
		"\xff":     "\uFFFD", "👩\u200d🚀": "👩\u200d🚀"} {
		if got := visible(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
