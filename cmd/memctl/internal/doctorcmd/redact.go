package doctorcmd

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// redactor replaces private texts, such as paths and ids, in text that may be published.
type redactor struct {
	known []replacement // texts to replace, the longest first
}

type replacement struct{ text, by string }

// leastKnown is the minimum length of a known text that is replaced wherever it occurs. Shorter texts are not
// replaced, because they are part of many words.
const leastKnown = 3

func newRedactor(store string, getenv func(string) string) *redactor {
	r := &redactor{}
	for _, dir := range spellings(store) {
		r.add(dir, "STORE")
	}
	for _, name := range []string{"HOME", "USERPROFILE"} {
		for _, dir := range spellings(getenv(name)) {
			r.add(dir, "HOME")
		}
	}
	host, _ := os.Hostname()
	r.add(host, "HOST")
	for name, by := range map[string]string{"USER": "USER", "LOGNAME": "USER", "SUDO_USER": "USER", "VARVE_AGENT": "AGENT",
		"VARVE_SESSION": "SESSION", "VARVE_PROJECT": "PROJECT", "VARVE_EMBED_URL": "URL", "VARVE_EMBED_KEY": "KEY",
		"VARVE_EMBED_MODEL": "MODEL", "OPENAI_API_KEY": "KEY"} {
		r.add(getenv(name), by)
	}
	return r
}

// spellings returns the forms in which errors may contain the path of a folder.
func spellings(dir string) []string {
	if dir == "" {
		return nil
	}
	all := []string{dir}
	if abs, err := filepath.Abs(dir); err == nil {
		all = append(all, abs)
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			all = append(all, real)
		}
	}
	return all
}

func (r *redactor) add(text, placeholder string) {
	if len(text) < leastKnown || text == "root" {
		return
	}
	r.known = append(r.known, replacement{text, placeholder})
	slices.SortStableFunc(r.known, func(a, b replacement) int { return len(b.text) - len(a.text) })
}

var patterns = []struct {
	of *regexp.Regexp
	by string
}{
	// The name of a note, and a path, may have any characters, also ": ", so all up to the end of the piece goes.
	{regexp.MustCompile(`\b(memories|assemblies|notes|working|quarantine|backups)[/\\].*`), "$1/…"},
	{regexp.MustCompile(`(^|[\s(=:])(/|[A-Za-z]:\\)[^\s:;,)…].*`), "$1/…"},
	{regexp.MustCompile(`"(?:[^"\\]|\\.)*"`), `"…"`},
	{regexp.MustCompile("`[^`]*`"), "`…`"},
	// A shell's quotes; an apostrophe, as in "the store's", is none.
	{regexp.MustCompile(`(^|\W)'(?:[^']|'\\'')*'`), "$1'…'"},
	{regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"]+`), "URL"},
	{regexp.MustCompile(`prj-[0-9a-f]{8,}`), "prj-…"},
	{regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F-]{14,}`), "…"},
	{regexp.MustCompile(`\b[0-9a-fA-F]{12,}\b`), "…"},
	{regexp.MustCompile(`[^\s"<>@]+@[^\s"<>]+`), "…"},
}

// text returns s with everything replaced that may be private. s may be any text, such as the message of an error.
func (r *redactor) text(s string) string {
	for _, k := range r.known {
		s = strings.ReplaceAll(s, k.text, k.by)
	}
	s = strings.Join(strings.Fields(s), " ")
	for _, p := range patterns {
		s = p.of.ReplaceAllString(s, p.by)
	}
	return s
}

// err returns the redacted text of an error. The values of the error's fields that name something, such as a
// path or an id, are replaced wherever they occur in the text.
func (r *redactor) err(err error) string {
	if err == nil {
		return ""
	}
	own := &redactor{known: slices.Clone(r.known)}
	named(err, own, 0)
	return strings.Join(strings.Fields(own.pieces(err, 0)), " ")
}

// pieces redacts the text of an error piece by piece. The pieces are the texts of the errors that err wraps, and the
// texts before and after these. Some patterns match from a name to the end of the text; because each piece is redacted
// alone, such a match ends with the piece. depth is the number of errors that wrap err.
func (r *redactor) pieces(err error, depth int) string {
	text := err.Error()
	if depth > mostNested {
		return r.text(text)
	}
	var inner []error
	switch u := err.(type) {
	case interface{ Unwrap() error }:
		inner = []error{u.Unwrap()}
	case interface{ Unwrap() []error }:
		inner = u.Unwrap()
	}
	front, back := "", ""
	for i, j := 0, len(inner); i < j; {
		first, last := inner[i], inner[j-1]
		switch {
		case last != nil && last.Error() != "" && strings.HasSuffix(text, last.Error()):
			back = r.pieces(last, depth+1) + back
			text = strings.TrimSuffix(text, last.Error())
			j--
		case first != nil && first.Error() != "" && strings.HasPrefix(text, first.Error()):
			front += r.pieces(first, depth+1)
			text = strings.TrimPrefix(text, first.Error())
			i++
		default: // it is somewhere in between, or is not shown
			return front + r.redactPiece(text) + back
		}
		for _, sign := range []string{": ", "; ", "\n"} { // fmt.Errorf("%w: %w", …), errors.Join
			if rest, ok := strings.CutSuffix(text, sign); ok && j < len(inner) {
				text, back = rest, sign+back
			} else if rest, ok := strings.CutPrefix(text, sign); ok && i > 0 {
				text, front = rest, front+sign
			}
		}
	}
	return front + r.redactPiece(text) + back
}

// redactPiece is like text, but keeps the spaces at both ends of a piece of an error text.
func (r *redactor) redactPiece(s string) string {
	if strings.TrimSpace(s) == "" {
		return s
	}
	front, back := s[:len(s)-len(strings.TrimLeft(s, " "))], s[len(strings.TrimRight(s, " ")):]
	return front + r.text(s) + back
}

// ours are the names of fields of errors whose values are words of the program, and therefore not private.
var ours = []string{"Kind", "Field", "Op", "Limit", "Reason", "Noun", "Feature", "Format", "Fix", "What", "Syscall"}

// mostNested is the maximum depth to which wrapped errors are examined.
const mostNested = 32

// named adds to r the texts in the fields of an error and of the errors that it wraps, as texts to be replaced.
func named(err error, r *redactor, depth int) {
	if err == nil || depth > mostNested {
		return
	}
	v := reflect.ValueOf(err)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch {
			case !f.IsExported() || slices.Contains(ours, f.Name):
			case f.Type.Kind() == reflect.String:
				r.addNamed(v.Field(i).String())
			case f.Type == reflect.TypeFor[[]string]():
				for j := range v.Field(i).Len() {
					r.addNamed(v.Field(i).Index(j).String())
				}
			}
		}
	}
	switch u := err.(type) {
	case interface{ Unwrap() error }:
		named(u.Unwrap(), r, depth+1)
	case interface{ Unwrap() []error }:
		for _, e := range u.Unwrap() {
			named(e, r, depth+1)
		}
	}
}

// places matches the names of the files and folders that every store has, which are not private.
var places = regexp.MustCompile(`^(wal|config\.json|checkpoint|memory_index\.json|backups|tmp|memories|assemblies|` +
	`notes|working|quarantine|vectors|words|views)([/\\](shared|owner|archive|writers|past|[0-9]{8}\.wal|\w+\.lock))?$`)

// addNamed adds the name of something to the texts to be replaced, unless every store has a file of that name.
func (r *redactor) addNamed(name string) {
	if !places.MatchString(name) {
		r.add(name, "…")
	}
}
