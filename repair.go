package varve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/adopt"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/repairs/heal"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// What repairs a store; see package repair.
type (
	RepairPlan   = repair.RepairPlan
	RepairAction = repair.Action
	RepairReport = repair.RepairReport
)

// PlanRepair examines the store in a folder, even one that cannot be opened, and returns a plan of
// what would repair it. It changes nothing; RepairPlan.Apply does.
func PlanRepair(ctx context.Context, dir string, o *Options, v VerifyOptions) (*RepairPlan, error) {
	dir, err := absolute(dir)
	if err != nil {
		return nil, err
	}
	ro, err := repairOptions(dir, o, v)
	if err != nil {
		return nil, err
	}
	return heal.Plan(ctx, dir, ro)
}

// VerifyFolder is Admin.Verify for a folder: for a store that cannot be opened it reports why, and
// what that means.
func VerifyFolder(ctx context.Context, dir string, o *Options, v VerifyOptions) iter.Seq2[Finding, error] {
	return engine.Whole(ctx, func(yield func(Finding, error) bool) {
		dir, err := absolute(dir)
		if err != nil {
			yield(Finding{}, err)
			return
		}
		ro, err := repairOptions(dir, o, v)
		if err != nil {
			yield(Finding{}, err)
			return
		}
		for f, err := range heal.Look(ctx, dir, ro) {
			if !yield(f, ro.Explain(err)) {
				return
			}
		}
	})
}

func repairOptions(dir string, o *Options, v VerifyOptions) (heal.Options, error) {
	var own Options
	if o != nil {
		own = *o
	}
	if err := own.Validate(); err != nil {
		return heal.Options{}, err
	}
	own.MustExist, own.NoBackground = true, true
	filled := own
	filled.fill()
	at := filled.environment(dir)
	return heal.Options{
		FS: vfs.Patient(vfs.Only(filled.env.System.FS, filled.StateDir, dir), filled.LockWait), Clock: filled.Clock,
		FileMode: filled.FileMode, FolderMode: filled.FolderMode,
		Random: at.Random, Known: wal.Features(filled.env.System.Features), LockWait: filled.LockWait, Verify: v,
		Explain: at.Explain,
		Open: func(ctx context.Context, readOnly bool) (heal.Store, error) {
			o := own
			o.ReadOnly = readOnly
			st, err := Open(ctx, dir, &o)
			if err != nil {
				return nil, err
			}
			return repairStore{st}, nil
		},
		Config: settings.Check,
	}, nil
}

// repairStore is a store as internal/repairs/heal works on it.
type repairStore struct{ st *Store }

func (r repairStore) Source() view.Source { return r.st.source() }

func (r repairStore) Close() error { return r.st.Close() }

func (r repairStore) PutBack(ctx context.Context, held *wal.Held, letter byte, id string, version wal.LSN,
	mtime time.Time, doc []byte) error {
	k, err := r.st.inner.Engine.Kinds().Named(letter)
	if err != nil {
		return err
	}
	v := engine.Version{LSN: version, Doc: doc,
		Line: index.Entry{Mtime: mtime.UnixMicro(), Size: int64(len(doc)), Version: version,
			Dimension: index.UnknownDimension}}
	return r.st.inner.Adopter.PutBack(ctx, held, k, id, v)
}

func (r repairStore) Adopt(ctx context.Context, held *wal.Held, letter byte, id string, doc []byte,
	mtime time.Time, was wal.LSN) (wal.LSN, error) {
	k, err := r.st.inner.Engine.Kinds().Named(letter)
	if err != nil {
		return 0, err
	}
	v, err := r.st.inner.Adopter.AdoptOver(ctx, held, k, id, doc, mtime, was)
	return v.LSN, err
}

func (r repairStore) AdoptNew(ctx context.Context, held *wal.Held, letter byte, list []*heal.Adoption) {
	st := r.st
	k, err := st.inner.Engine.Kinds().Named(letter)
	if err != nil {
		for _, a := range list {
			a.Err = err
		}
		return
	}
	verdicts := make([]*adopt.Verdict, len(list))
	for i, a := range list {
		verdicts[i] = st.inner.Adopter.Newcomer(ctx, k, a.Doc, "", a.ID, a.Mtime)
	}
	st.inner.Adopter.AdoptAll(ctx, held, k, verdicts)
	for i, v := range verdicts {
		list[i].Version, list[i].Err = v.Version.LSN, v.Err
	}
}

func (r repairStore) Judge(ctx context.Context, letter byte, list []*heal.Judgement) {
	st := r.st
	k, err := st.inner.Engine.Kinds().Named(letter)
	if err != nil {
		for _, j := range list {
			j.Err = err
		}
		return
	}
	due := make([]adopt.Suspect, len(list))
	for i, j := range list {
		due[i] = adopt.Suspect{Name: k.FileName(j.ID), ID: j.ID,
			Adopted: func(a *adopt.Adoption) { j.Was, j.Version = a.Precondition.LSN, a.Entry.LSN }}
	}
	err = st.inner.Adopter.JudgeAll(ctx, k, due)
	for _, j := range list {
		if j.Err = err; err == nil {
			_, j.Err = st.inner.Engine.Find(ctx, k, j.ID, true)
		}
	}
}

func (r repairStore) Delete(ctx context.Context, held *wal.Held, letter byte, id string, was wal.LSN) error {
	k, err := r.st.inner.Engine.Kinds().Named(letter)
	if err != nil {
		return err
	}
	return r.st.inner.Committer.CommitTogether(ctx, held, k, []*commit.Part{r.st.inner.Adopter.DeletionPart(k, id, was)})
}

func (r repairStore) Settle(ctx context.Context) error {
	st := r.st
	held, err := st.inner.Engine.Log().LockFlush(ctx)
	if err != nil {
		return err
	}
	defer held.Unlock()
	if err := st.inner.Flusher.EmptyTemp(ctx, held); err != nil {
		return err
	}
	return st.inner.Flusher.FlushLocked(ctx, held, flush.MergeAlways)
}

func (r repairStore) Reindex(ctx context.Context, wrong bool) error {
	if wrong {
		return r.st.inner.Flusher.ReindexNow(ctx, flush.ErrWrong)
	}
	return r.st.inner.Flusher.ReindexNow(ctx, flush.ErrFound)
}

// RebuildIndex rebuilds the index from the log and the files, regardless of the content of the
// current one and its backups. A memory keeps its version if the log, the index or a backup has
// that version for the bytes of its file; a memory that was edited, or that none of them knows,
// gets another one, and conditions on the old version fail. The old index is moved to backups/ if
// it is sound. Other processes may use the store meanwhile. A folder without documents although the
// index names some is a *CorruptionError: only the index still knows where they are in the log.
func (ad Admin) RebuildIndex(ctx context.Context) error {
	if err := ad.st.inner.Engine.BeginUse(); err != nil {
		return err
	}
	defer ad.st.inner.Engine.EndUse()
	if err := ad.st.inner.Engine.Writable(); err != nil {
		return err
	}
	if ad.st.Flush(ctx) == nil { // otherwise files may be missing for that
		if err := ad.st.emptied(); err != nil {
			return err
		}
	}
	return ad.st.inner.Flusher.ReindexNow(ctx, flush.ErrAsked)
}

// emptied is the error of a folder that has lost all its documents.
func (st *Store) emptied() error {
	for _, k := range st.inner.Engine.Kinds().All {
		n := st.inner.Engine.State().Live(k.Letter)
		if n == 0 {
			continue
		}
		names, err := k.Names()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return st.inner.Engine.Env().IOError("reading", k.Path(""), err)
		}
		if !k.HasDocuments(names) {
			return &errs.CorruptionError{Path: k.Name(), Offset: -1,
				Err: fmt.Errorf("the folder is empty, but the index names %d %s: "+
					"restore the folder, or run memctl repair to restore what the log still has", n, k.Name())}
		}
	}
	return nil
}

// RebuildScope is of heal.Store.
func (r repairStore) RebuildScope(ctx context.Context, file string) (string, error) {
	return r.st.inner.Scopes.RebuildScope(ctx, file)
}
