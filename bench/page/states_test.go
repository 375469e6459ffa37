package page

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// fillIn puts a text of some size into a field, as a person who pastes it.
func (b *tab) fillIn(selector, text string, times int) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(selector, chromedp.ByQuery))
	b.eval(`{ const f = document.querySelector(` + quote(selector) + `)
		f.value = ` + quote(text) + `.repeat(` + number(times) + `)
		f.dispatchEvent(new Event('input', {bubbles: true})) }`)
}

// What cannot be saved on a full disk stays in its form, with what to do, and is saved when there is room.
func TestFullDisk(t *testing.T) {
	fixture.OnSmallDisks(t, func(t *testing.T, d *fixture.SmallDisk) {
		s := newSiteIn(t, d.Dir, d.O)
		s.put(varve.Memory{ID: "a", Content: "before"})
		if _, err := s.st.Notes().Write(t.Context(), "a.md", []byte("before")); err != nil {
			t.Fatal(err)
		}
		b := s.newTab()
		for _, form := range []string{"edit?id=a", "edit", "note-edit?path=a.md"} {
			b.step = form
			b.open(form)
			b.fillIn("textarea[name=content]", form+" much text ", 1000)
			d.Fill(4096)
			var err error
			for i := 0; err == nil && i < 1000; i++ { // what is left of the log
				_, err = s.st.Put(t.Context(), varve.Memory{ID: "filler", Content: strings.Repeat("y", 1000)})
			}
			if !errors.Is(err, varve.ErrDiskFull) {
				t.Fatal(err)
			}
			b.press("Save")
			b.text("Not saved")
			b.text("free space on the disk")
			b.until(`document.querySelector('textarea').value.length === ` + number(1000*len(form+" much text ")))
			d.Empty()
			b.press("Save")
			b.text("History")
			b.text(form + " much text")
		}
		d.Fill(4096)
		b.open("health")
		b.text("make room, or delete memories")
		b.open("list")
		b.text("much text")
		d.Empty()
		b.sound("status of 507")
	})
}

// The page of a store that may only be read has no buttons, and says why.
func TestReadOnlyStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	st, err := varve.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(t.Context(), varve.Memory{ID: "a", Content: "the text"}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	s := newSiteIn(t, dir, varve.Options{ReadOnly: true})
	b := s.newTab()
	for _, v := range []string{"list", "memory?id=a", "log", "sessions", "notes"} {
		b.open(v)
		b.until(`document.querySelectorAll('main form[method=post] button, main input[type=checkbox]').length === 0`)
	}
	b.open("edit?id=a")
	b.text("open Health to see why the store cannot be written")
	b.open("health")
	b.text("read-only")
	b.sound("status of 403")
}

// newFollowing returns a site whose server follows the store at its path, and a tab in which a form of memory a has a
// text that is not saved.
func newFollowing(t *testing.T) (s *site, b *tab, dir string) {
	t.Helper()
	s = newSite(t)
	s.stop()
	s.follows = true
	s.start()
	s.put(varve.Memory{ID: "a", Content: "before"})
	b = s.newTab()
	b.until(`document.querySelector('#live').textContent === 'live'`)
	b.open("edit?id=a")
	b.fillIn("textarea[name=content]", "after", 1)
	return s, b, s.st.Admin().Stats().Dir
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// A store that is moved away while it is looked at: the page says so and shows nothing of it, what was entered stays,
// and is saved when the store is there again.
func TestMovedStore(t *testing.T) {
	_, b, dir := newFollowing(t)
	rename(t, dir, dir+"-away")
	b.press("Save")
	b.text("the store's folder was replaced")
	b.text("if the store's folder is missing, restore the store from a backup")
	b.until(`document.querySelector('textarea').value === 'after'`)
	c := b.second() // of a person who looks now
	c.text("the store's folder was replaced")
	c.until(`!document.body.innerText.includes('before')`)
	rename(t, dir+"-away", dir)
	c.open("memory?id=a")
	c.text("before")
	b.press("Save")
	b.text("Saved as version")
	b.open("memory?id=a")
	b.text("after")
	c.sound("status of 503")
	b.sound("status of 503")
}

// Another store is put in the place of the one that is looked at: the views are of the other one, and a form of the
// first one changes nothing there.
func TestStoreInItsPlace(t *testing.T) {
	_, b, dir := newFollowing(t)
	other, err := varve.Open(t.Context(), dir+"-other", nil)
	if err == nil {
		_, err = other.Put(t.Context(), varve.Memory{ID: "a", Content: "of the other store"})
	}
	if err == nil {
		err = other.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	rename(t, dir, dir+"-away")
	rename(t, dir+"-other", dir)
	c := b.second()
	c.text("of the other store")
	for range 2 { // the second time the page knows of the other store
		b.press("Save")
		b.text("the store's folder was replaced")
		b.text("open the document again, then repeat the change")
		b.until(`document.querySelector('textarea').value === 'after'`)
	}
	c.open("memory?id=a")
	c.text("of the other store")
	c.open("edit?id=a")
	c.fillIn("textarea[name=content]", "corrected there", 1)
	c.press("Save")
	c.text("Saved as version")
	c.text("corrected there")
	c.sound()
	b.sound("status of 503")
}

// A store whose files are damaged while it is looked at: what is left is shown, with what cannot be read and what to
// do.
func TestDamagedStore(t *testing.T) {
	s := newSite(t)
	for i := range 3 {
		s.put(varve.Memory{ID: "a", Content: "version " + number(i)})
	}
	s.put(varve.Memory{ID: "b", Content: "sound"})
	if err := s.st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir := s.st.Admin().Stats().Dir
	b := s.newTab()
	b.open("memory?id=a")
	b.text("version 2")
	if err := os.WriteFile(filepath.Join(dir, "memories", "a.json"), []byte("\x00\x00garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.open("list")
	b.text("sound")
	b.open("memory?id=a") // the memory is what it was
	b.text("version 2")
	b.open("verify")
	b.text("memories/a.json")
	b.text("Next:")
	logs, err := filepath.Glob(filepath.Join(dir, "wal", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range logs {
		if info, err := os.Stat(log); err != nil || info.Size() < 64<<10 || !strings.Contains(filepath.Base(log), ".") {
			continue
		}
		f, err := os.OpenFile(log, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte(strings.Repeat("garbage ", 40)), 200); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	b.open("memory?id=a")
	b.text("cannot be read")
	b.press("Verify")
	b.text("finding")
	b.text("Next:")
	b.sound()
}
