package adopt

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/varve-db/varve/internal/engine"
)

// quietFor is the time for which a folder must be unchanged before a missing file in it counts as deleted: programs
// delete a file while they save it, and a checkout deletes many files.
const quietFor = 2 * time.Second

// unwatched decides about the missing files of a folder if no process watches, in the same way as the watching process:
// it adopts their deletion, or, if adopt_deletions is false in config.json, restores them.
func (ed *Adopter) unwatched(ctx context.Context, k *engine.Kind) error {
	if ed.engine.Log().Processes().Leader() != 0 || ed.engine.Log().Notes().Distrusted() {
		return nil
	}
	if ed.engine.Settings().Reread(); ed.engine.Settings().Unknown() {
		return nil
	}
	c := ed.engine.Settings().Now()
	if adopts := c.AdoptsDeletions(); adopts && !ed.quiet(k) || !adopts && !c.MayRepair() {
		return nil
	}
	// Files that were left missing, because each was the last copy or has no copy, are not searched for again at every
	// read.
	changed := int64(0)
	if at, err := ed.changed(k); err == nil {
		if changed = at.UnixNano(); ed.settled[k.At].Load() == changed {
			return nil
		}
	}
	var ids []string
	for id, err := range ed.engine.IDs(ctx, k, engine.Filters{Expired: true}) {
		if err != nil {
			return err
		}
		if ed.ReallyMissing(ctx, k, id, k.FileName(id)) {
			ids = append(ids, id)
		}
	}
	if err := (&Files{ed}).settle(ctx, k.Name(), ids, true); err != nil {
		return err
	}
	ed.settled[k.At].Store(changed)
	return nil
}

// quiet reports whether a folder has been unchanged for at least quietFor. It also returns true if the folder's time is
// in the future, because the clock is behind that of the file system, or if the time cannot be read.
func (ed *Adopter) quiet(k *engine.Kind) bool {
	at, err := ed.changed(k)
	if err != nil {
		return true // the folder is missing: see Settle
	}
	age := ed.engine.Env().Clock().Sub(at)
	return age < 0 || age >= quietFor
}

// changed returns the time of the last change of a name in the folder of a kind or in one of its subfolders.
func (ed *Adopter) changed(k *engine.Kind) (last time.Time, err error) {
	dirs, err := k.Dirs()
	for _, dir := range dirs {
		info, serr := ed.engine.Env().FS.Stat(dir)
		if errors.Is(serr, fs.ErrNotExist) && dir != dirs[0] {
			continue // removed meanwhile
		}
		if serr != nil {
			return last, serr
		}
		if info.Mtime.After(last) {
			last = info.Mtime
		}
	}
	return last, err
}
