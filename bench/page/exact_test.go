package page

import (
	"strings"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/varve-db/varve"
)

// A memory or a note that is opened in a form and saved untouched keeps its line ends and its control characters.
func TestSavedUntouched(t *testing.T) {
	s := newSite(t)
	b := s.newTab()
	for name, text := range map[string]string{
		"crlf":   "one\r\ntwo\r\n",
		"mixed":  "one\r\ntwo\nthree\rfour",
		"nul":    "one\x00two \u2400",
		"begins": "\n\n one \n",
		"odd":    "\ufeffone\u2028\u202e\x01\x0b\x0c\x7f\ufffe</textarea>&amp;&#10;",
	} {
		m := s.put(varve.Memory{ID: name, Content: text})
		b.step = name
		b.open(view("edit", "id", name))
		b.press("Save")
		b.text("Saved as version")
		got, err := s.st.Get(t.Context(), name)
		if err != nil || got.Content != text || got.Version != m.Version {
			t.Errorf("%s: %q became %q, %v", name, text, got.Content, err)
		}
		b.eval(`document.querySelector('#said').textContent = ''`)
		b.open(view("edit", "id", name))
		b.eval(`document.querySelector('textarea').value += 'more'`)
		b.press("Save")
		b.text("Saved as version")
		if got, err := s.st.Get(t.Context(), name); err != nil || got.Content != text+"more" {
			t.Errorf("%s: %q became %q, %v", name, text, got.Content, err)
		}
		b.eval(`document.querySelector('#said').textContent = ''`)
		if strings.Contains(text, "\x00") {
			continue
		}
		n, err := s.st.Notes().Write(t.Context(), name+".md", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		b.open(view("note-edit", "path", name+".md"))
		b.press("Save")
		b.text("Saved as version")
		if got, err := s.st.Notes().Read(t.Context(), name+".md"); err != nil || string(got.Content) != text ||
			got.Version != n.Version {
			t.Errorf("note %s: %q became %q, %v", name, text, got.Content, err)
		}
		b.eval(`document.querySelector('#said').textContent = ''`)
	}
	b.sound()
}

// A button names its memory, and a filter its session, where these differ only by what a browser changes.
func TestAwkwardNames(t *testing.T) {
	s := newSite(t)
	ids := []string{"a\nb", "a\rb", "a\r\nb", "a\x00b", "a\ufffdb", " a", "a "}
	for _, id := range ids {
		s.put(varve.Memory{ID: id, Content: "text", Metadata: session("s" + id)})
	}
	b := s.newTab()
	for i, id := range ids {
		b.step = quote(id)
		b.open(view("list", "session", "s"+id))
		b.until(`document.querySelectorAll('.rows li').length === 1`)
		b.eval(`document.querySelector('#q').select()`)
		b.do(chromedp.KeyEvent("text")) // the filter stays
		b.until(`new URLSearchParams(location.hash.split('?')[1]).get('q') === 'text' &&
			!document.querySelector('main').hasAttribute('aria-busy')`)
		b.until(`document.querySelectorAll('.rows li').length === 1`)
		b.click(".rows input[type=checkbox]")
		b.press("Forget")
		b.text("Forgot 1 memory")
		b.eval(`document.querySelector('#said').textContent = ''`)
		if n := s.st.Admin().Stats().Memories; n != int64(len(ids)-i-1) {
			t.Fatalf("%d memories", n)
		}
		if _, err := s.st.Get(t.Context(), id); err == nil {
			t.Fatalf("%q is still there", id)
		}
	}
	b.sound()
}

// A memory that is deleted in one tab while another edits it is brought back by the person who saves, and a form that
// is sent twice, since the answer was lost, writes once.
func TestDeletedInAnotherTab(t *testing.T) {
	s := newSite(t)
	s.put(varve.Memory{ID: "a", Content: "one"})
	b := s.newTab()
	c := b.second()
	b.open("edit?id=a")
	c.open("memory?id=a")
	c.press("Forget")
	c.text("deleted")
	b.text("Changed by anna since you began to edit")
	b.do(cdppage.BringToFront(), chromedp.SetValue("textarea[name=content]", "two", chromedp.ByQuery))
	b.press("Save")
	b.text("the memory was deleted since you began to edit")
	b.press("Bring back and save")
	b.text("Saved as version")
	if m, err := s.st.Get(t.Context(), "a"); err != nil || m.Content != "two" {
		t.Errorf("%q, %v", m.Content, err)
	}
	b.open("edit")
	b.do(chromedp.SetValue("textarea[name=content]", "new", chromedp.ByQuery))
	b.eval(`{ const form = document.querySelector('main form'), body = new URLSearchParams(new FormData(form))
		fetch('/page/new', {method: 'POST', body, headers: {Authorization: 'Bearer ` + secret + `',
			'Varve-Store': '` + s.st.Admin().Stats().UUID + `'}}).then(r => { window.sent = r.status }) }`)
	b.until(`window.sent === 200`)
	b.press("Save")
	b.text("Saved as version")
	if n := s.st.Admin().Stats().Memories; n != 2 {
		t.Errorf("%d memories", n)
	}
	b.sound("status of 409")
	c.sound()
}
