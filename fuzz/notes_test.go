package fuzz

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	versions "github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/sim"
)

// noter is a world of notes: processes that write, edit, append, rename and delete them, and a user who
// saves and removes their files with a program that does not know the store. Each text is used once, so
// that its fate can be determined. Invariants:
//
//   - a text whose writing was acknowledged is in the history, also when the note was renamed or deleted since
//   - an acknowledged line is in the note to which lines are only appended, once
//   - the last text that a person saved in a file is in the history, or its bytes are in the folder
//   - a note has a text that was written or saved, and its file has it too
//   - a search finds each note by its text, with the lines that have the word, and no text that no note has
//   - the store opens without damage, and verify finds nothing
type noter struct {
	s        *sim.Sim
	rng      *rand.Rand
	acts     int
	n        int
	begun    map[string]bool   // texts
	acked    map[string]string // texts to paths
	lines    []string          // acknowledged, of the note that grows
	saved    map[string]string // by path: the last text that the user saved there
	editing  bool
	wrong    []string
	did      map[string]int
	everUsed map[string]bool // paths

	vanishing bool            // the user moves whole folders out of the store: see vanish
	rooted    map[string]bool // paths in an adopted folder that were written, and that nothing deletes
	embeds    bool            // the store has an embedder
}

const growing = "log.md"

var notePaths = []string{"a.md", "d/b.md", "d/c.md", "e/f/g.md", ".h", "moved/x.md", "moved/y.md", "q/b.md", "d"}

func (w *noter) bad(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// text returns the beginning of a text that is used once.
func (w *noter) text(rng *rand.Rand) string {
	w.n++
	s := fmt.Sprintf("token%06d\n%s", w.n, strings.Repeat("line of text\n", rng.IntN(300)*rng.IntN(2)))
	w.begun[s] = true
	return s
}

func (w *noter) work(p *sim.Proc) {
	rng := rand.New(rand.NewPCG(w.rng.Uint64(), 3))
	o := w.options(p)
	for w.acts > 0 {
		st, err := varve.Open(ctx, dir, o)
		if err != nil {
			w.bad("open: %v", err)
			return
		}
		for n := 5 + rng.IntN(40); n > 0 && w.acts > 0; n-- {
			w.acts--
			if w.vanishing && rng.IntN(3) == 0 {
				w.inRoot(p, st, rng)
				continue
			}
			w.step(p.Name, st, rng)
		}
		if err := st.Close(); err != nil {
			w.bad("%s: close: %v", p.Name, err)
			return
		}
	}
}

func (w *noter) step(who string, st *varve.Store, rng *rand.Rand) {
	ns := st.Notes()
	path, to := notePaths[rng.IntN(len(notePaths))], notePaths[rng.IntN(len(notePaths))]
	w.everUsed[path], w.everUsed[to] = true, true
	var what string
	var err error
	switch n := rng.IntN(100); {
	case n < 30:
		what = "write"
		s := w.text(rng)
		if _, err = ns.Write(ctx, path, []byte(s)); err == nil {
			w.acked[s] = path
		}
	case n < 45:
		what = "append"
		w.n++
		line := fmt.Sprintf("line%06d\n", w.n)
		if _, err = ns.Append(ctx, growing, []byte(line)); err == nil {
			w.lines = append(w.lines, line)
		}
	case n < 57:
		what = "edit"
		var has varve.Note
		if has, err = ns.Read(ctx, path); err != nil {
			break
		}
		token, rest, _ := strings.Cut(string(has.Content), "\n")
		w.n++
		next := fmt.Sprintf("token%06d", w.n)
		s := next + "\n" + rest
		w.begun[s] = true
		if _, err = ns.Edit(ctx, path, token, next, varve.IfHash(has.ContentHash)); err == nil {
			w.acked[s] = path
		}
	case n < 67:
		what = "rename"
		_, err = ns.Rename(ctx, path, to)
	case n < 70:
		what = "rename a folder"
		_, err = ns.Rename(ctx, []string{"d", "q", "moved"}[rng.IntN(3)], []string{"d", "q", "moved"}[rng.IntN(3)])
	case n < 77:
		what = "delete"
		err = ns.Delete(ctx, path)
	case n < 82:
		what = "properties"
		_, err = ns.SetProperties(ctx, path, varve.NoteProperties{Tags: []string{fmt.Sprint(rng.IntN(3))}})
	case n < 86:
		what = "search"
		err = w.search(st, fmt.Sprintf("token%06d", 1+rng.IntN(w.n+1)))
	case n < 90 && w.embeds:
		what = "embed"
		_, err = st.Vectors().EmbedPending(ctx)
	case n < 96:
		what = "flush"
		err = st.Flush(ctx)
	default:
		what = "compact"
		err = st.Admin().Compact(ctx)
	}
	w.did[what]++
	for _, ok := range []error{varve.ErrInvalid, varve.ErrNotFound, varve.ErrConflict, varve.ErrBatchTooLarge} {
		if errors.Is(err, ok) {
			return
		}
	}
	if err != nil && !isRefusal(err) && !errors.Is(err, varve.ErrOutcomeUnknown) {
		w.bad("%s: %s %s: %v", who, what, path, err)
	}
}

// search looks for a word while others write: a hit has it.
func (w *noter) search(st *varve.Store, word string) error {
	hits, err := st.Search(ctx, varve.Query{Text: word})
	for _, h := range hits {
		if h.Note == nil || !strings.Contains(h.Note.Text, word) {
			w.bad("a search for %s finds %q: %.40v", word, h.ID, h.Note)
		}
	}
	return err
}

// searched looks for all notes.
func (w *noter) searched(when string, st *varve.Store) {
	has := map[string]string{}
	for e, err := range st.Notes().List(ctx, "", 0) {
		var n varve.Note
		if err == nil {
			n, err = st.Notes().Read(ctx, e.Path)
		}
		switch {
		case err == nil && e.Path != growing:
			has[e.Path] = string(n.Content)
		case err != nil && !errors.Is(err, varve.ErrNotFound):
			w.bad("%s: %s: %v", when, e.Path, err)
		}
	}
	hits, err := st.Search(ctx, varve.Query{Text: "token*", Kinds: []varve.Kind{varve.KindNote}, Limit: 1000})
	if err != nil {
		w.bad("%s: search: %v", when, err)
	}
	found := map[string]bool{}
	for _, h := range hits {
		found[h.ID] = true
		if token, _, _ := strings.Cut(has[h.ID], "\n"); token == "" || !strings.Contains(h.Note.Text, token) ||
			h.Note.From != 1 {
			w.bad("%s: a search finds %s %d-%d: %.40q, and it is %.40q", when, h.ID, h.Note.From, h.Note.To, h.Note.Text,
				has[h.ID])
		}
	}
	for path, text := range has {
		if !found[path] {
			w.bad("%s: no search finds %s, which is %.40q", when, path, text)
		}
	}
}

// edit is a user with an editor that saves by renaming, and with rm.
func (w *noter) edit(p *sim.Proc) {
	rng := rand.New(rand.NewPCG(w.rng.Uint64(), 5))
	for w.acts > 0 {
		w.acts--
		p.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
		change := w.save
		if w.vanishing {
			change = w.vanish
		}
		if err := change(p.FS, rng); err != nil {
			w.bad("%s: %v", p.Name, err)
		}
	}
}

func (w *noter) save(fsys vfs.FS, rng *rand.Rand) error {
	path := notePaths[rng.IntN(len(notePaths)-1)]
	w.everUsed[path] = true
	folder := filepath.Join(dir, "notes")
	place := filepath.Join(folder, filepath.FromSlash(note.System().Path(path)))
	parent, err := fsys.Stat(filepath.Dir(place))
	if err != nil || !parent.Mode.IsDir() {
		return nil
	}
	if info, err := fsys.Stat(place); err == nil && !info.Mode.IsRegular() {
		return nil
	}
	if rng.IntN(5) == 0 {
		w.did["removed by hand"]++
		delete(w.saved, path)
		err := fsys.Remove(place)
		if err == nil || gone(err) {
			return nil
		}
		return err
	}
	s := w.text(rng)
	temp := filepath.Join(filepath.Dir(place), fmt.Sprintf(".save%d", w.n))
	f, err := fsys.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return ignoreGone(err)
	}
	_, err = f.WriteAt([]byte(s), 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	delete(w.saved, path)
	if err := fsys.Rename(temp, place); err != nil {
		return ignoreGone(err)
	}
	if err := fsys.SyncDir(filepath.Dir(place)); err != nil {
		return ignoreGone(err)
	}
	w.saved[path] = s
	w.did["saved by hand"]++
	return nil
}

func gone(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrExist) }

// ignoreGone ignores errors because a process of the store has removed or replaced a folder meanwhile.
func ignoreGone(err error) error {
	if err == nil || gone(err) || strings.Contains(err.Error(), "directory") {
		return nil
	}
	return err
}

func (w *noter) look(fsys vfs.FS, o *varve.Options) {
	st, err := varve.Open(ctx, dir, o)
	if err != nil {
		w.bad("the store does not open: %v", err)
		return
	}
	if r := st.Admin().OpenReport(); r.Damage != nil || r.Rebuilt != nil || len(r.Problems) > 0 {
		w.bad("open: damage %v, rebuilt %v, problems %v", r.Damage, r.Rebuilt, r.Problems)
	}
	for _, when := range []string{"opened", "flushed"} {
		w.compare(when, st)
		w.inRoots(when, st)
		if err := st.Flush(ctx); err != nil {
			w.bad("flush: %v", err)
		}
	}
	w.kept(st, fsys)
	if w.embeds {
		w.meant(st)
	}
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err == nil && w.editing && strings.Contains(f.String(), "deleted by hand") {
			continue // reads do not examine a folder that has changed a moment ago
		}
		if err != nil || f.Severity != varve.SeverityInfo && f.Next != "" {
			w.bad("verify: %s %v", f.String(), err)
		}
	}
	if err := st.Close(); err != nil {
		w.bad("close: %v", err)
	}
}

// compare reads all notes.
func (w *noter) compare(when string, st *varve.Store) {
	for path := range w.everUsed {
		n, err := st.Notes().Read(ctx, path)
		switch {
		case errors.Is(err, varve.ErrNotFound):
		case err != nil:
			w.bad("%s: %s: %v", when, path, err)
		case !w.begun[string(n.Content)]:
			w.bad("%s: %s is %.40q, which was not written", when, path, n.Content)
		}
	}
	w.searched(when, st)
	n, err := st.Notes().Read(ctx, growing)
	if err != nil && (!errors.Is(err, varve.ErrNotFound) || len(w.lines) > 0) {
		w.bad("%s: %s: %v", when, growing, err)
	}
	for _, line := range w.lines {
		if c := strings.Count(string(n.Content), line); c != 1 {
			w.bad("%s: %q is %d times in %s", when, line, c, growing)
		}
	}
}

// kept searches for all texts in the history, and for those that were saved by hand also in the folder.
func (w *noter) kept(st *varve.Store, fsys vfs.FS) {
	has := map[string]bool{}
	for path := range w.everUsed {
		inner := storetest.Inner(st) // of the path, including notes that were there before another one was moved to it
		inner.History.Each(ctx, inner.Notes.Kind(), path, func(v versions.Version, err error) bool {
			if err != nil {
				w.bad("the history of %s: %v", path, err)
			}
			has[string(v.Document)] = true
			return true
		})
	}
	for s, path := range w.acked {
		if !has[s] {
			w.bad("%.11q, acknowledged at %s, is not in the history", s, path)
		}
	}
	var files []string
	for _, folder := range []string{"notes", "quarantine", "tmp"} {
		files = append(files, texts(fsys, filepath.Join(dir, folder))...)
	}
	for path, s := range w.saved {
		if has[s] {
			continue
		}
		found := false
		for _, f := range files {
			found = found || f == s
		}
		if !found {
			w.bad("%.11q, saved by hand in %s, is nowhere", s, path)
		}
	}
}

// texts returns the contents of all files in a folder.
func texts(fsys vfs.FS, folder string) (list []string) {
	entries, err := vfs.ReadTypes(fsys, folder)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name)
		if e.Type.IsDir() {
			list = append(list, texts(fsys, path)...)
		} else if b, err := vfs.ReadFile(fsys, path, 1<<20); err == nil {
			list = append(list, string(b))
		}
	}
	return list
}

func (w *noter) run(processes, boots int) error {
	w.s.OnKill = func(p *sim.Proc) {
		if p.Name == "editor" {
			w.s.Process("editor", w.edit)
			return
		}
		w.s.Process("again", w.work)
	}
	for boot := range boots {
		w.acts = 30 + w.rng.IntN(150)
		w.s.Odds = sim.Odds{Switch: 2 + w.rng.IntN(30), Stop: 3000, Kill: []int{0, 4000, 1500}[w.rng.IntN(3)],
			Cut: []int{0, 1000, 5000}[w.rng.IntN(3)]}
		for i := range processes {
			w.s.Process(fmt.Sprint("p", i), w.work)
		}
		if w.editing {
			w.s.Process("editor", w.edit)
		}
		if err := w.s.Run(); err != nil {
			return fmt.Errorf("boot %d: %w", boot, err)
		}
		if !w.s.WasCut() && w.rng.IntN(2) == 0 {
			w.s.Cut(w.s.Patterns[w.rng.IntN(len(w.s.Patterns))])
		}
		w.s.Odds = sim.Odds{}
		w.s.Process("look", func(p *sim.Proc) {
			o := w.options(p)
			if w.vanishing {
				w.restored(p, o)
			}
			w.look(p.FS, o)
		})
		if err := w.s.Run(); err != nil {
			return fmt.Errorf("look after boot %d: %w", boot, err)
		}
		if len(w.wrong) > 0 {
			return fmt.Errorf("boot %d:\n%s", boot, joinWrong(w.wrong))
		}
	}
	return nil
}

func simulateNotes(t *testing.T, processes, seeds int, change func(*noter)) {
	simulateSeeds(t, seeds, func(seed uint64) (*sim.Sim, map[string]int, func() error) {
		w := &noter{s: sim.New(seed), rng: rand.New(rand.NewPCG(seed, 78)), begun: map[string]bool{},
			acked: map[string]string{}, saved: map[string]string{}, did: map[string]int{}, everUsed: map[string]bool{},
			rooted: map[string]bool{}}
		if change != nil {
			change(w)
		}
		return w.s, w.did, func() error { return w.run(processes, 1+int(seed%3)) }
	})
}

func TestSimNotes(t *testing.T) { simulateNotes(t, 2, 150, nil) }

func TestSimNotesLacking(t *testing.T) {
	simulateNotes(t, 2, 50, func(w *noter) {
		w.s.Disk().SetLacks(crash.Lacks{Exchange: true, Link: true, Lease: true, Barrier: true})
	})
}

func TestSimNotesEdited(t *testing.T) {
	simulateNotes(t, 2, 150, func(w *noter) { w.editing = true })
}
