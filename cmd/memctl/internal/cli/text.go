package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/varve-db/varve/internal/human"
)

// Count returns n with its noun. one is the noun for the number 1; plural is the noun for all other numbers.
func Count(n int, one, plural string) string { return human.Count(n, one, plural) }

// Size returns a number of bytes in a readable unit.
func Size(n int64) string {
	f, unit := float64(n), 0
	for f >= 1024 && unit < 4 {
		f, unit = f/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, [...]string{"B", "KiB", "MiB", "GiB", "TiB"}[unit])
}

func OrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// ShellPath is like ShellQuote, for the path of a file that is an argument: it ensures that commands do not treat the
// path as a flag.
func ShellPath(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return ShellQuote(path)
}

// ShellQuote quotes s so that a POSIX shell reads it as one word. If s has characters that must not be sent to a
// terminal, the quoted form works only in bash and zsh.
func ShellQuote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@%+,=") == "" {
		return s
	}
	if escape(s, "") == s {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}
