package varve

import (
	"context"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/working"
)

// PurgeReport is what a purge did.
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
	Mentions  []Mention // the user's own files that have something of it: they stay, for the user to deal with
	Unlinked  []string  // files that can be made again, mostly of the index, which went without being overwritten: another process has them mapped, or the system cannot tell
	Device    string    // why overwriting may not reach what the device has, and what helps; "" where the file system overwrites in place
	Backup    []string  // full backups within the folder, and .git: not covered
	Processes []int     // others that have the store open: what they have in memory goes as they read on
}

// Mention is a file that is not a memory's, and has something of one.
type Mention = repair.Mention

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
// that another process has mapped, or where that cannot be told, goes without being overwritten,
// and is in Unlinked. A file that holds one of them is overwritten, durably, before its last name
// goes; where that cannot be (somebody has it open, it has a second name, it may not be written)
// Left has the reason, and what helps.
//
// What was removed before the purge it cannot reach: versions that were replaced or deleted
// earlier, segments of the log and lines of the index that were let go may persist in free
// blocks of the file system.
func (ad Admin) Purge(ctx context.Context, ids ...string) (*PurgeReport, error) {
	return ad.st.purgeAll(ctx, ad.st.engine.Kinds.Memories, ids)
}

// Purge deletes assemblies, and takes every trace of them out of the store's folder,
// as Admin.Purge does it with memories. Their members stay as they are. An assembly
// that one of them was merged into goes on saying so (MergedFrom), and is named as a
// mention.
func (as Assemblies) Purge(ctx context.Context, ids ...string) (*PurgeReport, error) {
	return as.st.purgeAll(ctx, as.st.engine.Kinds.Assemblies, ids)
}

func (st *Store) purgeAll(ctx context.Context, k *engine.Kind, ids []string) (*PurgeReport, error) {
	if err := st.engine.Begun(); err != nil {
		return nil, err
	}
	defer st.engine.Ended()
	if err := st.engine.Writable(); err != nil {
		return nil, err
	}
	r, err := st.purging.Purge(ctx, k, ids)
	return (*PurgeReport)(r), err
}

// Unknown says of which of some memories a store has nothing: none is there, neither
// log nor archive has a version that can be read, nor a backup of the index a line,
// and nothing that was set aside is about it. It changes nothing. Purge looks further
// still: this is to find an id that was mistyped before the others are gone.
func (ad Admin) Unknown(ctx context.Context, ids ...string) ([]string, error) {
	return ad.st.unknownOf(ctx, ad.st.engine.Kinds.Memories, ids)
}

// Unknown says of which of some assemblies a store has nothing; see Admin.Unknown.
func (as Assemblies) Unknown(ctx context.Context, ids ...string) ([]string, error) {
	return as.st.unknownOf(ctx, as.st.engine.Kinds.Assemblies, ids)
}

func (st *Store) unknownOf(ctx context.Context, k *engine.Kind, ids []string) ([]string, error) {
	if err := st.engine.Begun(); err != nil {
		return nil, err
	}
	defer st.engine.Ended()
	return st.purging.Unknown(ctx, k, ids)
}

// Purge drops scopes of working memory, with their checkpoints, and takes every
// trace of them out of the store's folder, as Admin.Purge does it with memories: their
// files, what log and archive have of them, what was set aside. Memories that were made of
// them (Consolidate) are not theirs, and stay. A scope that is not there now is looked
// for all the same: ErrNotFound if it was nowhere.
func (wm Working) Purge(ctx context.Context, scopes ...working.Scope) (*PurgeReport, error) {
	return wm.st.purgeAll(ctx, wm.st.engine.Kinds.Scopes, scopeKeysOf(scopes))
}

// Unknown says of which of some scopes a store has nothing; see Admin.Unknown.
func (wm Working) Unknown(ctx context.Context, scopes ...working.Scope) ([]working.Scope, error) {
	keys, err := wm.st.unknownOf(ctx, wm.st.engine.Kinds.Scopes, scopeKeysOf(scopes))
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
