package purge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/erase/trace"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/purgefile"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// Report describes what Purge found and what it removed.
type Report struct {
	Deleted  []string // ids of documents that existed and were deleted
	TakenOut []string // assemblies that named a missing memory and from which that memory was removed
	Frames   int      // number of versions and deletions that were erased from the archive
	Segments int      // number of segments of the log that were overwritten
	Copies   int      // number of copies of segments in the archive that were rewritten
	Backups  int      // number of backups of the index that were rewritten
	// Dropped counts the backups of the index that had a line of a purged document and were removed: damaged
	// ones, those of another store, and those that there was no space to rewrite.
	Dropped int
	// What was unreadable in log, archive and backups of the index. It was overwritten, and is lost from the
	// history.
	Lost []error
	// Files that were overwritten and removed: in quarantine, parked files, and files in memories/, assemblies/
	// or working/ that belong to no document.
	Removed []string
	// Places where traces may remain, each with the remedy; if there are any, Purge returns them joined. They
	// include files that could not be overwritten.
	Left []error
	// Files of the user that contain traces; they are not changed, and the user must decide about them.
	Mentions []repair.Mention
	// Files that can be rebuilt, mostly of the index, which were removed without being overwritten. The reason
	// is that another process has them mapped, this user may not write them, or the system cannot tell.
	Unlinked []string
	// Reason why overwriting may not reach the data on the device, with the remedy; "" if the file system
	// overwrites in place.
	Device string
	Backup []string // full backups within the folder, and .git; these are not purged
	// Ids of other processes that have the store open: purged data disappears from their memory as they read on.
	Processes []int
	Elsewhere []int // ids of such processes in another PID namespace
}

// found reports whether the purge found anything to remove.
func (r *Report) found() bool {
	return len(r.Deleted)+len(r.TakenOut)+r.Frames+len(r.Removed)+r.Backups+r.Dropped > 0
}

// remains adds to the report the files that a step of the purge could not overwrite.
func (r *Report) remains(m *flush.Remains) {
	r.Left, r.Unlinked = append(r.Left, m.Left...), append(r.Unlinked, m.Unlinked...)
}

// Purge deletes the documents of kind k with these ids, and removes every trace of them from the folder. If traces may
// remain, the error joins the errors in Report.Left. If the folder has no trace of any of the documents, the error
// matches errs.ErrNotFound.
func (p *Purger) Purge(ctx context.Context, k *engine.Kind, ids []string) (*Report, error) {
	for _, id := range ids {
		if id == "" {
			return nil, &errs.FieldError{Field: k.IDName, Limit: "not empty", Err: errs.ErrInvalid}
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%w: no id", errs.ErrInvalid)
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	if err := k.Valid(ids); err != nil {
		return nil, err
	}
	r := &Report{Device: p.overwrites()}
	// On a full disk, purgeRoom frees space below.
	if err := p.engine.Log().Raise(ctx, wal.FeaturePurges); err != nil && !vfs.IsDiskFull(err) {
		return r, err
	}
	if k == p.engine.Kinds().Memories {
		p.retention.ForgetTouched(ids)
	}
	// Before the first deletion: from now on, a process that flushes the deletion keeps the file for this
	// purge.
	if err := p.engine.Log().Purges().Begin(ctx); err != nil {
		return r, err
	}
	cut := flush.PurgeWasCut(p.flusher) // before this purge creates its own folder
	deleted := false                    // and not overwritten
	ended := false
	end := func() {
		if ended {
			return
		}
		ended = true
		if deleted {
			p.engine.Log().Purges().Fail()
		}
		p.engine.Log().Purges().End()
	}
	defer end()
	traces := trace.Of(k.Kind, ids)
	traces.Log = p.engine.Log().Past().Geometry
	err := p.preparePurge(ctx, r)
	var texts *purgefile.Texts
	if err == nil {
		texts, err = p.learn(ctx, k, ids, traces)
	}
	first := wal.LSN(0)
	if _, copied, _ := p.engine.Log().Past().Sent(p.engine.Log().Durable()); err == nil && copied {
		first, err = p.first(ctx, k, ids, traces)
	}
	if err != nil {
		if !cut && !p.engine.Log().Purges().Failed() {
			p.leaveFolder()
		}
		return r, err
	}
	deleted = true
	if err := p.purgeEntries(ctx, k, ids, r); err != nil {
		return r, err
	}
	held, err := p.engine.Log().LockFlush(ctx)
	if err != nil {
		return r, err
	}
	defer held.Unlock()
	defer end()
	if k == p.engine.Kinds().Memories {
		if err := p.vectors.PurgeComputed(ctx, held, ids, &r.Left, &r.Unlinked); err != nil {
			return r, err
		}
	}
	if err = p.purgeLocked(ctx, held, k, ids, first, traces, texts, cut, r); err == nil {
		err = p.engine.Log().Purges().Done()
	}
	if deleted = err != nil; deleted {
		if vfs.IsDiskFull(err) {
			err = fmt.Errorf("the %s are deleted, but traces of them are left: make room, then purge again: %w", k.Name(), err)
		}
		return r, err
	}
	for _, id := range ids {
		if err := p.checkExists(ctx, k, id); err == nil {
			found, _ := p.engine.State().Current(k.Key(id))
			r.Left = append(r.Left, fmt.Errorf("%s %s: %w", k.Noun, human.Quote(id),
				&errs.ConflictError{ID: id, Found: found, Remedy: "written again during the purge: purge again"}))
		}
	}
	strangers, err := trace.Strangers(ctx, p.engine.Env().FS, p.engine.Env().Dir)
	if err == nil {
		var mentions []repair.Mention
		mentions, err = traces.MentionedIn(ctx, p.engine.Env().FS, p.engine.Env().Dir, strangers)
		r.Mentions = append(r.Mentions, mentions...)
	}
	if err != nil {
		return r, errors.Join(append(r.Left, err)...)
	}
	if len(r.Left) > 0 {
		return r, errors.Join(r.Left...)
	}
	if !r.found() {
		names := make([]string, len(ids))
		for i, id := range ids {
			names[i] = human.Quote(id)
		}
		return r, fmt.Errorf("%s %s: %w: no trace found in the store", k.Noun, strings.Join(names, ", "),
			errs.ErrNotFound)
	}
	return r, nil
}

// leaveFolder removes the folder that marks an interrupted purge. The caller is a purge that has failed before it
// deleted anything.
func (p *Purger) leaveFolder() {
	if held, err := p.engine.Log().TryLockFlush(); err == nil && held != nil {
		_ = flush.DropPurgeFolder(p.flusher) // if the folder stays, released files are overwritten until a purge is done
		held.Unlock()
	}
}

// learnMost is the maximum number of versions of one document whose contents a purge searches for in other files.
const learnMost = 100

// learn passes the contents of the documents to traces, so that traces can find copies of these contents later. It is
// called before the deletion, while the contents can still be read. It returns the hashes of the documents' texts. The
// store keeps these hashes, to recognise a purged text that is stored again later.
func (p *Purger) learn(ctx context.Context, k *engine.Kind, ids []string, traces *trace.Set) (*purgefile.Texts, error) {
	texts, err := p.engine.NewTexts()
	if err != nil {
		return nil, err
	}
	if k == p.engine.Kinds().Scopes {
		for _, id := range ids {
			if err := p.learnScope(ctx, id, traces); err != nil {
				return nil, err
			}
		}
		return texts, nil
	}
	seen, learned := map[[32]byte]bool{}, map[string]int{} // a version may be found more than once
	return texts, history.Readable(ctx, p.history, k, ids, func(v *history.Version) {
		if c, err := k.Parse(v.Document, v.ID); err == nil {
			if text := engine.TextOf(&c, v.Document); strings.TrimSpace(text) != "" {
				texts.Add(texts.Sum(k.Key(v.ID), text))
			}
		}
		if seen[v.ContentHash] || learned[v.ID] == learnMost {
			return
		}
		seen[v.ContentHash] = true
		learned[v.ID]++
		if k.Opaque {
			traces.LearnDocument(v.Document)
		} else if k == p.engine.Kinds().Assemblies {
			if a, err := v.DecodeAssembly(); err == nil {
				traces.Learn(a.Name)
				traces.Learn(a.Description)
			}
		} else if m, err := v.Decode(); err == nil {
			traces.Learn(m.Content)
		}
	})
}

// preparePurge creates the folder tmp/purge, and overwrites files that an interrupted purge has left in it. It adds
// files that it cannot overwrite to r. It holds flush.lock meanwhile, because a concurrent flush round may be using
// the folder.
func (p *Purger) preparePurge(ctx context.Context, r *Report) error {
	held, err := p.engine.Log().LockFlush(ctx)
	if err != nil {
		return err
	}
	defer held.Unlock()
	var m flush.Remains
	err = p.flusher.EnterPurgeFolder(held, &m)
	r.remains(&m)
	if err != nil {
		return p.engine.Env().IOError("making", filepath.Join(p.engine.Env().Dir, flush.PurgeFolder), err)
	}
	return nil
}

// purgeEntries deletes those of the documents that exist, and lists them in r.Deleted. An assembly may also name a
// purged memory that no longer exists: purgeEntries removes this member, and lists the assembly in r.TakenOut.
func (p *Purger) purgeEntries(ctx context.Context, k *engine.Kind, ids []string, r *Report) error {
	for _, id := range ids {
		if err := p.checkExists(ctx, k, id); err == nil {
			r.Deleted = append(r.Deleted, id)
		} else if !errors.Is(err, errs.ErrNotFound) {
			return fmt.Errorf("%s %s: %w", k.Noun, human.Quote(id), err)
		}
	}
	if err := p.deleteAll(ctx, k, r.Deleted); err != nil {
		return err
	}
	if k == p.engine.Kinds().Scopes {
		return nil
	}
	if p.engine.Cache() != nil {
		for _, id := range ids {
			p.engine.Cache().Invalidate(k.CacheKey(id))
		}
	}
	if k != p.engine.Kinds().Memories {
		return nil
	}
	for _, id := range ids {
		var in []string
		for a, err := range p.engine.AssembliesWith(ctx, id) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				r.Left = append(r.Left, fmt.Errorf("finding the assemblies that contain memory %s: %w",
					human.Quote(id), err))
				continue
			}
			in = append(in, a.ID)
		}
		for _, a := range in {
			switch err := p.takeOut(ctx, a, id); {
			case err == nil:
				r.TakenOut = append(r.TakenOut, a)
			case !errors.Is(err, errs.ErrNotFound): // deleted in the meantime
				return fmt.Errorf("removing %s from assembly %s: %w", human.Quote(id), human.Quote(a), err)
			}
		}
	}
	return nil
}

// deletedTogether is the maximum number of documents that one commit deletes.
const deletedTogether = 256

// deleteAll deletes the documents with these ids. All of the documents exist.
func (p *Purger) deleteAll(ctx context.Context, k *engine.Kind, ids []string) error {
	if k == p.engine.Kinds().Memories || k == p.engine.Kinds().Assemblies {
		for some := range slices.Chunk(ids, deletedTogether) {
			if err := p.deleteSome(ctx, k, some); err != nil {
				return err
			}
		}
		return nil
	}
	for _, id := range ids {
		remove := p.commits.DeleteDocument
		if k == p.engine.Kinds().Scopes {
			remove = func(ctx context.Context, _ *engine.Kind, id string) error { return p.dropScope(ctx, id) }
		}
		if err := remove(ctx, k, id); err != nil {
			return fmt.Errorf("deleting %s: %w", human.Quote(id), err)
		}
	}
	return nil
}

// deleteSome deletes memories or assemblies in one commit, or in several if one would be too large.
func (p *Purger) deleteSome(ctx context.Context, k *engine.Kind, ids []string) error {
	ops := make([]commit.Op, len(ids))
	for i, id := range ids {
		ops[i] = commit.Op{Group: k == p.engine.Kinds().Assemblies, ID: id, Conds: commit.Conditions{Unkept: true}}
	}
	err := p.commits.Commit(ctx, ops, nil, 0)
	switch of := (*errs.BatchError)(nil); {
	case err == nil:
		return nil
	case errors.Is(err, errs.ErrBatchTooLarge) && len(ids) > 1:
		half := len(ids) / 2
		if err := p.deleteSome(ctx, k, ids[:half]); err != nil {
			return err
		}
		return p.deleteSome(ctx, k, ids[half:])
	case errors.As(err, &of) && of.Index < len(ids):
		return fmt.Errorf("deleting %s: %w", human.Quote(ids[of.Index]), err)
	}
	return fmt.Errorf("deleting %s: %w", human.Quote(ids[0]), err)
}

// commitPurge commits a log entry that names the purged documents. The entry has for each document the version up to
// which it is purged: all versions before this moment. Versions that are written after the deletion are not purged.
// first is the position before which the store had no data of the documents (see First); 0 means unknown. If ids is
// empty, commitPurge does nothing.
func (p *Purger) commitPurge(ctx context.Context, held *wal.Held, k *engine.Kind, ids []string, first wal.LSN) error {
	if len(ids) == 0 { // versions alone are overwritten
		return nil
	}
	if raised, err := p.engine.Log().RaiseFlushing(held, wal.FeaturePurges); err != nil || !raised {
		return cmp.Or(err, errs.ErrLocked)
	}
	if err := p.engine.CatchUp(ctx); err != nil {
		return err
	}
	log := p.engine.Log()
	to := log.Applied() - 1
	rows := make([]purgefile.Row, 0, len(ids))
	for _, id := range ids {
		r := purgefile.Row{Key: purgefile.KeyOf(log.UUID(), k.Key(id)), Version: to, First: first}
		if k != p.engine.Kinds().Scopes {
			current, err := p.engine.State().Current(k.Key(id))
			if err != nil {
				return err
			}
			if current != 0 {
				r.Version = min(to, current-1)
			}
		}
		rows = append(rows, r)
	}
	return p.engine.CommitPurge(ctx, rows)
}

// takeOut removes the memory with the given id from an assembly.
func (p *Purger) takeOut(ctx context.Context, group, id string) error {
	return p.commits.Transact(ctx, nil, p.commits.Commit, func(tx *commit.Tx) error {
		a, err := tx.Assembly(group)
		if err != nil {
			return err
		}
		if a.Remove(id) == 0 {
			return errs.ErrSkip
		}
		tx.PutAssemblyAt(&a, commit.Conditions{Missing: true, Unkept: true})
		return nil
	})
}

// purgeLocked removes the traces of the deleted documents. The caller holds flush.lock. First the log continues in a
// new segment. Then files and index are written until they cover everything before that segment, so that the older
// segments are no longer needed. Then purgeLocked searches every place for traces.
//
// first is the position for commitPurge. traces recognises the data of the documents. purgeLocked saves texts, the
// hashes of the purged texts, and adds its results to r. cut reports whether an earlier purge was interrupted: then
// the replaced files of other memories are overwritten, too.
func (p *Purger) purgeLocked(ctx context.Context, held *wal.Held, k *engine.Kind, ids []string, first wal.LSN,
	traces *trace.Set, texts *purgefile.Texts, cut bool, r *Report) error {
	made := false
	room := func(step func() error) error {
		err := step()
		if made || !vfs.IsDiskFull(err) {
			return err
		}
		made = true
		if rerr := p.purgeRoom(ctx, k, ids, r); rerr != nil {
			return errors.Join(err, rerr)
		}
		return step()
	}
	if err := room(func() error { return p.commitPurge(held.In(ctx), held, k, ids, first) }); err != nil {
		return fmt.Errorf("recording the purged documents: %w", err)
	}
	if err := room(func() error { return p.engine.SaveTexts(texts) }); err != nil {
		return fmt.Errorf("recording the purged texts: %w", err)
	}
	if err := room(func() error { return p.engine.Log().Purges().Roll(ctx) }); err != nil {
		return fmt.Errorf("beginning a new segment: %w", err)
	}
	old, err := p.flusher.DoomIndex(ctx, held, true)
	if err != nil {
		return err
	}
	// What the round displaces of other memories is spared, unless a purge was interrupted that may have
	// deleted these. Files that any process has displaced since this purge began are all overwritten.
	if memories := p.engine.Kinds().Memories; !cut {
		p.flusher.Files().Spare(func(c *docfile.Change) bool {
			return c.Folder == memories.Folder && (k != memories || !traces.Stands(c.Name))
		})
		defer p.flusher.Files().Spare(nil)
	}
	if err := room(func() error { return p.flusher.FlushRound(ctx, held, flush.MergeAlways) }); err != nil {
		return errors.Join(err, old.Close())
	}
	var m flush.Remains
	err = old.Wipe(held, p.flusher, &m)
	r.remains(&m)
	if err != nil {
		return err
	}
	r.Unlinked, p.flusher.Unlinked = append(r.Unlinked, p.flusher.Unlinked...), nil
	if k != p.engine.Kinds().Scopes {
		if err := p.purgedVectors(k, ids, r); err != nil {
			return err
		}
	}
	// Both slots of the checkpoint must release the old segments, because these are removed now.
	c, err := p.engine.Log().Checkpoint()
	if err != nil {
		return err
	}
	if err := p.engine.Log().SetCheckpoint(held, c.Flushed, c.Spilled, p.flusher.FolderTimes()); err != nil {
		return err
	}
	done, err := p.engine.Log().Purges().Erase(ctx, held, traces.Entry)
	r.Segments, r.Copies, r.Frames, r.Left = done.Segments, done.Copies, done.Frames,
		slices.Concat(r.Left, done.Damaged, done.Unwiped)
	r.Lost = append(r.Lost, done.Lost...)
	if err != nil {
		return err
	}
	edits, err := p.flusher.Files().WipeTemp(p.flusher.Surplus(ctx))
	p.flusher.Edited(ctx, edits)
	if err != nil {
		return fmt.Errorf("overwriting tmp: %w", err)
	}
	if err := p.purgeBackups(held, k, ids, c, r); err != nil {
		return fmt.Errorf("rewriting the backups of the index: %w", err)
	}
	if err := p.purgeStrangers(ctx, k, traces, r); err != nil {
		return err
	}
	return p.purgeAside(ctx, held, traces, r)
}

// purgeRoom frees space on a full disk without writing new files. It overwrites and removes files in tmp/ that are not
// needed, such as replaced document files, and it removes the backups of the index that the purge would have to
// rewrite.
func (p *Purger) purgeRoom(ctx context.Context, k *engine.Kind, ids []string, r *Report) error {
	edits, err := p.flusher.Files().WipeTemp(p.flusher.Surplus(ctx))
	p.flusher.Edited(ctx, edits)
	if err != nil {
		return fmt.Errorf("overwriting tmp: %w", err)
	}
	if k == p.engine.Kinds().Scopes {
		return nil // the index has nothing of scopes
	}
	dropped, unlinked, err := index.DropBackups(p.engine.Env().FS, p.engine.Env().Dir,
		uuid.UUID(p.engine.Log().UUID()).String(), k.Section, ids)
	r.Dropped += len(dropped)
	r.Unlinked = append(r.Unlinked, unlinked...)
	if err != nil {
		return fmt.Errorf("dropping backups of the index: %w", err)
	}
	return nil
}

// purgeBackups rewrites the backups of the index without the purged documents. It lists full backups of the store in
// the report, and a Git repository in the store's folder.
func (p *Purger) purgeBackups(held *wal.Held, k *engine.Kind, ids []string, c wal.Checkpoint, r *Report) error {
	if k != p.engine.Kinds().Scopes && len(ids) > 0 { // index lines have no text of versions
		if err := p.purgeIndexBackups(held, k, ids, c, r); err != nil {
			return err
		}
	}
	names, err := p.engine.Env().FS.ReadDir(filepath.Join(p.engine.Env().Dir, index.BackupsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	slices.Sort(names)
	if _, err := p.engine.Env().FS.Stat(filepath.Join(p.engine.Env().Dir, ".git")); err == nil {
		r.Backup = append(r.Backup, ".git")
	}
	for _, name := range names {
		if _, err := p.engine.Env().FS.Stat(filepath.Join(p.engine.Env().Dir, index.BackupsDir, name,
			repair.BackupName)); err == nil {
			r.Backup = append(r.Backup, index.BackupsDir+"/"+name)
		}
	}
	return nil
}

func (p *Purger) purgeIndexBackups(held *wal.Held, k *engine.Kind, ids []string, c wal.Checkpoint, r *Report) error {
	dir := filepath.Join(p.engine.Env().Dir, filepath.FromSlash(flush.PurgeFolder))
	if err := p.flusher.ClearTemp(held, flush.PurgeFolder); err != nil {
		return err
	}
	if err := vfs.MkdirAll(p.engine.Env().FS, dir, p.engine.Env().FolderMode); err != nil {
		return err
	}
	to := p.engine.Target(uuid.UUID(p.engine.Log().UUID()), c.Spilled)
	to.Dir, to.Temp, to.Ready = dir, filepath.Join(dir, "index.new"), nil
	done, err := index.PurgeBackups(p.engine.Env().Dir, to, k.Section, ids, k.File)
	r.Backups, r.Dropped = len(done.Rewritten), r.Dropped+len(done.Removed)
	r.Unlinked = append(r.Unlinked, done.Unlinked...)
	r.Dropped += len(done.Unread)
	for _, name := range done.Unread {
		r.Lost = append(r.Lost, fmt.Errorf("removed %s, a damaged backup of the index; the store loses nothing", name))
	}
	r.Left = append(r.Left, done.Unwiped...)
	if err != nil {
		return err
	}
	return flush.DropPurgeFolder(p.flusher)
}

// purgeAside purges the files in quarantine and the parked files. Parked files are replaced files that another program
// had open. purgeAside also lists in r the other processes that have the store open.
func (p *Purger) purgeAside(ctx context.Context, held *wal.Held, traces *trace.Set, r *Report) error {
	o := trace.Options{FS: p.engine.Env().FS, FileMode: p.engine.Env().FileMode, FolderMode: p.engine.Env().FolderMode}
	if err := p.flusher.ClearTemp(held, "tmp/parked"); err != nil {
		return err
	}
	parked, open, err := trace.PurgeParked(held, p.engine.Env().Dir, traces, o)
	if err != nil {
		return err
	}
	for _, name := range open {
		r.Left = append(r.Left,
			fmt.Errorf("%s: %w: another program has this file open, and may save into it: close the file there, then "+
				"purge again", name, errs.ErrLocked))
	}
	aside, unlinked, err := trace.PurgeQuarantine(ctx, held, p.engine.Env().Dir, traces, o)
	r.Unlinked = append(r.Unlinked, unlinked...)
	r.Left = append(r.Left, traces.Unwiped()...)
	if err != nil {
		return err
	}
	r.Removed = append(append(r.Removed, aside...), parked...)
	for _, u := range traces.Lost() {
		r.Lost = append(r.Lost, fmt.Errorf("removed %s, a damaged copy of a segment of the log: %s", u.Path, u.Why))
	}
	for _, u := range traces.Unread() {
		r.Left = append(r.Left, &errs.CorruptionError{Path: u.Path, Offset: -1,
			Err: fmt.Errorf("the file may contain purged data (%s): if you do not need it, overwrite and remove it (shred -u), "+
				"then purge again", u.Why)})
	}
	own := p.engine.Env().FS.Host().PID
	for _, a := range p.engine.Log().Processes().All() {
		switch {
		case a.Elsewhere:
			r.Elsewhere = append(r.Elsewhere, a.PID)
		case a.PID != own:
			r.Processes = append(r.Processes, a.PID)
		}
	}
	return nil
}
