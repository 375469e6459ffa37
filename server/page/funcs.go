package page

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/human"
)

// funcs returns the functions that the templates call.
func (p *Page) funcs() template.FuncMap {
	return template.FuncMap{
		// link encodes all characters that are not permitted in a URL
		"link":  func(path string, pairs ...string) template.URL { return template.URL(link(path, pairs...)) },
		"age":   func(t time.Time) string { return age(p.o.Clock(), t) },
		"at":    timeText,
		"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"bytes": func(n any) string { size, _ := strconv.ParseInt(fmt.Sprint(n), 10, 64); return human.Bytes(size) },
		"count": count,
		"by":    writtenBy,
		"text":  visible,
		"short": func(s string) string { return shortened(visible(s), 80) },
		"num":   func(n any) string { return fmt.Sprint(n) },
		"score": func(f float64) string { return fmt.Sprintf("%.3g", f) },
		"field": func(text string, rows int) any {
			return struct {
				fieldText
				Rows int
			}{fieldOf(text), rows}
		},
		"first":   func(list []string) []string { return list[:min(len(list), MostRows)] },
		"escaped": escaped,
		"params":  params,
	}
}

// timeText returns a time as text in the time zone of the server, or "never" for the zero time.
func timeText(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Local().Format("2006-01-02 15:04:05 MST")
}

// age returns the distance of the time t from now as text, for example "3 days ago" or "in 2 hours".
func age(now, t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := now.Sub(t)
	form := "%s ago"
	if d < 0 {
		d, form = -d, "in %s"
	}
	day := 24 * time.Hour
	switch {
	case d < 5*time.Second:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf(form, human.Count(int(d/time.Second), "second", "seconds"))
	case d < time.Hour:
		return fmt.Sprintf(form, human.Count(int(d/time.Minute), "minute", "minutes"))
	case d < day:
		return fmt.Sprintf(form, human.Count(int(d/time.Hour), "hour", "hours"))
	case d < 60*day:
		return fmt.Sprintf(form, human.Count(int(d/day), "day", "days"))
	case d < 730*day:
		return fmt.Sprintf(form, human.Count(int(d/(30*day)), "month", "months"))
	}
	return fmt.Sprintf(form, human.Count(int(d/(365*day)), "year", "years"))
}

// count returns a number with its noun as text, such as "1 memory" or "1,200 memories". one is the noun for the number
// 1, and plural the noun for all other numbers.
func count(n any, one, plural string) string {
	s := grouped(fmt.Sprint(n))
	if s == "1" {
		return "1 " + one
	}
	return s + " " + plural
}

func grouped(digits string) string {
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// writtenBy returns the name of the writer of a version. If cause is not "", it is added in parentheses: the reason for
// which the store itself made the version.
func writtenBy(w varve.Writer, cause string) string {
	by := varve.UnknownWriter
	switch {
	case w.Number != 0 && w.Since == 0: // the entry that describes the writer is lost
		by = fmt.Sprintf("writer %d", w.Number)
	case w.Number != 0:
		by = w.Name()
	}
	if cause != "" {
		by += " (" + cause + ")"
	}
	return by
}

// visible replaces each character that is invisible, or that changes the direction of the text around it, by a visible
// escape such as \u200b. Without this, two different names could look the same. It replaces CR LF by LF.
func visible(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	hidden := func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200d' ||
			r == unicode.ReplacementChar || r == '\u2028' || r == '\u2029')
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) && r != unicode.ReplacementChar {
			fmt.Fprintf(&b, "\\u%04x", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// shortened returns about the first n bytes of a text on one line. If the text is longer, the result ends in "…".
func shortened(s string, n int) string {
	head := human.Head(s, 4*n)
	cut := len(head) < len(s)
	s = strings.Join(strings.Fields(head), " ")
	switch {
	case len(s) <= n && cut:
		return s + "…"
	case len(s) <= n:
		return s
	}
	return human.Head(s, n) + "…"
}
