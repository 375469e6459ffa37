package varve

import (
	"context"
	"iter"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/repairs/heal"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// These types describe a repair: its plan, one action, and its result; they are declared in package repair.
type (
	RepairPlan   = repair.RepairPlan
	RepairAction = repair.Action
	RepairReport = repair.RepairReport
)

// PlanRepair examines the store in a folder, even one that cannot be opened, and returns a plan of the actions that
// would repair it. It changes nothing; RepairPlan.Apply does.
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

// VerifyFolder verifies the store in a folder, as Admin.Verify does. If the store cannot be opened, VerifyFolder
// verifies the config, the checkpoint, the log, the index and the files of documents without opening it, and yields
// what is missing or damaged.
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
			return st.inner.Repairing(), nil
		},
		Config: settings.Check,
	}, nil
}

// RebuildIndex rebuilds the index from the log and the files. It does not trust the current index and its backups. A
// memory keeps its version if the log, the index or a backup of the index records this version for exactly the bytes
// that the memory's file has. Any other memory, such as one whose file was edited, gets a new version, so that a
// condition on the old version fails. If the old index is undamaged, it is moved to backups/. Other processes may use
// the store meanwhile. If the index names documents and the folder has no document, the error is a *CorruptionError: in
// this case only the index still knows the positions of the documents in the log.
func (ad Admin) RebuildIndex(ctx context.Context) error {
	if err := ad.st.inner.Engine.BeginUse(); err != nil {
		return err
	}
	defer ad.st.inner.Engine.EndUse()
	if err := ad.st.inner.Engine.Writable(); err != nil {
		return err
	}
	return ad.st.inner.RebuildIndex(ctx)
}
