package views

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// Views keeps the files of the views of an open store. But for Findings, which changes nothing,
// flush.lock is held in all methods.
type Views struct {
	Engine *engine.Engine
	Makers []Maker

	list []view.View // the instances that write
	due  bool        // files may be missing or behind, whether an index was written or not
	anew bool        // the next round makes all again
}

// Init makes it ready.
func (vs *Views) Init() {
	for _, maker := range vs.Makers {
		vs.list = append(vs.list, maker(vs.Engine))
	}
	vs.due = true
}

func (vs *Views) path(elem ...string) string {
	return filepath.Join(append([]string{vs.Engine.Env.Dir, places.Views}, elem...)...)
}

// Folder is that of a view.
func (vs *Views) Folder(name string) *view.Folder {
	return &view.Folder{
		FS: vs.Engine.Env.FS, Path: vs.path(name), Temp: filepath.Join(vs.Engine.Env.Dir, "tmp", "view."+vs.Engine.Token),
		FileMode: vs.Engine.Env.FileMode, FolderMode: vs.Engine.Env.FolderMode,
	}
}

// Round makes the files complete as of the index that is mapped; written says that it is
// another one than in the last round.
func (vs *Views) Round(ctx context.Context, written bool) {
	if vs.anew {
		if err := vs.Forget(); err != nil {
			vs.failed("", err)
			return
		}
		vs.anew = false
	}
	if len(vs.list) == 0 || !written && !vs.due {
		return
	}
	ready, err := vs.enter()
	if err != nil {
		vs.failed("", err)
	}
	if vs.due = !ready; vs.due {
		return
	}
	set := vs.Engine.State.Set()
	if set == nil {
		return
	}
	defer set.Release()
	for _, v := range vs.list {
		if err := vs.complete(ctx, v, set); err != nil {
			vs.failed(v.Name(), err)
			vs.due = true
		}
	}
}

// failed tells that a view could not be made complete.
func (vs *Views) failed(name string, err error) {
	err = vs.Engine.Env.Explain(err)
	path := places.Views
	if name != "" {
		path += "/" + name
	}
	vs.Engine.Env.Logger.Warn("a view was not written; the next flush tries again", "path", path, "err", err)
	vs.Engine.Env.Event(env.Event{Kind: env.EventViewError, Path: path, Err: err})
}

// enter makes the folder, and has every process that writes know of it. false: there is one
// that does not, or somebody just opens the store; the next round tries again.
func (vs *Views) enter() (bool, error) {
	if ok, err := vs.Engine.Log.RaiseFlushing(wal.FeatureViews); err != nil || !ok {
		return false, err
	}
	eng := vs.Engine.Env
	if err := vfs.MkdirAll(eng.FS, vs.path(), eng.FolderMode); err != nil {
		return false, err
	}
	ignore := vs.path(".gitignore")
	_, err := eng.FS.Stat(ignore)
	if errors.Is(err, fs.ErrNotExist) {
		err = vfs.WriteDurable(eng.FS, vs.Folder("").Temp, ignore, []byte("*\n"), eng.FileMode)
	}
	return err == nil, err
}

// complete brings one view to the moment of an index.
func (vs *Views) complete(ctx context.Context, v view.View, set *index.Set) error {
	to, ok := markOf(set)
	if !ok {
		return nil // of a store without a log yet
	}
	f := vs.Folder(v.Name())
	at, err := v.Load(f)
	if err == nil && at == to {
		return nil
	}
	if err == nil {
		err = vs.catchUp(ctx, v, set, at, to)
	}
	if err != nil {
		if env.Passing(err) || ctx.Err() != nil {
			return err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			vs.Engine.Env.Logger.Info("a view is made again", "name", v.Name(), "why", err)
		}
		if err := v.Reset(ctx, set); err != nil {
			return err
		}
	}
	return v.Save(f, to)
}

func markOf(set *index.Set) (wal.Mark, bool) {
	sum, ok := index.Chain(set)
	return wal.Mark{LSN: set.LSN(), Sum: sum}, ok
}

// errAhead says that the files are of a moment that the index has not come to.
var errAhead = errors.New("its files are ahead of the index")

// catchUp applies what the log has between two moments. Log and archive are read, for the
// overlay has let go of what the index has taken in.
func (vs *Views) catchUp(ctx context.Context, v view.View, set *index.Set, at, to wal.Mark) error {
	if at.LSN >= to.LSN {
		return errAhead
	}
	for e, err := range vs.Engine.Log.Past().Entries(ctx, at, to.LSN) { // the first must follow the chain
		if err != nil {
			return err
		}
		if _, err := state.Check(&e); errors.Is(err, state.ErrEntry) {
			continue
		}
		if err := v.Apply(ctx, set, &e); err != nil {
			return err
		}
	}
	return nil
}

// Anew has the next round make all files again: what stands is to be nowhere.
func (vs *Views) Anew() { vs.anew = true }

// Files are the names of all files below the folder, relative to the store, also of views
// that this program does not know.
func (vs *Views) Files() (names []string, err error) {
	err = vs.folders(func(f *view.Folder, name string) error {
		files, err := f.Names()
		for _, file := range files {
			names = append(names, filepath.Join(places.Views, name, file))
		}
		return err
	})
	return names, err
}

// folders visits the folder of each view that has one.
func (vs *Views) folders(visit func(f *view.Folder, name string) error) error {
	names, err := vs.Engine.Env.FS.ReadDir(vs.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return vs.Engine.Env.IOError("reading", vs.path(), err)
	}
	slices.Sort(names)
	for _, name := range names {
		info, err := vs.Engine.Env.FS.Stat(vs.path(name))
		if err == nil && info.Mode.IsDir() && !strings.HasPrefix(name, ".") {
			err = visit(vs.Folder(name), name)
		}
		if err != nil {
			return vs.Engine.Env.IOError("reading", vs.path(name), err)
		}
	}
	return nil
}

// Forget removes all files: what they say of a moment is not believed any more.
func (vs *Views) Forget() error {
	vs.due = true
	return vs.folders(func(f *view.Folder, _ string) error { return f.Clear() })
}

// Remake makes one view again; "" is every one.
func (vs *Views) Remake(ctx context.Context, name string) error {
	set := vs.Engine.State.Set()
	if set == nil {
		return errs.ErrClosed
	}
	defer set.Release()
	if err := vs.folders(func(f *view.Folder, n string) error {
		if name != "" && n != name {
			return nil
		}
		return f.Clear()
	}); err != nil {
		return err
	}
	for _, v := range vs.list {
		if name == "" || v.Name() == name {
			if err := vs.complete(ctx, v, set); err != nil {
				return fmt.Errorf("the view %s: %w", v.Name(), err)
			}
		}
	}
	return nil
}

// checkTries is how often files that do not match are looked at before it is said: a round
// may be replacing them.
const checkTries = 4

// Findings yields the views whose files are not what they say. Files that are behind are none:
// the next flush makes them complete.
func (vs *Views) Findings(ctx context.Context) iter.Seq[repair.Finding] {
	return func(yield func(repair.Finding) bool) {
		for _, maker := range vs.Makers {
			v := maker(vs.Engine)
			var err error
			for range checkTries {
				if err = vs.check(ctx, v); err == nil || ctx.Err() != nil {
					break
				}
				_ = vs.Engine.Sight(ctx)
			}
			if err == nil || ctx.Err() != nil {
				continue
			}
			if !yield(repair.Finding{
				Kind: repair.ViewWrong, Severity: repair.Healable, Path: places.Views + "/" + v.Name(), Offset: -1, Err: err,
				Stake: "nothing that is stored: it is made of the documents", Heals: repair.ByIndex, Next: repair.NextRepair,
			}) {
				return
			}
		}
	}
}

func (vs *Views) check(ctx context.Context, v view.View) error {
	set := vs.Engine.State.Set()
	if set == nil {
		return nil
	}
	defer set.Release()
	f := vs.Folder(v.Name())
	at, err := v.Load(f)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if to, ok := markOf(set); !ok || at != to {
		return nil
	}
	return v.Verify(ctx, f, set)
}
