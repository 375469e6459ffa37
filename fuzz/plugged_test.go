package fuzz

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/views"
	"github.com/varve-db/varve/tests/letters"
)

// plug adds the view of package letters to the options of a store.
func plug(o *varve.Options) { storetest.Of(o).Views = []views.Maker{letters.New} }

// lettered checks the view's file after a flush: it exists, if any process of the store has the view,
// and has the ids of the index.
func (a *actor) lettered(fsys vfs.FS, ids []string) {
	if !a.h.plugged {
		return
	}
	text, err := vfs.ReadFile(fsys, filepath.Join(a.h.dir, letters.Folder, letters.File), 1<<30)
	var has struct {
		IDs []string `json:"ids"`
	}
	if err == nil {
		err = json.Unmarshal(text, &has)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		a.h.bad("%s: after a flush the view has no file", a.name)
	case err != nil:
		a.h.bad("%s: the view's file: %v", a.name, err)
	case !slices.Equal(has.IDs, ids):
		a.h.bad("%s: the view's file has %q, the index %q", a.name, has.IDs, ids)
	}
	for f, err := range a.st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil || f.Path == letters.Folder {
			a.h.bad("%s: verify: %+v, %v", a.name, f, err)
		}
	}
}

// plugged adds one more view, which only internal/views knows.
func plugged(w *world) { w.plugged, w.h.plugged = true, true }

func TestSimPlugged(t *testing.T) { simulate(t, 3, 60, plugged) }

// With an editor, on volumes that lack features.
func TestSimPluggedEdits(t *testing.T) {
	simulate(t, 2, 40, func(w *world) {
		editingLacking(w)
		plugged(w)
	})
}

// With a process that backs up, restores, damages, repairs and moves the store.
func TestSimPluggedUpkeep(t *testing.T) {
	simulate(t, 2, 40, func(w *world) {
		keeping(w)
		plugged(w)
	})
}
