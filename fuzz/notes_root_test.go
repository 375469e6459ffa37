package fuzz

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/sim"
)

// root is an adopted folder: it has to exist.
const root = "vault"

// inRoot writes a note in the adopted folder, or reads one, after the folders of notes have been quiet or at once.
func (w *noter) inRoot(p *sim.Proc, st *varve.Store, rng *rand.Rand) {
	path := fmt.Sprintf("%s/%d/%d.md", root, rng.IntN(2), rng.IntN(5))
	var err error
	if rng.IntN(3) > 0 {
		w.did["write in the root"]++
		s := w.text(rng)
		w.everUsed[path] = true
		if _, err = st.Notes().Write(ctx, path, []byte(s)); err == nil {
			w.acked[s], w.rooted[path] = path, true
		}
	} else {
		w.did["read in the root"]++
		if rng.IntN(2) == 0 {
			p.Sleep(3 * time.Second)
		}
		was := w.rooted[path]
		if _, err = st.Notes().Read(ctx, path); errors.Is(err, varve.ErrNotFound) && !was {
			err = nil
		}
	}
	if err != nil {
		w.bad("%s: in the root: %v", p.Name, err)
	}
}

// inRoots reads all notes of the adopted folder: none is deleted.
func (w *noter) inRoots(when string, st *varve.Store) {
	for path := range w.rooted {
		if _, err := st.Notes().Read(ctx, path); err != nil {
			w.bad("%s: %s: %v", when, path, err)
		}
	}
}

// vanish is a user who moves the adopted folder, or all notes, out of the store.
func (w *noter) vanish(fsys vfs.FS, rng *rand.Rand) error {
	record := filepath.Join(dir, filepath.FromSlash(note.AdoptedFile))
	if _, err := fsys.Stat(record); errors.Is(err, os.ErrNotExist) {
		return ignoreGone(w.adopt(fsys, record))
	}
	if rng.IntN(4) > 0 {
		return nil
	}
	w.n++
	from := filepath.Join(dir, "notes")
	if rng.IntN(3) > 0 {
		from = filepath.Join(from, root)
	}
	err := fsys.Rename(from, filepath.Join(filepath.Dir(dir), fmt.Sprintf("gone%d", w.n)))
	if err == nil {
		w.did["vanished"]++
	}
	return ignoreGone(err)
}

// adopt writes the record of an adopted folder.
func (w *noter) adopt(fsys vfs.FS, record string) error {
	f, err := fsys.OpenFile(record, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(`{"link":"/link","folder":"`+root+`","state":"adopted"}`+"\n"), 0)
	return errors.Join(err, f.Sync(), f.Close(), fsys.SyncDir(filepath.Dir(record)))
}

// restored reads the notes of the adopted folder until all have their files again.
func (w *noter) restored(p *sim.Proc, o *varve.Options) {
	st, err := varve.Open(ctx, dir, o)
	if err != nil {
		w.bad("the store does not open: %v", err)
		return
	}
	for range 3 {
		p.Sleep(3 * time.Second)
		w.inRoots("restoring", st)
		if err := st.Flush(ctx); err != nil {
			w.bad("restoring: flush: %v", err)
		}
	}
	for path := range w.rooted {
		if _, err := p.FS.Stat(filepath.Join(dir, "notes", filepath.FromSlash(path))); err != nil {
			w.bad("restored: %v", err)
		}
	}
	if err := st.Close(); err != nil {
		w.bad("close: %v", err)
	}
	record := filepath.Join(dir, filepath.FromSlash(docfile.RestoringFile))
	if _, err := p.FS.Stat(record); !errors.Is(err, os.ErrNotExist) {
		w.bad("the restoring does not end: %v", err)
	}
}

// TestSimNotesVanished: while an adopted folder, or all notes, vanish again and again, and processes that restore their
// files are killed, no note in the adopted folder counts as deleted.
func TestSimNotesVanished(t *testing.T) {
	simulateNotes(t, 2, 100, func(w *noter) { w.editing, w.vanishing = true, true })
}
