package page

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/working"
)

var tasksFile = flag.String("tasks", "", "file for the table of TestTasks")

// person uses a tab as a person does, and counts clicks and keys.
type person struct {
	*tab
	clicks, keys int
}

// clickOn clicks what a selector names.
func (p *person) clickOn(selector string) {
	p.t.Helper()
	p.clicks++
	p.click(selector)
}

// pressOn clicks a button or a link of the view by its text.
func (p *person) pressOn(label string) {
	p.t.Helper()
	p.clicks++
	p.press(label)
}

// key presses a key.
func (p *person) key(k string, options ...chromedp.KeyOption) {
	p.t.Helper()
	p.keys++
	p.do(chromedp.KeyEvent(k, options...))
}

// write types a text into the field that has the focus.
func (p *person) write(text string) {
	p.t.Helper()
	p.keys += len([]rune(text))
	p.do(chromedp.KeyEvent(text))
}

// save presses Ctrl+Enter.
func (p *person) save() {
	p.t.Helper()
	p.key(kb.Enter, chromedp.KeyModifiers(input.ModifierCtrl))
}

// search goes to the search by its key and types words.
func (p *person) search(words string) {
	p.t.Helper()
	p.keys++ // with its text in the event of the key, as of a keyboard: the page keeps the text out of the field
	p.do(input.DispatchKeyEvent(input.KeyDown).WithKey("/").WithCode("Slash").WithText("/"),
		input.DispatchKeyEvent(input.KeyUp).WithKey("/").WithCode("Slash"))
	p.until(`document.activeElement.id === 'q'`)
	p.write(words)
	p.until(`new URLSearchParams(location.hash.split('?')[1]).get('q') === ` + quote(words) +
		` && !document.querySelector('main').hasAttribute('aria-busy')`)
}

// view waits until a view is shown whose heading has a text.
func (p *person) view(heading string) {
	p.t.Helper()
	p.until(`document.querySelector('main h1').innerText.includes(` + quote(heading) +
		`) && !document.querySelector('main').hasAttribute('aria-busy')`)
}

// to goes to a view by its link in the head of the page.
func (p *person) to(fragment, heading string) {
	p.t.Helper()
	p.clickOn("nav a[href=" + quote(fragment) + "]")
	p.until(`document.querySelector('main h1').innerText.trim() === ` + quote(heading) +
		` && !document.querySelector('main').hasAttribute('aria-busy')`)
}

// task is something that a person wants of the page.
type task struct {
	what string
	do   func(p *person)
	// done reports whether the store or the page is as the person wanted it.
	done func(s *site) error
}

// content returns a check of a memory's text; "": there is no such memory.
func content(id, want string) func(s *site) error {
	return func(s *site) error {
		m, err := s.st.Get(s.t.Context(), id)
		if want == "" && err == nil {
			return fmt.Errorf("%s is still there", id)
		}
		if want != "" && (err != nil || m.Content != want) {
			return fmt.Errorf("%s has %q, %w", id, m.Content, err)
		}
		return nil
	}
}

func noteText(path, want string) func(s *site) error {
	return func(s *site) error {
		n, err := s.st.Notes().Read(s.t.Context(), path)
		if err != nil || !strings.Contains(string(n.Content), want) {
			return fmt.Errorf("%s has %q, %w", path, n.Content, err)
		}
		return nil
	}
}

func nothing(*site) error { return nil }

// tasks are what people want of a page that shows what agents know, in the order in which they are done.
var tasks = []task{
	{"find what was said about the ferry", func(p *person) {
		p.search("ferry")
		p.text("by coder")
		p.text("in content")
	}, nothing},
	{"correct it: Varenna, not Como", func(p *person) {
		p.key(kb.ArrowDown)
		p.key(kb.Enter)
		p.view("said-ferry")
		p.key("e")
		p.view("Edit")
		p.until(`document.activeElement.name === 'content'`)
		p.key(kb.End, chromedp.KeyModifiers(input.ModifierCtrl))
		for range len("Como") {
			p.key(kb.Backspace)
		}
		p.write("Varenna")
		p.save()
		p.text("Saved as version")
	}, content("said-ferry", "Ada took the ferry to Varenna")},
	{"see who wrote it before, and what was changed", func(p *person) {
		p.text("coder")
		p.pressOn("what changed")
		p.view("What changed")
		p.until(`document.querySelector('del').textContent === 'Como'`)
	}, nothing},
	{"put the earlier text back", func(p *person) {
		p.until(`document.querySelector('main form button').textContent.startsWith('Restore version')`)
		p.clickOn("main form button")
		p.text("Restored version")
	}, content("said-ferry", "Ada took the ferry to Como")},
	{"see all of its session, in the order in which it happened", func(p *person) {
		p.pressOn("its session")
		p.view("Memories")
		p.text("packs a coat")
	}, nothing},
	{"forget one memory", func(p *person) {
		p.search("coat")
		p.key(kb.ArrowDown)
		p.key("x")
		p.pressOn("Forget")
		p.text("Forgot 1 memory")
	}, content("said-coat", "")},
	{"bring it back", func(p *person) {
		p.pressOn("undo…")
		p.view("Undo 1 commit")
		p.pressOn("Undo")
		p.text("Took back 1 change")
	}, content("said-coat", "Ada packs a coat")},
	{"undo all that an agent did in one run", func(p *person) {
		p.to("#/writers", "Writers")
		p.clicks++
		row := `//main//tr[contains(., "robot")]//a[starts-with(@href, "#/undo")]`
		p.do(chromedp.WaitVisible(row, chromedp.BySearch), chromedp.Click(row, chromedp.BySearch))
		p.view("Undo")
		p.pressOn("Undo")
		p.text("Took back 2 changes")
	}, func(s *site) error {
		if err := content("said-rent", "The rent is 800")(s); err != nil {
			return err
		}
		return content("said-wrong", "")(s)
	}},
	{"delete a person: all that is about Bob, for good", func(p *person) {
		p.search("bob")
		p.clickOn(".rows input[type=checkbox]")
		p.clickOn("#all")
		p.pressOn("Purge…")
		p.view("Purge 3 memories?")
		p.write("purge")
		p.key(kb.Enter)
		p.text("3 memories were deleted")
	}, func(s *site) error {
		for i := range 3 {
			if err := content(fmt.Sprint("bob-", i), "")(s); err != nil {
				return err
			}
		}
		return nil
	}},
	{"purge a note about Bob, too", func(p *person) {
		p.search("captain")
		p.key(kb.ArrowDown)
		p.key(kb.Enter)
		p.view("bob.md")
		p.pressOn("Purge…")
		p.view("Purge 1 note?")
		p.write("purge")
		p.key(kb.Enter)
		p.text("1 note was deleted")
	}, func(s *site) error {
		if _, err := s.st.Notes().Read(s.t.Context(), "people/bob.md"); err == nil {
			return fmt.Errorf("it is still there")
		}
		return nil
	}},
	{"find a place in a long note", func(p *person) {
		p.search("harbour timetable")
		p.key(kb.ArrowDown)
		p.key(kb.Enter)
		p.view("lake.md")
		p.until(`document.querySelector('#place').innerText.includes('Chapter 70')`)
		p.until(`(() => { const r = document.querySelector('#place').getBoundingClientRect()
			return r.top >= 0 && r.bottom <= innerHeight })()`)
	}, nothing},
	{"restore yesterday's note", func(p *person) {
		p.to("#/notes", "Notes")
		p.pressOn("today.md")
		p.view("today.md")
		p.pressOn("restore")
		p.text("Restored as version")
	}, noteText("today.md", "# Yesterday")},
	{"write a new note", func(p *person) {
		p.to("#/notes", "Notes")
		p.key("n")
		p.view("New note")
		p.until(`document.activeElement.name === 'path'`)
		p.write("plans/trip.md")
		p.key(kb.Tab)
		p.write("# Trip")
		p.save()
		p.until(`location.hash.startsWith('#/note?')`)
		p.text("Saved as version")
	}, noteText("plans/trip.md", "# Trip")},
	{"write a new memory", func(p *person) {
		p.clickOn(".brand")
		p.view("Memories")
		p.key("n")
		p.view("New memory")
		p.until(`document.activeElement.name === 'content'`)
		p.write("Ada likes trains")
		p.save()
		p.text("Remembered")
	}, func(s *site) error {
		for m := range s.st.Memories(s.t.Context()) {
			if m.Content == "Ada likes trains" {
				return nil
			}
		}
		return fmt.Errorf("it is not there")
	}},
	{"see what one agent wrote since yesterday", func(p *person) {
		p.clickOn("#filters summary")
		p.clickOn("#filters [name=by]")
		p.write("coder")
		p.clickOn("#filters [name=since]")
		p.write("yesterday")
		p.key(kb.Enter)
		p.until(`location.hash.includes('since=yesterday') && location.hash.includes('by=coder')`)
		p.text("by coder")
	}, nothing},
	{"save what is shown as a file", func(p *person) {
		p.pressOn("Export")
		p.text("Exported ")
	}, nothing},
	{"see what is damaged", func(p *person) {
		p.to("#/health", "Health")
		p.pressOn("Verify")
		p.view("Verify")
		p.text("No damage found")
	}, nothing},
	{"take back a file that was set aside", func(p *person) {
		p.to("#/quarantine", "Quarantine")
		p.clickOn("main a.open")
		p.view("said-tea")
		p.pressOn("Restore")
		p.text("Restored as a new version")
	}, content("said-tea", "Ada drinks tea")},
	{"see how a person is connected", func(p *person) {
		p.to("#/graph", "Graph")
		p.pressOn("Eve")
		p.view("Eve")
		p.text("lives in")
	}, nothing},
	{"put an agent's working memory back to a checkpoint", func(p *person) {
		p.to("#/working", "Working memory")
		p.clickOn("main a.open")
		p.view("trip")
		p.pressOn("before the trip")
		p.view("Checkpoint")
		p.pressOn("Restore")
		p.text("Restored; the previous state was saved as checkpoint")
	}, func(s *site) error {
		w, err := s.st.Working().Open(s.t.Context(), working.Scope{Session: "trip"}, nil)
		if err != nil {
			return err
		}
		defer func() { _ = w.Close() }()
		snapshot, err := w.Snapshot(s.t.Context())
		if err != nil || fmt.Sprint(snapshot.Values["step"]) != "1" {
			return fmt.Errorf("step %v, %w", snapshot.Values["step"], err)
		}
		return nil
	}},
}

// fillForTasks puts into the store what the tasks are about.
func (s *site) fillForTasks() {
	t, ctx := s.t, s.t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	about := func(id, text, session string) {
		s.put(varve.Memory{ID: id, Content: text, Metadata: map[string]any{"session_id": session}})
	}
	about("said-ferry", "Ada took the ferry to Como", "trip")
	about("said-coat", "Ada packs a coat", "trip")
	about("said-rent", "The rent is 800", "home")
	for i := range 3 {
		about(fmt.Sprint("bob-", i), fmt.Sprint("Bob said so, number ", i), "talk")
	}
	for i := range 60 {
		about(fmt.Sprint("other-", i), fmt.Sprintf("Something else, of day %d", i), "other")
	}
	robot := varve.WithWriter(ctx, varve.Writer{Program: "robot", Agent: "robot"})
	_, err := s.st.Put(robot, varve.Memory{ID: "said-rent", Content: "The rent is 8000"})
	must(err)
	_, err = s.st.Put(robot, varve.Memory{ID: "said-wrong", Content: "Ada hates tea"})
	must(err)
	note := func(path, text string) {
		_, err := s.st.Notes().Write(ctx, path, []byte(text))
		must(err)
	}
	var long strings.Builder
	long.WriteString("# The lake\n\n")
	for i := range 100 {
		fmt.Fprintf(&long, "## Chapter %d\n\nBoats and weather of day %d.\n\n", i, i)
		if i == 70 {
			long.WriteString("The timetable of the harbour is here.\n\n")
		}
	}
	note("trips/lake.md", long.String())
	note("people/bob.md", "# Bob\n\nHe is a captain.\n")
	note("today.md", "# Yesterday\n\nAll is well.\n")
	note("today.md", "# Today\n\nOverwritten.\n")
	s.put(relation("Ada", "works with", "Eve"))
	s.put(relation("Eve", "lives in", "Como"))
	w, err := s.st.Working().Open(ctx, working.Scope{Session: "trip"}, nil)
	must(err)
	must(w.Set(ctx, "step", 1))
	_, err = w.Checkpoint(ctx, "before the trip")
	must(err)
	must(w.Set(ctx, "step", 2))
	must(w.Close())
	s.put(varve.Memory{ID: "said-tea", Content: "Ada drinks tea"})
	must(s.st.Flush(ctx))
	s.setAside("said-tea")
}

// A person does twenty tasks by clicks and keys. The table that is printed has how long each takes beyond reading and
// thinking, and how many clicks and keys.
func TestTasks(t *testing.T) {
	s := newSite(t)
	s.fillForTasks()
	p := &person{tab: s.newTab()}
	p.downloads()
	var table strings.Builder
	table.WriteString("| | task | clicks | keys | seconds |\n|--:|---|--:|--:|--:|\n")
	for i, x := range tasks {
		p.clicks, p.keys = 0, 0
		began := time.Now()
		p.step = x.what
		x.do(p)
		took := time.Since(began)
		if err := x.done(s); err != nil {
			t.Errorf("%s: %v", x.what, err)
		}
		if p.clicks > mostClicks {
			t.Errorf("%s takes %d clicks", x.what, p.clicks)
		}
		fmt.Fprintf(&table, "| %d | %s | %d | %d | %.1f |\n", i+1, x.what, p.clicks, p.keys, took.Seconds())
	}
	t.Logf("\n%s", table.String())
	if *tasksFile != "" {
		if err := os.WriteFile(*tasksFile, []byte(table.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.sound()
}

// mostClicks is how many clicks a task may take.
const mostClicks = 4

// setAside moves the file of a memory into the quarantine, as a person does with a file that looks wrong, and forgets
// the memory.
func (s *site) setAside(id string) {
	s.t.Helper()
	dir := s.st.Admin().Stats().Dir
	doc, err := s.st.Admin().GetRaw(s.t.Context(), id)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "quarantine", id+".json"), doc, 0o600)
	}
	if err == nil {
		err = s.st.Delete(s.t.Context(), id)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// downloads lets the browser save files into a folder, which is returned.
func (b *tab) downloads() string {
	b.t.Helper()
	dir := b.t.TempDir()
	b.do(browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(dir))
	return dir
}
