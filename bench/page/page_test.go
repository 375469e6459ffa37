package page

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/working"
)

func session(id string) map[string]any {
	return map[string]any{"session_id": id, "tags": []any{"travel"}}
}

// A person finds what was said, corrects it, sees who wrote what, restores, forgets, brings back, and purges, all by
// clicks.
func TestClicks(t *testing.T) {
	s := newSite(t)
	s.put(varve.Memory{ID: "ferry", Content: "Ada took the ferry to Como", Metadata: session("trip")})
	s.put(varve.Memory{ID: "tea", Content: "Ada drinks green tea", Metadata: session("home")})
	b := s.newTab()
	b.until(`location.hash === '#/list' && sessionStorage.length === 1`)

	b.do(chromedp.SendKeys("#q", "ferr", chromedp.ByQuery)) // an unfinished word
	b.until(`document.querySelectorAll('.rows li').length === 1`)
	b.text("in content")
	b.until(`document.activeElement.id === 'q'`)
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.text("History")

	b.do(chromedp.KeyEvent("e"))
	b.do(chromedp.WaitVisible("textarea[name=content]"))
	b.do(chromedp.SetValue("textarea[name=content]", "Ada took the ferry to Bellagio", chromedp.ByQuery),
		chromedp.Focus("textarea[name=content]"), chromedp.KeyEvent(kb.Enter,
			chromedp.KeyModifiers(input.ModifierCtrl)))
	b.text("Saved as version")
	b.text("anna")
	b.press("what changed")
	b.text("Bellagio")
	b.until(`document.querySelector('del').textContent === 'Como' &&
		document.querySelector('ins').textContent === 'Bellagio'`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.text("History")
	b.press("restore")
	b.text("Restored version")
	if m, err := s.st.Get(t.Context(), "ferry"); err != nil || m.Content != "Ada took the ferry to Como" {
		t.Errorf("%q, %v", m.Content, err)
	}

	b.press("Forget")
	b.text("deleted")
	b.press("Bring back")
	b.text("Brought back")

	b.press("Purge…")
	b.text("cannot be undone")
	b.do(chromedp.SendKeys("input[name=confirm]", "purge", chromedp.ByQuery))
	b.press("Purge")
	b.text("1 memory was deleted")
	b.open("memory?id=ferry")
	b.text("not found")

	b.open("log")
	b.text("created tea")
	for _, v := range []string{"list", "notes", "assemblies", "graph", "sessions", "writers", "working",
		"quarantine", "health", "verify"} {
		b.open(v)
	}
	b.sound("status of 404")
}

// Memories are marked and forgotten together, and the log undoes that.
func TestMarked(t *testing.T) {
	s := newSite(t)
	for i := range 5 {
		s.put(varve.Memory{ID: fmt.Sprint("m", i), Content: fmt.Sprint("text ", i)})
	}
	b := s.newTab()
	b.click(".rows li:nth-child(1) input")
	b.click(".rows li:nth-child(3) input")
	b.text("2 memories marked")
	b.press("Forget")
	b.text("Forgot 2 memories")
	b.press("undo…")
	b.text("Undo 1 commit")
	b.press("Undo")
	b.text("Took back 2 changes")
	if n := s.st.Admin().Stats().Memories; n != 5 {
		t.Errorf("%d memories", n)
	}
	b.sound()
}

// Two tabs edit one memory: the second one sees what the first has written, and overwrites nothing unseen.
func TestTwoTabs(t *testing.T) {
	s := newSite(t)
	s.put(varve.Memory{ID: "a", Content: "one two three"})
	b := s.newTab()
	c := b.second()
	b.open("edit?id=a")
	c.open("edit?id=a")
	b.do(chromedp.SetValue("textarea[name=content]", "one TWO three", chromedp.ByQuery))
	b.press("Save")
	b.text("Saved as version")
	c.text("Changed by anna since you began to edit")
	c.do(chromedp.SetValue("textarea[name=content]", "one two THREE", chromedp.ByQuery))
	c.press("Save")
	c.text("has changed the memory since you began to edit")
	c.until(`document.querySelector('textarea').value === 'one two THREE' &&
		document.querySelector('ins').textContent === 'TWO'`)
	if m, _ := s.st.Get(t.Context(), "a"); m.Content != "one TWO three" {
		t.Errorf("overwritten: %q", m.Content)
	}
	c.do(chromedp.SetValue("textarea[name=content]", "one TWO THREE", chromedp.ByQuery))
	c.press("Save over the newest version")
	c.text("Saved as version")
	if m, _ := s.st.Get(t.Context(), "a"); m.Content != "one TWO THREE" {
		t.Errorf("not saved: %q", m.Content)
	}
	b.sound()
	c.sound("status of 409")
}

// The server ends and starts again while a form is open: what was entered stays, and is saved.
func TestRestart(t *testing.T) {
	s := newSite(t)
	s.put(varve.Memory{ID: "a", Content: "before"})
	b := s.newTab()
	b.open("edit?id=a")
	b.do(chromedp.SetValue("textarea[name=content]", "after", chromedp.ByQuery))
	s.stop()
	b.text("not connected")
	b.press("Save")
	b.text("What you entered is still here")
	s.start()
	b.until(`document.querySelector('#live').textContent === 'live'`)
	b.until(`document.querySelector('textarea').value === 'after'`)
	b.press("Save")
	b.text("Saved as version")
	b.sound("Failed to load resource")
}

// What others write appears without a click.
func TestLive(t *testing.T) {
	s := newSite(t)
	b := s.newTab()
	b.text("Nothing is stored yet")
	b.until(`document.querySelector('#live').textContent === 'live'`)
	s.put(varve.Memory{ID: "new", Content: "written by an agent"})
	b.text("written by an agent")
	b.open("memory?id=new")
	s.put(varve.Memory{ID: "new", Content: "written again"})
	b.text("written again")
	b.sound()
}

// A token that may only read has no buttons, and one that is unknown is asked for.
func TestReader(t *testing.T) {
	s := newSite(t)
	s.put(varve.Memory{ID: "a", Content: "text"})
	b := s.newTabAs("reader-" + secret)
	for _, v := range []string{"list", "memory?id=a", "purge?id=a", "log", "sessions", "notes"} {
		b.open(v)
		b.until(`document.querySelectorAll('main form[method=post] button, main input[type=checkbox]').length === 0`)
	}
	b.eval(`sessionStorage.clear()`)
	b.eval(`location.hash = '#/health'`)
	b.do(chromedp.WaitVisible("#sign-in"))
	b.do(chromedp.SendKeys("#token", secret, chromedp.ByQuery))
	b.click("#token-form button")
	b.text("The store works as it should")
	b.sound("status of 401")
}

// What was entered stays when it is refused, and is not left without a question.
func TestUnsaved(t *testing.T) {
	s := newSite(t)
	s.put(varve.Memory{ID: "a", Content: "before"})
	b := s.newTab()
	b.open("edit?id=a")
	b.do(chromedp.SetValue("textarea[name=content]", "after", chromedp.ByQuery))
	b.eval(`document.querySelector('main input[name=version]').value = 'x'`)
	b.press("Save")
	b.text("the form has no valid version number → open the memory again")
	b.until(`document.querySelector('textarea').value === 'after'`)
	b.eval(`window.questions = 0; window.answer = false; window.confirm = () => { questions++; return answer }`)
	b.click(`nav a[href="#/log"]`)
	b.until(`questions === 1 && document.querySelector('textarea').value === 'after'`)
	b.eval(`location.hash = '#/health'`)
	b.until(`questions === 2 && location.hash === '#/edit?id=a' && document.querySelector('textarea').value === 'after'`)
	b.do(chromedp.SendKeys("#q", "b", chromedp.ByQuery))
	b.until(`questions === 3 && document.querySelector('textarea').value === 'after'`)
	b.eval(`answer = true`)
	b.click(`nav a[href="#/log"]`)
	b.text("created a")
	b.until(`questions === 4`)
	b.sound("status of 400")
}

// Keys on a marked row forget nothing, and the plan of a purge stays while others write.
func TestMarkedByKeys(t *testing.T) {
	s := newSite(t)
	s.put(varve.Memory{ID: "a", Content: "the first text"})
	b := s.newTab()
	b.until(`document.querySelector('#live').textContent === 'live'`)
	b.click(".rows li:nth-child(1) input")
	b.do(chromedp.Focus(".rows li:nth-child(1) input", chromedp.ByQuery),
		chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(input.ModifierCtrl)), chromedp.KeyEvent(kb.Enter))
	b.text("History")
	if _, err := s.st.Get(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	b.open("list")
	b.click(".rows li:nth-child(1) input")
	b.press("Purge…")
	b.text("Purge 1 memory?")
	s.put(varve.Memory{ID: "b", Content: "the second text"})
	b.until(`document.querySelector('#news') !== null`)
	b.text("Purge 1 memory?")
	b.do(chromedp.SendKeys("input[name=confirm]", "purge", chromedp.ByQuery))
	b.press("Purge")
	b.text("1 memory was deleted")
	s.put(varve.Memory{ID: "c", Content: "the third text"})
	b.until(`document.querySelector('#news') !== null`)
	b.text("1 memory was deleted")
	b.press("All memories")
	b.text("the third text")
	b.sound()
}

// hostile are texts that do harm where they are not escaped.
var hostile = []string{
	`"><script>window.harm=1</script>`, `<img src=x onerror="window.harm=1">`, `javascript:window.harm=1`,
	`'-(window.harm=1)-'`, `</textarea><script>window.harm=1</script>`, `{{.}}${window.harm=1}`,
	`<svg onload=window.harm=1>`,
	"\u202ereversed\u2066", `]]><!--`, `http://evil.example/x.png`,
}

// putHostile puts hostile texts into every place of a store, and returns the views that show them.
func (s *site) putHostile() (views []string) {
	t, ctx := s.t, s.t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	all := strings.Join(hostile, "\n")
	for i, h := range hostile {
		by := varve.WithWriter(ctx, varve.Writer{Program: h, Agent: h, Client: h, Session: h})
		m := varve.Memory{ID: h, Content: all, Metadata: map[string]any{"session_id": h, "tags": []any{h},
			"category": h, "key": h, h: h, "nested": map[string]any{h: []any{h}}}}
		_, err := s.st.Put(by, m)
		must(err)
		m.Content += "again"
		_, err = s.st.Put(by, m)
		must(err)
		views = append(views, view("memory", "id", h), view("edit", "id", h), view("purge", "id", h),
			view("list", "session", h), view("list", "tag", h), view("list", "q", h), view("list", "category", h),
			view("list", "by", h), view("list", "where", h+"="+h), view("list", "since", h), view("list", "sort", h),
			view("log", "by", h), view("log", "id", h), view("undo", "run", h), view("graph", "name", h),
			view("note", "path", h), view("scope", "key", h), view("quarantined", "name", h), view("diff", "id", h),
			view("list", "like", h))
		_, err = s.st.Assemblies().Put(by, varve.Assembly{ID: h, Name: h, Description: h, MemoryIDs: []string{h},
			Tags: []string{h}, Keywords: []string{h}})
		must(err)
		views = append(views, view("assembly", "id", h), view("purge", "kind", "assembly", "id", h))
		path := fmt.Sprintf("n%d.md", i)
		text := "---\nname: " + h + "\ntags: [" + h + "]\n---\n# " + h + "\n\n" + all + "\n\n[" + h + "](" + h +
			") ![x](http://evil.example/" + h + ") <" + h + "> [a]: " + h + "\n\n```" + h + "\n" + h + "\n```\n"
		_, err = s.st.Notes().Write(by, path, []byte(text))
		must(err)
		info, err := s.st.Notes().SetProperties(by, path, varve.NoteProperties{SessionID: h, Tags: []string{h},
			Metadata: map[string]any{h: h}})
		must(err)
		views = append(views, view("note", "path", path), view("note", "path", path, "lines", "5-6"),
			view("note-edit", "path", path), view("purge", "kind", "note", "id", path),
			view("note-diff", "path", path, "from", fmt.Sprint(info.Version), "to", fmt.Sprint(info.Version)))
		other := fmt.Sprintf("n%d %s.txt", i, strings.NewReplacer("/", "", "\u202e", "", "\u2066", "").Replace(h))
		_, err = s.st.Notes().Write(by, other, []byte(text))
		must(err)
		views = append(views, view("note", "path", other))

		e := varve.Memory{ID: "entity:" + h, Content: h, Metadata: map[string]any{"category": "entity", "key": h,
			"entityType": h, "observations": []any{h}}}
		_, err = s.st.Put(by, e)
		must(err)
		_, err = s.st.Put(by, relation(h, h, hostile[(i+1)%len(hostile)]))
		must(err)

		w, err := s.st.Working().Open(ctx, working.Scope{Session: h, Agent: h}, nil)
		must(err)
		must(w.Set(ctx, fmt.Sprint("v", i), map[string]any{h: h}))
		_, err = w.Append(ctx, h)
		must(err)
		_, err = w.Checkpoint(ctx, h)
		must(err)
		views = append(views, view("scope", "key", w.Scope().Key()))
		must(w.Close())

		name := strings.ReplaceAll(h, "/", "") + ".json"
		must(os.WriteFile(filepath.Join(s.st.Admin().Stats().Dir, "quarantine", name), []byte(all), 0o600))
		views = append(views, view("quarantined", "name", name))
	}
	return append(views, "list", "notes", "assemblies", "graph", "sessions", "log", "writers", "working", "quarantine",
		"health", "verify", "list?q=script", "list?q=script&mode=meaning")
}

// Hostile text in every place is shown, runs nothing and asks nothing of another host.
func TestHostile(t *testing.T) {
	s := newSite(t)
	views := s.putHostile()
	s.stop()
	s.embed = func(context.Context, []string) ([][]float32, error) {
		return nil, errors.New(strings.Join(hostile, " "))
	}
	s.start()
	b := s.newTab()
	for _, v := range views {
		b.step = v
		b.open(v)
		b.eval(`document.querySelectorAll('main a.dead, main .md a:not([data-out])').forEach(a =>
			a.dispatchEvent(new MouseEvent('click', {bubbles: true})))`)
		b.until(`window.harm === undefined`)
		b.until(`document.querySelectorAll('main script, main iframe, main object, main img,' +
			'main [onerror], main [onload], main [style]').length === 0`)
	}
	b.open("list")
	b.click("#filters summary")
	b.until(`document.querySelectorAll('#sessions option').length > 0 && window.harm === undefined`)
	b.sound("status of 404", "status of 400", "status of 409", "status of 403")
}

// A memory of 16 MiB is found, shown in part, and not edited here; the page stays as fast as it is.
func TestHugeMemory(t *testing.T) {
	s := newSite(t)
	s.put(varve.Memory{ID: "huge", Content: strings.Repeat("<b>wordy</b> \u202e\n", 1<<20)[:14<<20]})
	s.put(varve.Memory{ID: "meta", Content: "text", Metadata: map[string]any{"all": strings.Repeat("x", 4<<20)}})
	b := s.newTab()
	b.text("wordy")
	b.until(`document.body.innerText.length < 20000`)
	b.do(chromedp.SendKeys("#q", "wordy", chromedp.ByQuery))
	b.until(`document.querySelectorAll('.rows li').length === 1`)
	b.until(`document.body.innerText.length < 20000`)
	for id, size := range map[string]string{"huge": "Show all of the 14 MiB", "meta": "text"} {
		b.open(view("memory", "id", id))
		b.text(size)
		b.until(`document.body.innerText.length < 500000 && !document.querySelector('[data-key=e]')`)
		b.open(view("edit", "id", id))
		b.text("use memctl edit")
	}
	b.sound("status of 413")
}
