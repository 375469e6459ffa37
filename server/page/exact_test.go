package page

import (
	"context"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
)

// awkward are texts that a browser changes.
var awkward = map[string]string{
	"crlf":        "one\r\ntwo\r\n",
	"mixed":       "one\r\ntwo\nthree\r\n",
	"cr":          "one\rtwo\r",
	"crcrlf":      "one\r\r\ntwo\r\n",
	"nul":         "one\x00two",
	"all":         "\x00\r\n\r\x00\n\u2400\u240d\U000F0000\U000F0001",
	"begins":      "\n\r\n\none",
	"begins crlf": "\r\n\r\none",
	"ends":        "one \t \n\n",
	"crlf alone":  "\r\n",
	"odd":         "\ufeffone\u2028\x01\x0b\x7f\ufffe",
	"empty":       "",
}

// browsed returns what a browser sends of a text that is untouched in a textarea.
func browsed(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\ufffd").Replace(text)
	return strings.ReplaceAll(text, "\n", "\r\n")
}

// A text that passes through a form untouched is the same, byte for byte.
func TestFields(t *testing.T) {
	t.Parallel()
	for name, text := range awkward {
		f := fieldOf(text)
		if got := f.read(browsed(f.Text)); got != text {
			t.Errorf("%s: %q became %q", name, text, got)
		}
	}
	f := fieldOf("one\r\ntwo")
	if got := f.read(browsed(f.Text + "\nthree")); got != "one\r\ntwo\r\nthree" {
		t.Errorf("a line that was added: %q", got)
	}
}

// form returns the fields of the form that a view has for an action, as a browser sends them.
func form(t *testing.T, body, action string) (pairs []string) {
	t.Helper()
	_, rest, ok := strings.Cut(body, `action="`+action+`"`)
	if !ok {
		t.Fatalf("no form %s in %s", action, body)
	}
	rest, _, _ = strings.Cut(rest, "</form>")
	for _, m := range regexp.MustCompile(`<input type="(?:hidden|text)" name="([^"]*)" value="([^"]*)"`).
		FindAllStringSubmatch(rest, -1) {
		pairs = append(pairs, m[1], strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(html.UnescapeString(m[2])))
	}
	for _, m := range regexp.MustCompile(`(?s)<textarea name="([^"]*)"[^>]*>\n?(.*?)</textarea>`).
		FindAllStringSubmatch(rest, -1) {
		pairs = append(pairs, m[1], browsed(html.UnescapeString(m[2])))
	}
	return pairs
}

// A memory and a note that are saved untouched do not change, nor do they when a form is refused and sent again.
func TestSavedUntouched(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for name, text := range awkward {
		m := s.put(varve.Memory{ID: name, Content: text, Metadata: map[string]any{"a\r\nb\x00": "\x00\r\n\u2028"}})
		a := s.post("edit", form(t, s.get("edit", "id", name).body, "/page/edit")...)
		if got, err := s.st.Get(t.Context(), name); err != nil || got.Content != text || got.Version != m.Version {
			t.Errorf("%s: %q became %q, version %d, %v: %+v", name, text, got.Content, got.Version, err, a)
		}
		refused := s.post("edit", append([]string{"metadata", "{"},
			form(t, s.get("edit", "id", name).body, "/page/edit")...)...)
		again := form(t, refused.body, "/page/edit")
		for i := 0; i < len(again); i += 2 {
			if again[i] == "metadata" {
				again[i+1] = metadataText(m.Metadata)
			}
		}
		a = s.post("edit", again...)
		if got, err := s.st.Get(t.Context(), name); err != nil || got.Content != text || got.Version != m.Version {
			t.Errorf("%s, refused once: %q became %q, %v: %+v", name, text, got.Content, err, a)
		}
		path := "n/" + name + ".md"
		if strings.Contains(text, "\x00") { // a note that is not text is not edited here
			continue
		}
		n, err := s.st.Notes().Write(t.Context(), path, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		a = s.post("note-edit", form(t, s.get("note-edit", "path", path).body, "/page/note-edit")...)
		if got, err := s.st.Notes().Read(t.Context(), path); err != nil || string(got.Content) != text ||
			got.Version != n.Version {
			t.Errorf("note %s: %q became %q, %v: %+v", name, text, got.Content, err, a)
		}
	}
	if a := s.post("edit", "id", "cr", "version", "1", "content", "x", "content.cr", "ab", "metadata",
		"{}"); a.status != http.StatusBadRequest {
		t.Errorf("%+v", a)
	}
}

// A button names the memory or session of its row, also where ids differ only by characters that a browser changes.
func TestNamesOfButtons(t *testing.T) {
	t.Parallel()
	ids := []string{"a\nb", "a\rb", "a\r\nb", "a\x00b", "a\ufffdb", "a%0Ab", " a", "a "}
	for _, target := range ids {
		s := newSite(t, nil)
		for _, id := range ids {
			s.put(varve.Memory{ID: id, Content: "text", Metadata: map[string]any{"session_id": "s" + id}})
		}
		left := func() int {
			n := 0
			for _, id := range ids {
				if _, err := s.st.Get(t.Context(), id); err == nil && id != target {
					n++
				}
			}
			if _, err := s.st.Get(context.Background(), target); err == nil {
				return -1
			}
			return n
		}
		a := s.post("forget", form(t, s.get("memory", "id", target).body, "/page/forget")...)
		if n := left(); n != len(ids)-1 {
			t.Fatalf("Forget of %q leaves %d: %+v", target, n, a)
		}
		s.post("undelete", form(t, s.get("memory", "id", target).body, "/page/undelete")...)
		body := s.get("sessions").body
		row := body[strings.Index(body, `value="`+html.EscapeString(escaped("s"+target))+`"`)-100:]
		s.post("forget-session", form(t, row, "/page/forget-session")...)
		if n := left(); n != len(ids)-1 {
			t.Fatalf("Forget of session s%q leaves %d", target, n)
		}
		purge := append(form(t, s.get("purge", "id", target).body, "/page/purge"), "confirm", "purge")
		if a := s.post("purge", purge...); a.status != http.StatusOK || left() != len(ids)-1 {
			t.Fatalf("Purge of %q leaves %d: %+v", target, left(), a)
		}
	}
}

// A text that has nearly all characters that could stand for another one is read once: a memory may be written so that
// its form would take half a minute.
func TestStandInOfManyIsFast(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("\r\u240d")
	for r := '\U000F0000'; r < '\U0010FFFD'; r++ {
		b.WriteRune(r)
	}
	began := time.Now()
	f := fieldOf(b.String())
	if took := time.Since(began); f.CR != "\U0010FFFD" || took > 5*time.Second {
		t.Errorf("%q after %v", f.CR, took)
	}
	if got := f.read(strings.ReplaceAll(f.Text, "\n", "\r\n")); got != b.String() {
		t.Error("the text is changed")
	}
	b.WriteString("\U0010FFFD\U0010FFFE\U0010FFFF")
	if f := fieldOf(b.String()); f.CR != "\ufffd" {
		t.Errorf("%q", f.CR)
	}
}
