package varve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/trace"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// PurgeReport is what Purge did.
type PurgeReport struct {
	Deleted   []string  // ids that there was one of
	TakenOut  []string  // assemblies that named a memory which was not there, and do no more
	Frames    int       // versions and deletions that were erased from the archive
	Segments  int       // of the log, overwritten
	Copies    int       // of segments in the archive, written again
	Backups   int       // of the index, written again
	Dropped   int       // backups of the index that had a line of it, and went: damaged, another store's, or there was no room to write them again
	Removed   []string  // what was overwritten in quarantine, of parked files, and in memories/, assemblies/ or working/, of what none has; an undo manifest was rewritten
	Left      []error   // where something may still be, and what helps; then Purge returns these, joined. Among them what could not be overwritten
	Mentions  []Mention // files that are nobody's but the user's, and have something of it: they stay, for him to see to
	Unlinked  []string  // files that can be made again, mostly of the index, which went without being overwritten: another process has them mapped, or the system cannot tell
	Device    string    // why overwriting may not reach what the device has, and what helps; "" where the file system overwrites in place
	Backup    []string  // full backups within the folder, and .git: not covered
	Processes []int     // others that have the store open: what they have in memory goes as they read on
}

// found says that anything was there to purge.
func (r *PurgeReport) found() bool {
	return len(r.Deleted)+len(r.TakenOut)+r.Frames+len(r.Removed)+r.Backups+r.Dropped > 0
}

// remains adds what a step could not overwrite.
func (r *PurgeReport) remains(m *flush.Remains) {
	r.Left, r.Unlinked = append(r.Left, m.Left...), append(r.Unlinked, m.Unlinked...)
}

// Purge deletes memories, and takes every trace of them out of the store's
// folder: their files, all versions in log and archive, the index and its
// backups, displaced files in tmp/, what was set aside of them and what undo
// manifests say. Log and pool are overwritten with zeros, durably, before they
// go. All other memories keep their history, and assemblies the versions that had none of
// them: a composite is made of the members' embeddings. An id that is not there now is looked
// for all the same: ErrNotFound if it was nowhere.
//
// On a full disk it makes room: the pool goes first, and backups of the index that have
// the memories. What stands in the log only must become files before the log can go: where
// that lacks room the memories are deleted, the error is ErrDiskFull, and traces are left.
//
// Others may have the store open. While a backup copies the log it is ErrLocked.
// Where something cannot go (a file that somebody has open; a damaged copy of the
// log) the rest does, and the errors, which the report has as well, say what to
// do and to purge again. It may be interrupted anywhere, and repeated. Not covered:
// backups elsewhere, git's history, what a device keeps of overwritten bytes, and what other
// memories and the user's own files say; the latter are looked through and named. An index file
// that another process has mapped, or where nobody can tell, goes without being overwritten,
// and is in Unlinked. A file that holds one of them is overwritten, durably, before its last
// name goes; where that cannot be (somebody has it open, it has a second name, it may not be
// written) Left has the reason, and what helps.
//
// What was removed before the purge it cannot reach: versions that were replaced or deleted
// earlier, segments of the log and lines of the index that were let go may persist in free
// blocks of the file system.
func (st *Store) Purge(ctx context.Context, ids ...string) (*PurgeReport, error) {
	return st.purge(ctx, st.engine.Kinds.Memories, ids)
}

// Purge deletes assemblies, and takes every trace of them out of the store's folder,
// as Store.Purge does it with memories. Their members stay as they are. An assembly
// that one of them was merged into goes on saying so (MergedFrom), and is named as a
// mention.
func (as Assemblies) Purge(ctx context.Context, ids ...string) (*PurgeReport, error) {
	return as.st.purge(ctx, as.st.engine.Kinds.Assemblies, ids)
}

func (st *Store) purge(ctx context.Context, k *engine.Kind, ids []string) (*PurgeReport, error) {
	if err := st.engine.Begun(); err != nil {
		return nil, err
	}
	defer st.engine.Ended()
	if err := st.engine.Writable(); err != nil {
		return nil, err
	}
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
	r := &PurgeReport{Device: st.overwrites()}
	if k == st.engine.Kinds.Memories {
		st.kept.ForgetTouched(ids)
	}
	// From before the first deletion: whoever flushes that keeps the file for this purge.
	if err := st.engine.Log.BeginPurge(ctx); err != nil {
		return r, err
	}
	deleted := false // and not overwritten
	ended := false
	end := func() {
		if ended {
			return
		}
		ended = true
		if deleted {
			st.engine.Log.FailPurge()
		}
		st.engine.Log.EndPurge()
	}
	defer end()
	if err := st.preparePurge(ctx, r); err != nil {
		return r, err
	}
	defer func() {
		if deleted {
			st.flusher.Unpurged.Store(true)
		}
	}()
	traces := trace.Of(k.Letter, ids)
	traces.Log = st.engine.Log.Past().Geometry
	if err := st.learn(ctx, k, ids, traces); err != nil {
		return r, err
	}
	deleted = true
	if err := st.purgeEntries(ctx, k, ids, r); err != nil {
		return r, err
	}
	if err := st.engine.Log.LockFlush(ctx); err != nil {
		return r, err
	}
	defer st.engine.Log.UnlockFlush()
	defer end()
	if k == st.engine.Kinds.Memories {
		if err := st.vectors.PurgeComputed(ctx, ids, &r.Left, &r.Unlinked); err != nil {
			return r, err
		}
	}
	err := st.purgeLocked(ctx, k, ids, traces, r)
	if deleted = err != nil; !deleted {
		st.engine.Log.DonePurge()
	} else {
		if vfs.IsDiskFull(err) {
			err = fmt.Errorf("the %s are deleted, but traces of them are left: make room, then purge again: %w", k.Name(), err)
		}
		return r, err
	}
	for _, id := range ids {
		if err := st.there(ctx, k, id); err == nil {
			found, _ := st.engine.State.Current(k.Key(id))
			r.Left = append(r.Left, fmt.Errorf("%s %s: %w", k.Noun, errs.Quote(id),
				&errs.ConflictError{ID: id, Found: found, Remedy: "it was written again while it was purged: purge again"}))
		}
	}
	strangers, err := trace.Strangers(ctx, st.engine.Env.FS, st.engine.Env.Dir)
	if err == nil {
		var mentions []Mention
		mentions, err = traces.MentionedIn(ctx, st.engine.Env.FS, st.engine.Env.Dir, strangers)
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
			names[i] = errs.Quote(id)
		}
		return r, fmt.Errorf("%s %s: %w: there is nothing of it in the store", k.Noun, strings.Join(names, ", "), errs.ErrNotFound)
	}
	return r, nil
}

// Mention is a file that is not a memory's, and has something of one.
type Mention = repair.Mention

// learnMost is of how many versions of one document the content is looked for.
const learnMost = 100

// learn tells traces what the documents said, while that can still be read.
func (st *Store) learn(ctx context.Context, k *engine.Kind, ids []string, traces *trace.Set) error {
	for _, id := range ids {
		n := 0
		if k == st.engine.Kinds.Scopes {
			if err := st.learnScope(ctx, id, traces); err != nil {
				return err
			}
			continue
		}
		st.history.Each(ctx, k, id, func(v history.Version, err error) bool {
			if err != nil || v.Deleted {
				return n < learnMost
			}
			if k == st.engine.Kinds.Assemblies {
				if a, err := v.DecodeAssembly(); err == nil {
					traces.Learn(a.Name)
					traces.Learn(a.Description)
					n++
				}
			} else if m, err := v.Decode(); err == nil {
				traces.Learn(m.Content)
				n++
			}
			return n < learnMost
		})
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// preparePurge enters the folder under flush.lock: a round beside may be using it.
func (st *Store) preparePurge(ctx context.Context, r *PurgeReport) error {
	if err := st.engine.Log.LockFlush(ctx); err != nil {
		return err
	}
	defer st.engine.Log.UnlockFlush()
	var m flush.Remains
	err := st.flusher.EnterPurgeFolder(&m)
	r.remains(&m)
	if err != nil {
		return st.engine.Env.IOError("making", filepath.Join(st.engine.Env.Dir, flush.PurgeFolder), err)
	}
	return nil
}

// purgeEntries deletes what there is, and takes what is not there out of the
// assemblies that name it.
func (st *Store) purgeEntries(ctx context.Context, k *engine.Kind, ids []string, r *PurgeReport) error {
	for _, id := range ids {
		if err := st.there(ctx, k, id); err == nil {
			r.Deleted = append(r.Deleted, id)
		} else if !errors.Is(err, errs.ErrNotFound) {
			return fmt.Errorf("%s %s: %w", k.Noun, errs.Quote(id), err)
		}
	}
	for _, id := range r.Deleted {
		err := error(nil)
		if k == st.engine.Kinds.Scopes {
			err = st.dropScope(ctx, id)
		} else {
			err = st.commits.Commit(ctx, []commit.Op{{Group: k == st.engine.Kinds.Assemblies, ID: id}}, nil, 0)
		}
		if err != nil {
			return fmt.Errorf("deleting %s: %w", errs.Quote(id), err)
		}
	}
	if k == st.engine.Kinds.Scopes {
		return nil
	}
	if st.engine.Cache != nil {
		for _, id := range ids {
			st.engine.Cache.Invalidate(k.CacheKey(id))
		}
	}
	if k == st.engine.Kinds.Assemblies {
		return nil
	}
	for _, id := range ids {
		var in []string
		for a, err := range st.Assemblies().Containing(ctx, id) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				r.Left = append(r.Left, fmt.Errorf("an assembly that names memory %s: %w", errs.Quote(id), err))
				continue
			}
			in = append(in, a.ID)
		}
		for _, a := range in {
			switch _, err := st.Assemblies().Remove(ctx, a, []string{id}, AllowMissing()); {
			case err == nil:
				r.TakenOut = append(r.TakenOut, a)
			case !errors.Is(err, errs.ErrNotFound): // deleted meanwhile
				return fmt.Errorf("taking %s out of assembly %s: %w", errs.Quote(id), errs.Quote(a), err)
			}
		}
	}
	return nil
}

// purgeLocked removes the traces; flush.lock is held. In this order: the log goes
// on in a new segment; files and index cover all that came before; then nothing
// needs the older segments, and every place is gone through.
func (st *Store) purgeLocked(ctx context.Context, k *engine.Kind, ids []string, traces *trace.Set, r *PurgeReport) error {
	made := false
	room := func(step func() error) error {
		err := step()
		if made || !vfs.IsDiskFull(err) {
			return err
		}
		made = true
		if rerr := st.purgeRoom(ctx, k, ids, r); rerr != nil {
			return errors.Join(err, rerr)
		}
		return step()
	}
	if err := room(func() error { return st.engine.Log.Roll(ctx) }); err != nil {
		return fmt.Errorf("beginning a new segment: %w", err)
	}
	old, err := st.flusher.DoomIndex(ctx)
	if err != nil {
		return err
	}
	if err := room(func() error { return st.flusher.FlushRound(ctx, flush.MergeAlways) }); err != nil {
		return errors.Join(err, old.Close())
	}
	var m flush.Remains
	err = old.Wipe(&st.flusher, &m)
	r.remains(&m)
	if err != nil {
		return err
	}
	r.Unlinked, st.flusher.Unlinked = append(r.Unlinked, st.flusher.Unlinked...), nil
	if k != st.engine.Kinds.Scopes {
		if err := st.purgedVectors(k, ids, r); err != nil {
			return err
		}
	}
	// Both slots of the checkpoint are to release the old segments, for these go now.
	c, err := st.engine.Log.Checkpoint()
	if err != nil {
		return err
	}
	if err := st.engine.Log.SetCheckpoint(c.Flushed, c.Spilled, st.flusher.FolderTimes()); err != nil {
		return err
	}
	p, err := st.engine.Log.Purge(ctx, traces.Entry)
	r.Segments, r.Copies, r.Frames, r.Left = p.Segments, p.Copies, p.Frames, slices.Concat(r.Left, p.Damaged, p.Unwiped)
	if err != nil {
		return err
	}
	edits, err := st.flusher.Files.WipeTemp(st.flusher.Surplus(ctx))
	st.flusher.Edited(ctx, edits)
	if err != nil {
		return fmt.Errorf("overwriting tmp: %w", err)
	}
	if err := st.purgeBackups(k, ids, c, r); err != nil {
		return fmt.Errorf("rewriting the backups of the index: %w", err)
	}
	if err := st.purgeStrangers(ctx, k, traces, r); err != nil {
		return err
	}
	return st.purgeAside(ctx, traces, r)
}

// purgeRoom frees on a full disk what can be had without any room: the pool, and the
// backups of the index that would be written again.
func (st *Store) purgeRoom(ctx context.Context, k *engine.Kind, ids []string, r *PurgeReport) error {
	edits, err := st.flusher.Files.WipeTemp(st.flusher.Surplus(ctx))
	st.flusher.Edited(ctx, edits)
	if err != nil {
		return fmt.Errorf("overwriting tmp: %w", err)
	}
	if k == st.engine.Kinds.Scopes {
		return nil // they have nothing of it
	}
	dropped, unlinked, err := index.DropBackups(st.engine.Env.FS, st.engine.Env.Dir, uuid.UUID(st.engine.Log.UUID()).String(), k.Section, ids)
	r.Dropped += len(dropped)
	r.Unlinked = append(r.Unlinked, unlinked...)
	if err != nil {
		return fmt.Errorf("giving up backups of the index: %w", err)
	}
	return nil
}

// purgeBackups rewrites those of the index, and names full ones.
func (st *Store) purgeBackups(k *engine.Kind, ids []string, c wal.Checkpoint, r *PurgeReport) error {
	if k != st.engine.Kinds.Scopes {
		if err := st.purgeIndexBackups(k, ids, c, r); err != nil {
			return err
		}
	}
	names, err := st.engine.Env.FS.ReadDir(filepath.Join(st.engine.Env.Dir, index.BackupsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	slices.Sort(names)
	if _, err := st.engine.Env.FS.Stat(filepath.Join(st.engine.Env.Dir, ".git")); err == nil {
		r.Backup = append(r.Backup, ".git")
	}
	for _, name := range names {
		if _, err := st.engine.Env.FS.Stat(filepath.Join(st.engine.Env.Dir, index.BackupsDir, name, repair.BackupName)); err == nil {
			r.Backup = append(r.Backup, index.BackupsDir+"/"+name)
		}
	}
	return nil
}

func (st *Store) purgeIndexBackups(k *engine.Kind, ids []string, c wal.Checkpoint, r *PurgeReport) error {
	dir := filepath.Join(st.engine.Env.Dir, filepath.FromSlash(flush.PurgeFolder))
	if err := st.flusher.ClearTemp(flush.PurgeFolder); err != nil {
		return err
	}
	if err := vfs.MkdirAll(st.engine.Env.FS, dir, st.engine.Env.FolderMode); err != nil {
		return err
	}
	to := st.engine.Target(uuid.UUID(st.engine.Log.UUID()), c.Spilled)
	to.Dir, to.Temp, to.Ready = dir, filepath.Join(dir, "index.new"), nil
	p, err := index.PurgeBackups(st.engine.Env.Dir, to, k.Section, ids)
	r.Backups, r.Dropped = len(p.Rewritten), r.Dropped+len(p.Removed)
	r.Unlinked = append(r.Unlinked, p.Unlinked...)
	for _, name := range p.Unread {
		r.Left = append(r.Left, &errs.CorruptionError{Path: name, Offset: -1,
			Err: errors.New("this backup of the index may have a line of what was purged, and cannot be read: it is of no use to the store: remove it, then purge again")})
	}
	r.Left = append(r.Left, p.Unwiped...)
	if err != nil {
		return err
	}
	return st.dropPurgeFolder()
}

// purgeAside goes through what was set aside.
func (st *Store) purgeAside(ctx context.Context, traces *trace.Set, r *PurgeReport) error {
	o := trace.Options{FS: st.engine.Env.FS, FileMode: st.engine.Env.FileMode, FolderMode: st.engine.Env.FolderMode}
	if err := st.flusher.ClearTemp("tmp/parked"); err != nil {
		return err
	}
	parked, held, err := trace.PurgeParked(st.engine.Env.Dir, traces, o)
	if err != nil {
		return err
	}
	for _, name := range held {
		r.Left = append(r.Left, fmt.Errorf("%s: %w: another program has this file open, and may save into it: close it there, then purge again", name, errs.ErrLocked))
	}
	aside, unlinked, err := trace.PurgeQuarantine(ctx, st.engine.Env.Dir, traces, o)
	r.Unlinked = append(r.Unlinked, unlinked...)
	r.Left = append(r.Left, traces.Unwiped()...)
	if err != nil {
		return err
	}
	r.Removed = append(append(r.Removed, aside...), parked...)
	for _, name := range traces.Unread() {
		r.Left = append(r.Left, &errs.CorruptionError{Path: "quarantine/" + name, Offset: -1,
			Err: errors.New("it may hold what was purged, or only mention it, and others with it: when you need nothing of it remove it, then purge again")})
	}
	own := st.engine.Env.FS.Host().PID
	for _, pid := range st.engine.Log.Processes() {
		if pid != own {
			r.Processes = append(r.Processes, pid)
		}
	}
	return nil
}
