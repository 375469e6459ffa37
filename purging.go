package varve

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/working"
)

// PurgeReport reports what a purge did.
type PurgeReport struct {
	Deleted  []string // ids that existed and were deleted
	TakenOut []string // assemblies from which a purged memory that did not exist was removed
	Frames   int      // versions and deletions that were erased from the archive
	Segments int      // segments of the log that were overwritten
	Copies   int      // segments in the archive that were rewritten
	Backups  int      // backups of the index that were rewritten
	// number of backups of the index that had a purged line and were removed instead of rewritten: they were damaged,
	// of another store, or there was no space
	Dropped int
	// parts of the log, the archive and index backups that could not be read: they were overwritten, and the history in
	// them is lost
	Lost []error
	// overwritten files: in quarantine, parked files, and files in memories/, assemblies/ or working/ that belong to no
	// document
	Removed []string
	// places where traces may remain, with a remedy, including files that could not be overwritten; Purge also returns
	// these errors, joined
	Left     []error
	Mentions []Mention // the user's own files that contain part of the purged data: they are kept
	// derived files, mostly of the index, that were removed without being overwritten: another process has them mapped,
	// or the system cannot tell
	Unlinked []string
	// reason why the device may keep overwritten bytes, with a remedy; "" if the file system overwrites in place
	Device string
	Backup []string // full backups within the folder, and .git: the purge does not cover them
	// ids of other processes that have the store open: purged data disappears from their memory as they continue to
	// read
	Processes []int
	Elsewhere []int // ids of such processes in another PID namespace, such as a container, as numbered there
}

// Mention is a file of the user, not of a memory, that contains part of a purged memory.
type Mention = repair.Mention

// Purge deletes memories and removes every trace of them from the store's folder. Traces are their files, all versions
// in the log and the archive, the index and its backups, displaced files in tmp/, their files in quarantine/, and those
// undo files of older program versions that name them. The log, and its pool of files for reuse, are overwritten with
// zeros, durably, before they are removed. All other memories keep their history. Assemblies keep only the versions
// that had none of the purged memories, because a composite is computed from the embeddings of the members. Traces of
// an id that does not exist now are removed as well; if there are no traces, the error is ErrNotFound.
//
// On a full disk Purge makes room: it removes the pool first, then the backups of the index that contain the memories.
// Data that is only in the log must be written to files before the log can be removed. If there is no space for these
// files, the memories are deleted, but traces of them are left, and the error is ErrDiskFull.
//
// Other processes may have the store open. While a backup copies the log, the error is ErrLocked. If something cannot
// be removed, such as a file that another program has open, Purge removes the rest. The errors, which the report lists
// too, then name a remedy and ask the user to purge again. A part of the log, the archive or a backup of the index that
// cannot be read may contain purged data. So Purge overwrites this part, and Lost names the history that is lost with
// it. Purge may be interrupted at any point and repeated.
//
// Purge overwrites a file that contains a purged memory, durably, before it removes the last name of the file. If this
// is impossible (a program has the file open, the file has a second name, or it is not writable), Left has the reason
// and a remedy. An index file that another process may have mapped is removed without being overwritten, and is listed
// in Unlinked.
//
// Purge does not change backups elsewhere, git's history, overwritten bytes that a storage device keeps, the text of
// other memories, and the user's own files. It searches the user's own files and names those that contain purged text.
// Purge cannot reach data that was removed before: versions that were replaced or deleted earlier, released segments of
// the log, and released entries of the index may persist in free blocks of the file system.
func (ad Admin) Purge(ctx context.Context, ids ...string) (*PurgeReport, error) {
	return ad.st.purgeAll(ctx, ad.st.inner.Engine.Kinds().Memories, ids)
}

// PurgePlan lists the memories that a purge would delete.
type PurgePlan struct {
	IDs     []string // ids of the memories, in ascending order, without duplicates
	Deleted int      // number of IDs that are deleted already, and have versions in the log or the archive
	Bytes   int64    // bytes of the documents of the IDs that are not deleted yet
	Unread  []error  // parts of log and archive that could not be read: deleted memories in them are missing
}

// PlanPurge returns the memories that pass the filters, so that one call of Purge can delete all of them. It changes
// nothing. Expired memories are included. If no filters other than InSession and WrittenBy are given, PlanPurge
// includes deleted memories too, if the log or the archive has a version of them that is in the session or by the
// writer. At least one filter is required.
func (ad Admin) PlanPurge(ctx context.Context, filters ...Filter) (*PurgePlan, error) {
	st := ad.st
	if err := st.inner.Engine.BeginUse(); err != nil {
		return nil, err
	}
	defer st.inner.Engine.EndUse()
	if err := st.inner.Engine.CatchUp(ctx); err != nil {
		return nil, err
	}
	f := filtersOf(ctx, st.inner.Engine, filters)
	if f.All() && len(f.Writers) == 0 {
		return nil, fmt.Errorf("%w: a purge without a filter would delete all memories: give a filter", errs.ErrInvalid)
	}
	f.Expired = true
	k, p := st.inner.Engine.Kinds().Memories, new(PurgePlan)
	live := map[string]bool{}
	add := func(id string, size int64) {
		live[id] = true
		p.IDs, p.Bytes = append(p.IDs, id), p.Bytes+size
	}
	for l, err := range st.inner.Engine.Lines(ctx, k, f) {
		if err == nil && f.Reads() {
			v, ferr := st.inner.Engine.Find(ctx, k, l.ID, true)
			if errors.Is(ferr, errs.ErrNotFound) {
				continue
			}
			var c engine.Parsed
			if err = ferr; err == nil {
				c, err = k.Parse(v.Doc, l.ID)
			}
			if err == nil && !f.Memory(c.Memory) {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		add(l.ID, l.Line.Size)
	}
	if f.Session != nil || len(f.Writers) > 0 {
		rest := f
		if rest.Session, rest.By, rest.Writers = nil, nil, nil; rest.All() {
			if err := st.deletedOf(ctx, &f, live, p); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(p.IDs)
	return p, nil
}

// deletedOf adds to the plan p the deleted memories that have a version, in the log or the archive, that passes the
// filters. It skips the memories in known, and adds to known each memory that it finds.
func (st *Store) deletedOf(ctx context.Context, f *engine.Filters, known map[string]bool, p *PurgePlan) error {
	k := st.inner.Engine.Kinds().Memories
	st.inner.History.Log(ctx, history.LogFilter{Session: f.Session, By: f.By}, func(c history.Commit, err error) bool {
		if err != nil {
			p.Unread = append(p.Unread, err)
			return ctx.Err() == nil
		}
		for _, ch := range c.Changes {
			if ch.Kind != k.Noun || known[ch.ID] {
				continue
			}
			known[ch.ID] = true
			if _, err := st.inner.Engine.State().Find(k.Letter, ch.ID); errors.Is(err, errs.ErrNotFound) {
				p.IDs, p.Deleted = append(p.IDs, ch.ID), p.Deleted+1
			}
		}
		return true
	})
	return ctx.Err()
}

// Purge deletes assemblies and removes every trace of them from the store's folder, as Admin.Purge does with memories.
// Their members are not changed. If a purged assembly was merged into another one, the MergedFrom of the other one
// still has its id; Purge reports this as a mention.
func (asm Assemblies) Purge(ctx context.Context, ids ...string) (*PurgeReport, error) {
	return asm.st.purgeAll(ctx, asm.st.inner.Engine.Kinds().Assemblies, ids)
}

func (st *Store) purgeAll(ctx context.Context, k *engine.Kind, ids []string) (*PurgeReport, error) {
	if err := st.inner.Engine.BeginUse(); err != nil {
		return nil, err
	}
	defer st.inner.Engine.EndUse()
	if err := st.inner.Engine.Writable(); err != nil {
		return nil, err
	}
	r, err := st.inner.Purger.Purge(ctx, k, ids)
	return (*PurgeReport)(r), err
}

// Unknown returns those of the given memories of which the store has no trace: no memory, no readable version in the
// log or the archive, no line in a backup of the index, and no file in quarantine/. It changes nothing. A caller can
// use Unknown to find a mistyped id before it purges the other memories. Purge searches more places than Unknown.
func (ad Admin) Unknown(ctx context.Context, ids ...string) ([]string, error) {
	return ad.st.unknownOf(ctx, ad.st.inner.Engine.Kinds().Memories, ids)
}

// Unknown returns those of the given assemblies of which the store has no trace; see Admin.Unknown.
func (asm Assemblies) Unknown(ctx context.Context, ids ...string) ([]string, error) {
	return asm.st.unknownOf(ctx, asm.st.inner.Engine.Kinds().Assemblies, ids)
}

func (st *Store) unknownOf(ctx context.Context, k *engine.Kind, ids []string) ([]string, error) {
	if err := st.inner.Engine.BeginUse(); err != nil {
		return nil, err
	}
	defer st.inner.Engine.EndUse()
	return st.inner.Purger.Unknown(ctx, k, ids)
}

// Purge removes scopes of working memory with their checkpoints, and every trace of them from the store's folder, as
// Admin.Purge does with memories: their files, their entries in the log and the archive, and their files in
// quarantine/. Memories that Consolidate has made from them are kept. Traces of a scope that no longer exists are
// removed as well; if there are no traces, the error is ErrNotFound.
func (wm Working) Purge(ctx context.Context, scopes ...working.Scope) (*PurgeReport, error) {
	return wm.st.purgeAll(ctx, wm.st.inner.Engine.Kinds().Scopes, scopeKeysOf(scopes))
}

// Unknown returns those of the given scopes of which the store has no trace; see Admin.Unknown.
func (wm Working) Unknown(ctx context.Context, scopes ...working.Scope) ([]working.Scope, error) {
	keys, err := wm.st.unknownOf(ctx, wm.st.inner.Engine.Kinds().Scopes, scopeKeysOf(scopes))
	if err != nil {
		return nil, err
	}
	var unknown []working.Scope
	for _, key := range keys {
		s, err := working.ParseScope(key)
		if err != nil {
			return nil, err
		}
		unknown = append(unknown, s)
	}
	return unknown, nil
}

func scopeKeysOf(scopes []working.Scope) []string {
	keys := make([]string, len(scopes))
	for i, s := range scopes {
		keys[i] = s.Key()
	}
	return keys
}

// Redaction is the result of PurgeVersion.
type Redaction struct {
	ID      string
	Version uint64
	Already bool     // the version was redacted before
	Equal   []uint64 // positions of other versions with the same text, which are kept
}

// PurgeVersion removes the content of one version of a memory: an earlier version, or any version of a deleted memory.
// The other versions are not changed. If version is the current version of the memory, the error is ErrConflict. Other
// versions with the same text are kept, and the report lists them.
//
// After PurgeVersion has returned nil, the history shows the version as redacted, with the time and the writer of the
// version, and the time and the writer of the redaction. No method returns the content: GetAt, Revert and Undelete
// return a *RedactedError. A process that has the store open and runs in the background overwrites the bytes within
// about a minute. The next backup overwrites them too, and so does OverwriteRedacted.
//
// A restore of a backup that is made afterwards omits the version, and so does a restore of an older backup with
// RestoreOptions.Log. Files of the user are not searched.
func (ad Admin) PurgeVersion(ctx context.Context, id string, version uint64) (*Redaction, error) {
	return ad.st.redact(ctx, ad.st.inner.Engine.Kinds().Memories, id, version)
}

// PurgeVersion removes the content of one version of an assembly; see Admin.PurgeVersion.
func (asm Assemblies) PurgeVersion(ctx context.Context, id string, version uint64) (*Redaction, error) {
	return asm.st.redact(ctx, asm.st.inner.Engine.Kinds().Assemblies, id, version)
}

func (st *Store) redact(ctx context.Context, k *engine.Kind, id string, version uint64) (*Redaction, error) {
	if err := st.inner.Engine.BeginUse(); err != nil {
		return nil, err
	}
	defer st.inner.Engine.EndUse()
	if err := st.inner.Engine.Writable(); err != nil {
		return nil, err
	}
	r, err := st.inner.Purger.Redact(ctx, k, id, version)
	return (*Redaction)(r), err
}

// OverwriteRedacted overwrites the bytes of all versions that PurgeVersion has removed and that are not overwritten
// yet. It returns the report of the overwriting, or nil if no bytes had to be overwritten. It may be interrupted at any
// point and repeated.
func (ad Admin) OverwriteRedacted(ctx context.Context) (*PurgeReport, error) {
	st := ad.st
	if err := st.inner.Engine.BeginUse(); err != nil {
		return nil, err
	}
	defer st.inner.Engine.EndUse()
	if err := st.inner.Engine.Writable(); err != nil {
		return nil, err
	}
	r, err := st.inner.Purger.Overwrite(ctx)
	return (*PurgeReport)(r), err
}
