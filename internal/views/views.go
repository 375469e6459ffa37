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
	"sync/atomic"
	"syscall"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/internal/view/meanings"
	"github.com/varve-db/varve/internal/view/words"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// Views maintains the files of the views of an open store. The methods and functions with a parameter of type *wal.Held
// require flush.lock.
type Views struct {
	engine *engine.Engine

	makers []Maker
	list   []view.View // the views for which this process writes files
	words  *words.Query
	places *words.Query // query of the sections of notes
	near   *meanings.Query
	orders *words.Orders
	due    atomic.Bool // files may be missing or behind, so that a round is necessary even if no index is written
	retry  atomic.Int64
	as     atomic.Pointer[string] // the settings of the words in the last round
	rotten atomic.Bool            // a search found damage in the files
	stale  bool                   // set for a purge: after the next index no deleted data may stay in the files
	left   error                  // the reason why some of that data will not be overwritten
	behind bool                   // result of Behind
	kept   error                  // the reason set by Keep
	most   int                    // see Limit; 0: no limit
	partly bool                   // the last round left entries to the next one, because of most
}

// retryAfter is the time between background attempts to write files of views after a failure.
const retryAfter = time.Minute

// New returns a Views that maintains the views that makers make.
func New(eng *engine.Engine, makers []Maker) *Views {
	vs := &Views{engine: eng, makers: makers}
	for _, maker := range makers {
		vs.list = append(vs.list, maker(eng))
	}
	vs.due.Store(len(vs.list) > 0)
	return vs
}

// Limit sets the maximum number of log entries that a round adds to a view. Later rounds add the remaining entries:
// each continues where the previous round ended. 0 means no limit.
func Limit(vs *Views, _ *wal.Held, n int) { vs.most = n }

// Partly reports whether the last round has left log entries for later rounds because of Limit. In that case the log
// must keep these entries.
func Partly(vs *Views, _ *wal.Held) bool { return vs.partly }

// Hurry makes the views due at once if the last round has left entries because of Limit, and reports whether it has.
func Hurry(vs *Views, held *wal.Held) bool {
	if !Partly(vs, held) {
		return false
	}
	vs.retry.Store(0)
	return true
}

// Words creates the queries for word search, and for ordered listings, counts and sessions. Call it once. Close closes
// these queries, and also the query that Meanings has returned.
func (vs *Views) Words() (memories, sections *words.Query, orders *words.Orders) {
	vs.words, vs.orders = words.NewQuery(vs.engine, vs.damaged), words.NewOrders(vs.engine, vs.damaged)
	vs.places = words.NewSectionsQuery(vs.engine, vs.damaged)
	return vs.words, vs.places, vs.orders
}

// Meanings creates the query for search of notes by meaning. Call it once, after Words.
func (vs *Views) Meanings() *meanings.Query {
	vs.near = meanings.NewQuery(vs.engine, vs.damaged)
	return vs.near
}

// absent reports whether a view has no content in this store and therefore needs no files.
func absent(v view.View) bool {
	a, ok := v.(interface{ Absent() bool })
	return ok && a.Absent()
}

// damaged makes the next round rebuild the files of all views, because a query has found damage.
func (vs *Views) damaged() {
	vs.rotten.Store(true)
	vs.retry.Store(0)
	vs.due.Store(len(vs.list) > 0)
}

// Due reports whether the views need a round even if no document has changed.
func (vs *Views) Due() bool {
	if as := vs.as.Load(); as != nil && *as != vs.engine.Settings().Now().Words() {
		return true
	}
	return vs.due.Load() && vs.engine.Env().Clock().UnixNano() >= vs.retry.Load()
}

// Loose returns the number of rows that the searches of this process had only in memory, because the files of the views
// were not up to date.
func (vs *Views) Loose() int {
	if vs.words == nil {
		return 0
	}
	return max(vs.words.Loose(), vs.places.Loose())
}

// Close releases the files that the views have open.
func (vs *Views) Close() error {
	err := vs.closeList()
	if vs.words != nil {
		err = errors.Join(err, vs.words.Close(), vs.places.Close())
	}
	if vs.near != nil {
		err = errors.Join(err, vs.near.Close())
	}
	if vs.orders != nil {
		err = errors.Join(err, vs.orders.Close())
	}
	return err
}

func (vs *Views) closeList() (err error) {
	for _, v := range vs.list {
		err = errors.Join(err, v.Close())
	}
	return err
}

func (vs *Views) path(elem ...string) string {
	return filepath.Join(append([]string{vs.engine.Env().Dir, places.Views}, elem...)...)
}

// Round updates the files of all views to the log position that the mapped index covers. written means that the index
// may have changed since the last round.
func (vs *Views) Round(ctx context.Context, held *wal.Held, written bool) {
	if vs.kept != nil {
		vs.failed(ctx, "", vs.kept)
		return
	}
	purge, done := vs.stale && written, false
	if purge { // whatever fails, none of the old files may stay
		defer func() {
			if !done {
				err := errors.Join(vs.forget(nil), vs.unknown())
				vs.behind = err != nil
				vs.NoteMissed(held, err)
			}
		}()
	}
	if rotten := vs.rotten.Load(); purge || rotten {
		keep := vs.purgers()
		if rotten {
			keep = nil
		}
		if err := vs.forget(keep); err != nil {
			vs.partly = false // the files are not trusted: what they lack is not read from the log
			vs.failed(ctx, "", err)
			return
		}
		vs.stale = vs.stale && !written
		vs.rotten.Store(false)
	}
	if len(vs.list) == 0 || !written && !vs.Due() && !vs.outdated() {
		return
	}
	as := vs.engine.Settings().Now().Words()
	vs.as.Store(&as)
	vs.due.Store(true)
	vs.retry.Store(vs.engine.Env().Clock().Add(retryAfter).UnixNano())
	vs.partly = false
	if ready, err := vs.enter(held); err != nil || !ready {
		if err != nil {
			vs.failed(ctx, "", err)
		}
		return
	}
	set := vs.engine.State().Set()
	if set == nil {
		return
	}
	defer set.Release()
	if spilled := vs.engine.Log().Spilled(); written && set.LSN() < spilled {
		vs.failed(ctx, "", fmt.Errorf("the mapped index covers the log up to position %d, but should cover it up to "+
			"position %d", set.LSN(), spilled))
		return
	}
	done = true
	for _, v := range vs.list {
		if absent(v) {
			continue
		}
		err := vs.complete(ctx, held, v, set, purge)
		if err != nil && purge && ctx.Err() == nil { // a full disk has more space without the old files
			if err = vs.engine.ViewFolder(v.Name()).Clear(); err == nil {
				err = vs.complete(ctx, held, v, set, false)
			}
		}
		if err != nil {
			vs.failed(ctx, v.Name(), err)
			done = false
		}
	}
	if purge {
		vs.NoteMissed(held, vs.release())
	}
	if vs.due.Store(!done || vs.partly); done {
		vs.remember(nil)
	}
}

// outdated reports whether files of a view were written with other settings than the current ones. Another process may
// have written such files since the last round of this process.
func (vs *Views) outdated() bool {
	return slices.ContainsFunc(vs.list, func(v view.View) bool {
		o, ok := v.(interface{ OutdatedIn(*view.Folder) bool })
		return ok && !absent(v) && o.OutdatedIn(vs.engine.ViewFolder(v.Name()))
	})
}

// failed reports that a view could not be updated. It reports the same cause only once, until an update succeeds or
// fails for another cause.
func (vs *Views) failed(ctx context.Context, name string, err error) {
	if ctx.Err() != nil {
		return
	}
	err = vs.engine.Env().Explain(err)
	path := places.Views
	if name != "" {
		path += "/" + name
	}
	if was := vs.remember(fmt.Errorf("the view in %s lags behind: %w", path, err)); was != nil &&
		(vfs.IsDiskFull(was) && vfs.IsDiskFull(err) || sameCause(was, err)) {
		return
	}
	vs.engine.Env().Logger.Warn("cannot write a view; a later flush tries again", "path", path, "err", err)
	vs.engine.Env().Event(env.Event{Kind: env.EventViewError, Path: path, Err: err})
}

// sameCause reports whether the errors prev and err have the same cause. Their texts may differ in the name of a
// temporary file.
func sameCause(prev, err error) bool {
	var a, b syscall.Errno
	if errors.As(prev, &a) && errors.As(err, &b) {
		return a == b
	}
	return errors.Unwrap(prev).Error() == err.Error()
}

// remember stores the error of the last round, which Health reports, and returns the previous one.
func (vs *Views) remember(err error) (prev error) {
	h := vs.engine.Health()
	h.Mu.Lock()
	defer h.Mu.Unlock()
	prev, h.Views = h.Views, err
	return prev
}

var errOutdated = errors.New("the view was made with other settings")

// complete updates the files of one view to the log position that the index set covers. If purge is true, it leaves no
// data of deleted documents in the files.
func (vs *Views) complete(ctx context.Context, _ *wal.Held, v view.View, set *index.Set, purge bool) error {
	to, ok := view.MarkOf(set)
	if !ok {
		return nil // the store has no log yet
	}
	f := vs.engine.ViewFolder(v.Name())
	at, err := v.Load(f)
	if o, ok := v.(interface{ Outdated() bool }); ok && err == nil && o.Outdated() {
		err = errOutdated
	}
	if err == nil && at == to && !purge {
		return nil
	}
	if err == nil && vs.most > 0 && !purge && at.LSN < to.LSN {
		if part, perr := vs.engine.Log().Past().After(ctx, at, to, vs.most); perr == nil && part != to {
			to, vs.partly = part, true
		}
	}
	if err == nil && at != to {
		err = vs.engine.Between(ctx, at, to, func(e *wal.Entry) error { return v.Apply(ctx, nil, e) })
	}
	if p, ok := v.(view.Purger); ok && purge && err == nil {
		err = p.Purge(f)
	}
	if err != nil {
		if vfs.IsStarved(err) || vfs.IsDiskFull(err) || ctx.Err() != nil {
			return err
		}
		to, _ = view.MarkOf(set)
		if !errors.Is(err, fs.ErrNotExist) {
			vs.engine.Env().Logger.Info("rebuilding a view", "name", v.Name(), "why", err)
		}
		if err := resetView(ctx, v, f, set, purge); err != nil {
			return err
		}
	}
	save := ctx
	if purge { // if Save ended early, all files would be removed, and the views rebuilt from all documents
		save = context.WithoutCancel(ctx)
	}
	if err = v.Save(save, f, to); errors.Is(err, errs.ErrCorrupt) { // Save read files that Load had only opened
		vs.engine.Env().Logger.Info("rebuilding a view", "name", v.Name(), "why", err)
		if err = resetView(ctx, v, f, set, purge); err == nil {
			to, _ = view.MarkOf(set)
			err = v.Save(save, f, to)
		}
	}
	return err
}

// resetView rebuilds a view from the index set. For a purge, resetView first removes the view's files. The reason
// is that Save returns no error if it cannot remove an old file: it leaves the file to a later round, which a
// purge must not accept.
func resetView(ctx context.Context, v view.View, f *view.Folder, set *index.Set, purge bool) error {
	if purge {
		if err := f.Clear(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return v.Reset(ctx, set)
}

// Doom makes the next round write the files of all views again, without the data of deleted documents. It returns the
// names of the existing files, relative to the store's folder. These include files of views that this program does not
// have. After the files are replaced, the caller must overwrite the contents of the old files. Doom also releases the
// files that this process has mapped. unseen is an error if some files cannot be listed at the moment.
func (vs *Views) Doom(held *wal.Held) (names []string, unseen error) {
	vs.stale, vs.left, vs.behind = true, nil, false
	err := vs.release()
	unseen = vs.folders(func(f *view.Folder, name string) error {
		files, err := f.Names()
		for _, file := range files {
			names = append(names, filepath.Join(places.Views, name, file))
		}
		return err
	})
	vs.NoteMissed(held, errors.Join(err, unseen))
	if inTheWay(unseen) {
		unseen = nil
	}
	Keep(vs, held, unseen)
	return names, unseen
}

// Keep makes the rounds leave all files of views unchanged if cause is not nil. A purge uses Keep if it cannot
// open the files that a round would replace; cause is the error. If cause is nil, the rounds may change the files
// again.
func Keep(vs *Views, _ *wal.Held, cause error) { vs.kept = cause }

// release releases the files of views that this process has mapped.
func (vs *Views) release() error {
	err := vs.closeList()
	if vs.words != nil {
		err = errors.Join(err, vs.words.Forget(), vs.places.Forget())
	}
	if vs.near != nil {
		err = errors.Join(err, vs.near.Forget())
	}
	if vs.orders != nil {
		err = errors.Join(err, vs.orders.Forget())
	}
	return err
}

// purgers returns the names of the views that implement view.Purger. A purge need not remove the files of these views.
func (vs *Views) purgers() (names []string) {
	for _, v := range vs.list {
		if _, ok := v.(view.Purger); ok && !absent(v) { // no round writes the files of an absent one
			names = append(names, v.Name())
		}
	}
	return names
}

// NoteMissed records the error because of which some purged data in the files of views was not overwritten.
func (vs *Views) NoteMissed(_ *wal.Held, err error) { vs.left = errors.Join(vs.left, err) }

// Behind returns an error if some data in the files that Doom returned still exists or was not overwritten; the
// error is the reason. behind is true if some files of a view have not processed the latest log entries; the
// caller must not erase these entries yet.
func (vs *Views) Behind(_ *wal.Held) (err error, behind bool) { return vs.left, vs.behind }

// folders calls visit for the folder of each view that has a folder on disk.
func (vs *Views) folders(visit func(f *view.Folder, name string) error) error {
	if ours, err := vs.owned(); err != nil || !ours {
		return err
	}
	names, err := vs.engine.Env().FS.ReadDir(vs.path())
	if err != nil {
		return vs.engine.Env().IOError("reading", vs.path(), err)
	}
	slices.Sort(names)
	var all error // an error does not stop the visit of the others
	for _, name := range names {
		info, err := vs.engine.Env().FS.Stat(vs.path(name))
		if err == nil && info.Mode.IsDir() && !strings.HasPrefix(name, ".") {
			err = visit(vs.engine.ViewFolder(name), name)
		}
		if err != nil {
			all = errors.Join(all, vs.engine.Env().IOError("clearing", vs.path(name), err))
		}
	}
	return all
}

// forget removes the files of all views except of those whose names are in but. A later round writes the files again.
func (vs *Views) forget(but []string) error {
	vs.due.Store(len(vs.list) > 0)
	return vs.folders(func(f *view.Folder, name string) error {
		if slices.Contains(but, name) {
			return nil
		}
		return f.Clear()
	})
}

// Rebuilding removes the files of all views before an index is rebuilt. flush.lock is held, or the store is
// being opened and no other process has it open. If removing fails, the round after the index tries again, so
// that a view does not prevent opening a store.
func (vs *Views) Rebuilding(ctx context.Context) {
	if err := vs.forget(nil); err != nil {
		vs.stale = true
		vs.failed(ctx, "", err)
	}
}

// Rebuild rebuilds the files of one view.
func (vs *Views) Rebuild(ctx context.Context, held *wal.Held, name string) error {
	set := vs.engine.State().Set()
	if set == nil {
		return errs.ErrClosed
	}
	defer set.Release()
	ready, err := vs.enter(held)
	if err != nil {
		return err
	}
	if !ready {
		return fmt.Errorf("%w: a process of an older version has the store open, or is opening the store: end that "+
			"process", errs.ErrLocked)
	}
	if err := vs.folders(func(f *view.Folder, n string) error {
		if n != name {
			return nil
		}
		return f.Clear()
	}); err != nil {
		return err
	}
	for _, v := range vs.list {
		if v.Name() == name {
			if err := vs.complete(ctx, held, v, set, false); err != nil {
				return fmt.Errorf("the view %s: %w", name, err)
			}
		}
	}
	return nil
}

// checkTries is the number of times that Findings compares the files of a view with the index before it reports a
// difference: a round may be replacing the files.
const checkTries = 4

// Findings yields a finding for each view whose files are damaged or differ from the index. Files that merely
// lag behind are not reported: the next flush updates them.
func (vs *Views) Findings(ctx context.Context) iter.Seq[repair.Finding] {
	return func(yield func(repair.Finding) bool) {
		for _, maker := range vs.makers {
			v := maker(vs.engine)
			var err error
			for range checkTries {
				if err = vs.check(ctx, v); err == nil || ctx.Err() != nil {
					break
				}
				_ = vs.engine.CatchUp(ctx)
			}
			_ = v.Close()
			if err == nil || ctx.Err() != nil {
				continue
			}
			if !yield(repair.Finding{
				Kind: repair.ViewWrong, Severity: repair.Healable, Path: places.Views + "/" + v.Name(), Offset: -1, Err: err,
				Stake: "nothing: the view can be rebuilt from the documents", Heals: repair.ByIndex, Next: repair.NextRepair,
			}) {
				return
			}
		}
	}
}

func (vs *Views) check(ctx context.Context, v view.View) error {
	set := vs.engine.State().Set()
	if set == nil {
		return nil
	}
	defer set.Release()
	f := vs.engine.ViewFolder(v.Name())
	at, err := v.Load(f)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if to, ok := view.MarkOf(set); !ok || at != to {
		return nil
	}
	return v.Verify(ctx, f, set)
}
